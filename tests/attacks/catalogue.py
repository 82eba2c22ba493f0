"""What an attack is, and how a scene plays several of them in one session."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tests.attacks.field import Field

BUBBLEWRAP, DOCKER, PODMAN, WORKTREE = "bubblewrap", "docker", "podman", "worktree"
SANDBOXES = (BUBBLEWRAP, DOCKER, PODMAN)
ALL_KINDS = (*SANDBOXES, WORKTREE)

Evidence = Mapping[str, str]
"""By attack: how the host sees that it succeeded; empty where it was stopped."""


class Surface(StrEnum):
    """Where an attack begins."""

    GIT = "git that the host might run"
    EXIT = "exit codes and the kernel"
    REPORTS = "files that the host reads"
    GOALS = "goals that influence goals"
    DEFINE = "agents that define what runs"
    NETWORK = "network"
    READING = "data of others"
    FLOODS = "floods"
    HOST = "tokens, settings and cleanup"


@dataclass(frozen=True)
class Attack:
    """One attempt, and how the host sees that it succeeded."""

    id: str
    attack: str
    """One sentence: what the attacker tries."""
    surface: Surface
    seen_by: str
    """What the host looks at."""
    script: str = ""
    """What runs inside: Python, unless the scene says otherwise. It prints evidence when it has succeeded."""


@dataclass(frozen=True)
class Scene:
    """Attacks that share a session, because none disturbs another."""

    name: str
    attacks: tuple[Attack, ...]
    play: Callable[[Field, "Scene"], Evidence]
    kinds: tuple[str, ...] = SANDBOXES

    def scripts(self) -> dict[str, str]:
        return {each.id: each.script for each in self.attacks if each.script}


def succeeded(scene: Scene, field: Field) -> dict[str, str]:
    """Play a scene: the attacks that succeeded, with the evidence. Raises where one was not even tried."""
    seen = scene.play(field, scene)
    missing = [each.id for each in scene.attacks if each.id not in seen]
    assert not missing, f"not tried: {missing}; {field.told()}"
    return {each.id: seen[each.id] for each in scene.attacks if seen[each.id]}
