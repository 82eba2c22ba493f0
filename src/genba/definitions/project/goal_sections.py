"""What a project calls done: `dod`, `task_types` and `verification` of `.genba/config.yaml`."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from genba.domain.goals.goal import CommandLine, Goal
from genba.domain.goals.verification import ArtifactType
from genba.domain.sessions.sandbox import Network


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class TaskTypeSettings(_Section, frozen=True, kw_only=True):
    """What the tasks of one type must fulfil. What is not set is built in."""

    goals: Annotated[tuple[Goal, ...] | None, Meta(description="In place of the built-in rules of the type.")] = None
    artifacts: Annotated[
        tuple[ArtifactType, ...] | None, Meta(description="What must be there: commit, branch, file.")
    ] = None
    may_change: Annotated[
        tuple[str, ...] | None, Meta(description="Protected paths that tasks of this type may change.")
    ] = None
    requires_review: Annotated[bool, Meta(description="A reviewer must approve the commit before it lands.")] = False
    reviewer_type: Annotated[Literal["human", "ai"], Meta(description="Who reviews.")] = "human"
    stages: Annotated[
        tuple[str, ...], Meta(description="Agents that work on a task one after the other; the last one ends it.")
    ] = ()


class VerificationSettings(_Section, frozen=True, kw_only=True):
    """How goals are checked."""

    setup: Annotated[
        CommandLine | None,
        Meta(description="Run in the clean checkout before the first command. Without it one is detected."),
    ] = None
    setup_timeout_seconds: Annotated[float, Meta(gt=0)] = 900
    serve: Annotated[CommandLine | None, Meta(description="Starts the service for goals that name no other.")] = None
    ready_when: Annotated[str | None, Meta(description="When that service is ready.")] = None
    environment: Annotated[dict[str, str], Meta(description="Variables for the commands of the goals.")] = {}
    protected_paths: Annotated[
        tuple[str, ...] | None, Meta(description="In place of the built-in list of protected paths.")
    ] = None
    sandbox: Annotated[bool, Meta(description="Run the commands of goals in the sandbox of the project.")] = True
    network: Annotated[
        Network | None,
        Meta(description="What those commands can reach in a sandbox. By default what agents can: sandbox.network."),
    ] = None
    setup_network: Annotated[
        Network | None,
        Meta(description="What the setup can reach in a sandbox. By default verification.network, else full."),
    ] = None


class RulesFile(_Section, frozen=True, kw_only=True):
    """What a project calls done."""

    dod: Annotated[
        tuple[Goal, ...], Meta(description="The Definition of Done: goals of every task and every run.")
    ] = ()
    task_types: Annotated[dict[str, TaskTypeSettings], Meta(description="Rules by the type of a task.")] = {}
    verification: VerificationSettings = VerificationSettings()
