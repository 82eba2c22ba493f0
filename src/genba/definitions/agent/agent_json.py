"""The shape of `agent.json`."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from genba.definitions.project.sandbox_section import AgentSandbox
from genba.domain.sessions.outcomes import ClosureAction, PermissionMode

JsonValue = Any
"""Any JSON value."""


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    pass


class Parameter(_Section, frozen=True):
    """A parameter of the agent; it becomes an option of `genba run NAME`."""

    type: Annotated[
        Literal["string", "number", "integer", "boolean", "array"],
        Meta(description="The type of its value; an array is an option that may be given several times."),
    ]
    description: Annotated[str, Meta(description="Shown by --help.")] = ""
    required: Annotated[bool, Meta(description="Refuse to run without it.")] = False
    default: Annotated[JsonValue, Meta(description="The value when the option is not given.")] = None
    cli: (
        Annotated[
            str,
            Meta(
                pattern="^--[a-z][a-z0-9-]*$",
                description="The option's name; by default made from the parameter's.",
            ),
        ]
        | None
    ) = None


class PromptSettings(_Section, frozen=True):
    registry: Annotated[str, Meta(description="The step registry, relative to agent.json.")] = "steps_registry.json"
    fallback_dir: Annotated[
        str, Meta(description="Where {stepId}.md or default.md is looked for when a step names no prompt.")
    ] = "prompts/"


class Flow(_Section, frozen=True):
    """How prompts are found and which model is asked."""

    mode: Annotated[
        Literal["loop", "stateDriven"],
        Meta(description="loop: Genba asks, step by step. stateDriven: the agent asks what is next, over MCP."),
    ] = "loop"
    hierarchy: Annotated[
        Literal["worker", "manager"],
        Meta(description="With stateDriven: a worker works itself, a manager has others work and works never."),
    ] = "worker"
    system_prompt_path: Annotated[str, Meta(description="The system prompt, relative to agent.json.")] = (
        "prompts/system.md"
    )
    prompts: PromptSettings = PromptSettings()
    default_model: Annotated[
        str,
        Meta(min_length=1, description="opus, sonnet, haiku or a plain model name; a step may name its own."),
    ] = "opus"


class CompletionSection(_Section, frozen=True):
    """When the agent is done. `genba schema completion` prints what each type takes."""

    type: Annotated[str, Meta(description="One of the eight completion types.")]
    config: Annotated[dict[str, JsonValue], Meta(description="What the type takes.")] = {}


class Boundaries(_Section, frozen=True):
    """What the instance may do."""

    allowed_tools: Annotated[
        tuple[str, ...] | None,
        Meta(description="The tools it may use; a tool that is used and not listed ends the run. null: any."),
    ] = None
    permission_mode: Annotated[PermissionMode, Meta(description="What it may do without asking.")] = (
        PermissionMode.ACCEPT_EDITS
    )


class CompletionLabels(_Section, frozen=True):
    add: Annotated[tuple[str, ...], Meta(description="Labels to add when the issue's work is done.")] = ()
    remove: Annotated[tuple[str, ...], Meta(description="Labels to remove when the issue's work is done.")] = ()


class Labels(_Section, frozen=True):
    requirements: Annotated[
        str | None,
        Meta(description="Issues with this label are the requirements, given as {uv-requirements}."),
    ] = None
    in_progress: Annotated[str | None, Meta(description="On the issue while a run works on it.")] = None
    blocked: Annotated[str | None, Meta(description="On the issue when a run ends blocked.")] = None
    completion: CompletionLabels = CompletionLabels()


class IssueIntegration(_Section, frozen=True):
    """What a run does to its issue. It acts on the tracker of the project."""

    enabled: Annotated[bool, Meta(description="Whether the issue is labelled and closed at all.")] = False
    labels: Labels = Labels()
    default_closure_action: Annotated[
        ClosureAction,
        Meta(description="What is done to the issue; the structured output may choose another."),
    ] = ClosureAction.CLOSE


class Integrations(_Section, frozen=True):
    github: IssueIntegration = IssueIntegration()


class Actions(_Section, frozen=True):
    """Action blocks in a reply, and who handles them. The types are the agent's capabilities."""

    enabled: Annotated[bool, Meta(description="Whether replies are searched for action blocks.")] = False
    types: Annotated[tuple[str, ...], Meta(description="The action types that are allowed.")] = ()
    output_format: Annotated[
        str,
        Meta(min_length=1, description="The marker of the Markdown code blocks that are read as actions."),
    ] = "json"
    handlers: Annotated[
        dict[str, str],
        Meta(description="Action type to handler: builtin:NAME, module:function, or file.py:function."),
    ] = {}


class WorktreeSettings(_Section, frozen=True):
    enabled: Annotated[bool, Meta(description="Work on an own branch in an own working tree.")] = True
    root: Annotated[str, Meta(min_length=1, description="Where working trees are made, in the repository.")] = (
        ".worktrees"
    )


class Finalize(_Section, frozen=True):
    """What happens to the branch when the loop completed: merge, push, pull request, clean up."""

    auto_merge: Annotated[bool, Meta(description="Merge the branch into its base.")] = True
    push: Annotated[bool, Meta(description="Push to the remote afterwards.")] = False
    remote: Annotated[str, Meta(min_length=1, description="The remote to push to.")] = "origin"
    create_pr: Annotated[bool, Meta(description="Open a pull request instead of merging.")] = False
    pr_target: Annotated[str | None, Meta(description="The target of the pull request; by default the base.")] = None
    pr_draft: Annotated[bool, Meta(description="Open the pull request as a draft.")] = False
    pr_reviewers: Annotated[
        tuple[str, ...], Meta(description="Who is asked to review it: logins, and team/NAME for teams.")
    ] = ()
    pr_merge: Annotated[
        Literal["people", "approved", "green"],
        Meta(
            description="Who merges it. people: a person on the forge. approved: Genba, once it is approved and its "
            "checks have passed. green: Genba, once its checks have passed and no review requests changes."
        ),
    ] = "people"
    pr_merge_method: Annotated[
        Literal["merge", "squash", "rebase"], Meta(description="How Genba merges a pull request.")
    ] = "merge"


class Execution(_Section, frozen=True):
    worktree: WorktreeSettings = WorktreeSettings()
    finalize: Finalize = Finalize()


class Logging(_Section, frozen=True):
    directory: Annotated[
        str, Meta(min_length=1, description="Where the journal is written; {name} is the agent's name.")
    ] = "tmp/logs/agents/{name}"
    format: Annotated[Literal["jsonl"], Meta(description="jsonl: one event per line.")] = "jsonl"


class Limits(_Section, frozen=True):
    """Budgets and patience. Reaching a budget suspends the run; it is never success."""

    max_iterations: Annotated[int, Meta(ge=1, description="Iterations of one run.")] = 20
    wall_time_seconds: Annotated[float, Meta(gt=0, description="Time of one run.")] = 3600
    tokens: Annotated[int, Meta(ge=1, description="Tokens of one run.")] | None = None
    cost_usd: Annotated[float, Meta(gt=0, description="Money of one run.")] | None = None
    ask_timeout_seconds: Annotated[float, Meta(gt=0, description="Time for one answer.")] = 1800
    idle_timeout_seconds: Annotated[float, Meta(gt=0, description="Silence before an instance counts as hung.")] = 600
    retries: Annotated[int, Meta(ge=0, description="Tries again after a recoverable error, per question.")] = 3
    retry_delay_seconds: Annotated[float, Meta(ge=0, description="The first wait; it doubles each time.")] = 1.0
    retry_max_delay_seconds: Annotated[float, Meta(ge=0, description="The longest wait, rate limits aside.")] = 60.0
    reasks: Annotated[int, Meta(ge=0, description="Times a reply that does not fit is asked again.")] = 2


class Runner(_Section, frozen=True):
    completion: CompletionSection
    flow: Flow = Flow()
    boundaries: Boundaries = Boundaries()
    integrations: Integrations = Integrations()
    actions: Actions = Actions()
    execution: Execution = Execution()
    logging: Logging = Logging()
    limits: Limits = Limits()
    sandbox: AgentSandbox = AgentSandbox()
    adapter: Annotated[
        dict[str, JsonValue] | None,
        Meta(description="Which kind of agent answers: its type, and what that type takes."),
    ] = None


class AgentFile(_Section, frozen=True, kw_only=True):
    """One agent: what it is for, what it takes, and how it runs."""

    name: Annotated[
        str, Meta(pattern="^[a-z][a-z0-9-]{0,62}$", description="The same as the folder's name in .agent/.")
    ]
    description: Annotated[str, Meta(min_length=1, description="What the agent is for.")]
    display_name: Annotated[str, Meta(description="The name for people.")] = ""
    parameters: dict[str, Parameter] = {}
    runner: Runner
    schema: Annotated[str, Meta(description="The JSON Schema that editors use; Genba does not read it.")] = (
        msgspec.field(name="$schema", default="")
    )
    version: Annotated[str, Meta(description="The version of the definition, for readers.")] = ""

    @property
    def title(self) -> str:
        return self.display_name or self.name
