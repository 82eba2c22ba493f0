"""How a project wants its tasks worked off: from `work` and `attempts` to `gc` and `workflow`.

These sections of `.genba/config.yaml` are read by types of their own: a run of one agent needs none of them.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from genba.definitions.project.facilitator_section import FacilitatorSettings
from genba.definitions.project.notify_section import NotifySettings

Name = Annotated[str, Meta(min_length=1)]
Some = Annotated[int, Meta(ge=1)]
Dollars = Annotated[float, Meta(gt=0)]


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class WorkSettings(_Section, frozen=True, kw_only=True):
    """How many sessions there are at one time, and which begin first."""

    agent: Annotated[Name, Meta(description="Who takes a task that no assignee and no capability gives away.")] = (
        "iterator"
    )
    workers: Annotated[Some, Meta(description="Sessions at one time of one `genba work`; --workers wins.")] = 2
    max_sessions: (
        Annotated[Some, Meta(description="Sessions at one time in the whole project, on all hosts.")] | None
    ) = None
    max_per_agent: Annotated[dict[str, Some], Meta(description="By agent: its sessions at one time.")] = {}
    max_per_provider: Annotated[dict[str, Some], Meta(description="By provider: its sessions at one time.")] = {}
    min_free_memory_mb: Annotated[int, Meta(ge=0, description="With less free memory nothing begins.")] = 256
    min_free_disk_mb: Annotated[int, Meta(ge=0, description="With less free disk nothing begins.")] = 256
    memory_per_worker_mb: Annotated[int, Meta(ge=0, description="What a session that begins is expected to need.")] = 64
    overlap: Annotated[
        Literal["wait", "prefer", "allow"],
        Meta(description="A task that would write what another is writing: wait for it, prefer others, or allow it."),
    ] = "wait"
    ageing_hours: Annotated[float, Meta(gt=0, description="After so long a task moves up one priority.")] = 24
    grace_seconds: Annotated[
        float, Meta(gt=0, description="Agents without a live `genba work` are suspended after this time.")
    ] = 60
    patience_seconds: Annotated[
        float,
        Meta(ge=0, description="A session whose provider says to wait longer than this gives its worker away."),
    ] = 30
    poll_seconds: Annotated[float, Meta(gt=0, description="How often the blackboard is looked at.")] = 0.5


class AttemptSettings(_Section, frozen=True, kw_only=True):
    """How often a task is tried, and by whom, before a person is asked."""

    per_agent: Annotated[Some, Meta(description="Failed attempts of one agent before another one tries.")] = 2
    alternates: Annotated[tuple[Name, ...], Meta(description="The agents that try then, in this order.")] = ()
    max: Annotated[Some, Meta(description="Failed attempts of all agents before a person is asked.")] = 3
    backoff_seconds: Annotated[float, Meta(ge=0, description="Wait after the first failure; it doubles.")] = 10
    backoff_max_seconds: Annotated[float, Meta(ge=0, description="The longest wait.")] = 600


class MergeSettings(_Section, frozen=True, kw_only=True):
    """How verified work lands."""

    base_branch: Annotated[str, Meta(description="Where tasks land; by default the branch that is checked out.")] = ""
    history: Annotated[
        Literal["merge", "linear"], Meta(description="A merge commit for each task, or one plain commit for each.")
    ] = "merge"
    batch: Annotated[Some, Meta(description="Branches that are verified together; bisected when red.")] = 1
    rounds: Annotated[
        int, Meta(ge=0, description="How often work goes back to its author with a conflict or a failing goal.")
    ] = 3
    retry_seconds: Annotated[float, Meta(ge=0, description="Wait before a target that was in the way is tried.")] = 15
    remote: Annotated[str, Meta(description="The git remote that all hosts share; empty: one host alone.")] = ""


class ReviewSettings(_Section, frozen=True, kw_only=True):
    """Reviews by agents."""

    agent: Annotated[Name, Meta(description="Who reviews; never the author.")] = "reviewer"
    rounds: Annotated[int, Meta(ge=0, description="How often changes are asked for before a person decides.")] = 3


class DecomposeSettings(_Section, frozen=True, kw_only=True):
    """Tasks that a planner takes apart before anybody works on them."""

    agent: Annotated[Name, Meta(description="Who proposes the parts.")] = "planner"
    approval: Annotated[Literal["human", "auto"], Meta(description="Who approves the parts.")] = "human"
    types: Annotated[tuple[Name, ...], Meta(description="Tasks of these types are taken apart.")] = ()
    labels: Annotated[tuple[Name, ...], Meta(description="Tasks with one of these labels are taken apart.")] = ()
    max_parts: Annotated[Some, Meta(description="The most parts of one task.")] = 12
    max_depth: Annotated[int, Meta(ge=0, description="How many levels below a task may be taken apart further.")] = 2


class BudgetSettings(_Section, frozen=True, kw_only=True):
    """Dollars. What is not set is not limited."""

    task_usd: Annotated[Dollars, Meta(description="All sessions of one task; a task may set its own.")] | None = None
    agent_day_usd: Annotated[Dollars, Meta(description="One agent on one day (UTC).")] | None = None
    day_usd: Annotated[Dollars, Meta(description="The project on one day (UTC).")] | None = None
    project_usd: Annotated[Dollars, Meta(description="The project, over all time.")] | None = None


class HousekeepingSettings(_Section, frozen=True, kw_only=True):
    """What ended tasks leave behind."""

    keep_days: Annotated[int, Meta(ge=0, description="How long it is kept; nothing becomes unreachable.")] = 14


class WorkflowSettings(_Section, frozen=True, kw_only=True):
    """How agents are led that ask for their next action."""

    language: Annotated[
        Literal["en", "ja"],
        Meta(description="The language of prompts, feedback, instructions, decisions and comments."),
    ] = "en"
    wait_seconds: Annotated[
        float, Meta(ge=0, le=55, description="How long a call that has to wait is held before it is answered.")
    ] = 20
    suspend_seconds: Annotated[
        float, Meta(ge=0, description="A manager that has only waited for so long is stopped, and woken later.")
    ] = 60
    lease_seconds: Annotated[
        float, Meta(gt=0, description="An agent that came by itself and is silent for so long has left its task.")
    ] = 900
    token_hours: Annotated[float, Meta(gt=0, description="How long a token is good for.")] = 12
    calls_per_minute: Annotated[Some, Meta(description="Calls of one session before it must slow down.")] = 600
    max_repeats: Annotated[
        Some, Meta(description="Times that an agent may ask while nothing changes, before it must stop.")
    ] = 25
    max_reworks: Annotated[Some, Meta(description="Claims of one session that may be red before it has failed.")] = 10


class FleetSettings(_Section, frozen=True, kw_only=True):
    """All settings of `genba work`."""

    work: WorkSettings = WorkSettings()
    attempts: AttemptSettings = AttemptSettings()
    merge: MergeSettings = MergeSettings()
    review: ReviewSettings = ReviewSettings()
    decompose: DecomposeSettings = DecomposeSettings()
    budget: BudgetSettings = BudgetSettings()
    gc: HousekeepingSettings = HousekeepingSettings()
    workflow: WorkflowSettings = WorkflowSettings()
    facilitator: FacilitatorSettings = FacilitatorSettings()
    notify: NotifySettings = NotifySettings()
