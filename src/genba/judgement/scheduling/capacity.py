"""How many sessions may begin: free workers, limits by project, agent and provider, memory and disk, pauses."""

from collections import Counter

import msgspec

from genba.judgement.scheduling.actions import WaitReason
from genba.judgement.scheduling.scheduler_view import SchedulerView


class NoCapacity(msgspec.Struct, frozen=True):
    """Why a session cannot begin now."""

    kind: WaitReason
    why: str
    until: str = ""


class Capacity:
    """What is left while one look at the field gives sessions away."""

    def __init__(self, at: SchedulerView) -> None:
        self.at = at
        self.free = max(0, at.me.workers - at.me.running)
        self.total = len(at.running)
        self.agents = Counter(session.agent for session in at.running)
        self.providers = Counter(session.provider for session in at.running if session.provider)
        self.memory = at.me.resources.free_memory_mb

    def worker(self) -> NoCapacity | None:
        """Whether there is a worker for anything at all."""
        if self.free <= 0:
            return NoCapacity(WaitReason.WORKERS, f"all {self.at.me.workers} workers are busy")
        return None

    def anybody(self) -> NoCapacity | None:
        """Why no agent at all can be asked now."""
        settings, resources = self.at.settings.work, self.at.me.resources
        if full := self.worker():
            return full
        if settings.max_sessions is not None and self.total >= settings.max_sessions:
            return NoCapacity(WaitReason.LIMIT, f"the project has {self.total} sessions  work.max_sessions")
        if self.memory < settings.min_free_memory_mb:
            message = f"{self.memory} MB of memory are free, and {settings.min_free_memory_mb} are kept free"
            return NoCapacity(WaitReason.RESOURCES, f"{message}  work.min_free_memory_mb")
        if resources.free_disk_mb < settings.min_free_disk_mb:
            message = f"{resources.free_disk_mb} MB of disk are free, and {settings.min_free_disk_mb} are kept free"
            return NoCapacity(WaitReason.RESOURCES, f"{message}  work.min_free_disk_mb")
        return None

    def refusal(self, agent: str, provider: str) -> NoCapacity | None:
        """Why a session of this agent cannot begin now."""
        if full := self.anybody():
            return full
        settings = self.at.settings.work
        pause = self.at.pauses.get(provider) if provider else None
        if pause is not None:
            why = f"{provider} is paused until {pause.until}" + (f": {pause.reason}" if pause.reason else "")
            return NoCapacity(WaitReason.PROVIDER, why, pause.until)
        if self.agents[agent] >= settings.max_per_agent.get(agent, self.agents[agent] + 1):
            return NoCapacity(WaitReason.LIMIT, f"{agent} has {self.agents[agent]} sessions  work.max_per_agent")
        if provider and self.providers[provider] >= settings.max_per_provider.get(
            provider, self.providers[provider] + 1
        ):
            return NoCapacity(
                WaitReason.LIMIT, f"{provider} has {self.providers[provider]} sessions  work.max_per_provider"
            )
        return None

    def take(self, agent: str, provider: str) -> None:
        """A session begins that may ask its agent."""
        self.free -= 1
        self.total += 1
        self.agents[agent] += 1
        if provider:
            self.providers[provider] += 1
        self.memory -= self.at.settings.work.memory_per_worker_mb

    def take_worker(self) -> None:
        """Count a segment that asks no agent."""
        self.free -= 1
