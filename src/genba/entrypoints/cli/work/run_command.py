"""`genba run NAME`: the agent's parameters are its options."""

import contextlib
import itertools
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
import msgspec

from genba.application.sessions.session_record import new_run_id, resumed_plan
from genba.application.sessions.stages import as_stage
from genba.definitions.agent.agent_json import Parameter
from genba.definitions.agent.definition import AgentDefinition
from genba.definitions.agent.layers import Layer, at_path, merge
from genba.definitions.agent.parameters import (
    ISSUE,
    RUN_OPTIONS,
    is_issue_number,
    option_name,
    options_of,
    settings_from,
)
from genba.domain.convert import DEEPEST, plain_problems
from genba.domain.errors import ConfigurationError, GenbaError, UsageError
from genba.domain.problems import Problem, did_you_mean
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.workspaces import MergeStatus
from genba.domain.tracker.outbox import OutboxStatus
from genba.entrypoints.cli.failures import show_hint, show_problem, show_warning
from genba.entrypoints.cli.project_lookup import project_here, run_async
from genba.entrypoints.cli.rendering.plain_view import PlainView
from genba.entrypoints.cli.rendering.printable import in_one_line, printable
from genba.entrypoints.cli.work.agent_choice import agent_for, issue_number
from genba.entrypoints.cli.work.run_review import as_review, check_review, held_to, order_of, reviewed, show_verdict
from genba.execution.run_values import RunPlan, RunResult
from genba.judgement.loop.unknown_options import Kind, UnknownOption, looks_like_option, unknown_options
from genba.wiring import ProjectContext
from genba.wiring.sessions.session_factory import standalone_session

if TYPE_CHECKING:
    from genba.coordination.facilitator.facilitator import TriageResult

COMMAND_LINE = "command line"
_ITERATIONS = "runner.completion.config.maxIterations"
_ISSUE = f"--{ISSUE}"


class NumberType(click.ParamType[Any]):
    name = "number"
    refusal = "is not a number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = self.number(str(value))
        if number is None or not self.fits(number):
            self.fail(f"{str(value)[:80]!r} {self.refusal}", param, ctx)
        return number

    def number(self, text: str) -> int | float | None:
        """A number that JSON and a computer can hold; nothing for anything else."""
        if not text.isascii():
            return None
        for read in (int, float):
            with contextlib.suppress(ValueError):
                found = read(text)
                number = int(found) if abs(found) <= _LARGEST and found == int(found) else found
                return number if abs(number) <= _LARGEST else None
        return None

    def fits(self, number: float) -> bool:  # noqa: ARG002  (for the kinds that are choosier)
        return True


class WholeNumberType(NumberType):
    name = "integer"
    refusal = "is not a whole number"

    def fits(self, number: float) -> bool:
        return isinstance(number, int)


class IssueType(WholeNumberType):
    refusal = "is not the number of an issue"

    def fits(self, number: float) -> bool:
        return is_issue_number(number)


_LARGEST = 2**63 - 1
_TYPES: dict[str, click.ParamType[Any]] = {
    "string": click.STRING,
    "number": NumberType(),
    "integer": WholeNumberType(),
    "boolean": click.BOOL,
    "array": click.STRING,
}


class RunGroup(click.Group):
    """Every agent of the project is a command of its own."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        with contextlib.suppress(GenbaError):
            return sorted(project_here().registry.folders())
        return []

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        context = project_here()
        number = issue_number(cmd_name) if cmd_name not in context.registry.folders() else None
        if number is None:
            return agent_command(context, context.registry.load(cmd_name))
        return agent_command(context, context.registry.load(agent_for(context, number)), number)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with contextlib.suppress(GenbaError):
            infos, _ = project_here().registry.agents()
            with formatter.section("Agents"):
                formatter.write_dl([(info.name, in_one_line(info.description)) for info in infos])


@click.group("run", cls=RunGroup, invoke_without_command=True, subcommand_metavar="ISSUE|AGENT [OPTIONS]")
@click.option("--resume", metavar="SESSION", help="Continue a stopped session.")
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help="With --resume: raise a limit.")
@click.option("--review", is_flag=True, help="Let another agent review the work before it lands.")
@click.option("--strict-options", is_flag=True, help="Refuse options that the agent does not declare.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.pass_context
def run(
    ctx: click.Context,
    resume: str | None,
    settings: tuple[str, ...],
    review: bool,
    strict_options: bool,
    as_json: bool,
    quiet: bool,
) -> int | None:
    """Run one agent: on an issue, or by its name.

    `genba run 12` starts the agent that issue 12, its type or work.agent names. The agent works in a worktree of its
    own. Genba verifies its commit and merges it.
    """
    if ctx.invoked_subcommand is not None:
        if resume is not None:
            raise UsageError("--resume goes with a run, not with an agent", hint=f"genba run --resume {resume}")
        flags = {"review": review, "strict_options": strict_options, "as_json": as_json, "quiet": quiet}
        ctx.obj = {"settings": settings, **flags}
        return None
    if resume is None and as_json:
        raise UsageError(
            "name an issue or an agent",
            hint="genba run ISSUE --json   or   genba run AGENT --json   agents: genba agent list",
        )
    if resume is None:
        click.echo(ctx.get_help())
        return UsageError.exit_code
    context = project_here()
    plan = resumed_plan(context, resume, _resume_settings(settings))
    return exit_code(execute(context, plan, as_json, quiet, review))


def agent_command(context: ProjectContext, definition: AgentDefinition, issue: int | None = None) -> click.Command:
    """The command of one agent, for one issue where it is named: its parameters, then the options of every session."""

    def callback(**given: Any) -> int:
        key = _destination(ISSUE) if ISSUE in definition.file.parameters else "task"
        if issue is not None:
            given[key] = _one_task(issue, given[key])
        ctx = click.get_current_context()
        _check_unknown(ctx.args, definition, _is_strict(context, given, ctx.obj or {}))
        return _start(context, definition, _with_earlier(given, ctx.obj or {}))

    options = [_parameter_option(name, parameter) for name, parameter in definition.file.parameters.items()]
    return AgentCommand(
        definition.name,
        callback=callback,
        params=[*options, *_run_options(), *_issue_option(definition)],
        help=printable(f"{definition.file.title}: {definition.file.description}"),
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "max_content_width": 100},
    )


def _is_strict(context: ProjectContext, given: dict[str, Any], earlier: dict[str, Any]) -> bool:
    named = given["strict_options"] or earlier.get("strict_options", False)
    return bool(named or context.project.file.run.strict_options)


def _with_earlier(given: dict[str, Any], earlier: dict[str, Any]) -> dict[str, Any]:
    """The options of a run may stand before the agent's name too; what comes later lies over it."""
    settings = (*earlier.get("settings", ()), *given["settings"])
    flags = {name: given[name] or earlier.get(name, False) for name in ("as_json", "quiet", "review")}
    return {**given, **flags, "settings": settings}


def _destination(name: str) -> str:
    """The key under which click hands over a parameter."""
    return "parameter_" + name.replace("-", "_")


def _parameter_option(name: str, parameter: Parameter) -> click.Option:
    option = option_name(name, parameter)
    facts = ["required"] if parameter.required else []
    if parameter.default is not None:
        facts.append(f"default: {msgspec.json.encode(parameter.default).decode()}")
    message = f"{parameter.description}  [{'; '.join(facts)}]" if facts else parameter.description
    declared = f"{option}/--no-{option[2:]}" if parameter.type == "boolean" else option
    return click.Option(
        [declared, _destination(name)],
        type=IssueType() if name == ISSUE else _TYPES[parameter.type],
        multiple=parameter.type == "array",
        default=None,
        help=printable(message.strip()),
    )


def _issue_option(definition: AgentDefinition) -> list[click.Parameter]:
    """--issue, for an agent that does not declare it: the goals of a task apply to every agent."""
    declared = {option_name(name, parameter) for name, parameter in definition.file.parameters.items()}
    message = "The task that it works on; its goals apply."
    return [] if _ISSUE in declared else [click.Option([_ISSUE, "task"], type=IssueType(), help=message)]


def _run_options() -> list[click.Parameter]:
    return [
        click.Option(["--branch"], help="The branch to work on.  [default: a new one]"),
        click.Option(["--base-branch"], help="Start from this branch, and merge into it."),
        click.Option(["--no-merge"], is_flag=True, help="Leave the branch unmerged."),
        click.Option(["--push"], is_flag=True, help="Push when done."),
        click.Option(["--push-remote"], metavar="NAME", help="Push to this remote."),
        click.Option(["--create-pr"], is_flag=True, help="Open a pull request instead of merging."),
        click.Option(["--pr-target"], metavar="BRANCH", help="The target of the pull request."),
        click.Option(["--adapter"], metavar="TYPE", help="The kind of agent: claude-code, codex, custom, …"),
        click.Option(["--sandbox"], metavar="KIND", help="worktree, bubblewrap, docker or podman."),
        click.Option(
            ["--i-accept-the-risk", "accepts_risk"], is_flag=True, help="Allow bypassPermissions without a sandbox."
        ),
        click.Option(["--model"], help="The model of steps that name none."),
        click.Option(["--mode"], metavar="KEY", help="Start at the step of this entryStepMapping key."),
        click.Option(["--set", "settings"], multiple=True, metavar="PATH=VALUE", help="Set any value of agent.json."),
        click.Option(["--may-change"], multiple=True, metavar="GLOB", help="Allow changes of these protected paths."),
        click.Option(["--review"], is_flag=True, help="Let another agent review the work before it lands."),
        click.Option(["--strict-options"], is_flag=True, help="Refuse options that the agent does not declare."),
        click.Option(["--json", "as_json"], is_flag=True, help="Print the result as JSON."),
        click.Option(["--quiet"], is_flag=True, help="Show no progress."),
    ]


def _start(context: ProjectContext, definition: AgentDefinition, given: dict[str, Any]) -> int:
    for each in (*context.registry.unknown_sections(), *context.registry.overruled(definition)):
        show_problem(each)
    layers = _command_line_layers(definition, given)
    if layers:
        definition = context.registry.load(definition.name, layers)
    values = _parameters(definition, given)
    order = order_of(context, definition, values.get(ISSUE), given.get(_destination("commit")))
    if order is not None:
        definition = context.registry.load(definition.name, held_to(layers))
    else:
        definition = as_stage(context, definition, values.get(ISSUE), layers)
    mode = given["mode"]
    mapping = definition.registry.entry_step_mapping
    if mode is not None and mode not in mapping:
        problem = Problem(COMMAND_LINE, "--mode", f'no entry step is mapped to "{mode}"', did_you_mean(mode, mapping))
        raise ConfigurationError((problem,))
    plan = RunPlan(
        run=new_run_id(definition.name),
        definition=definition,
        parameters=values,
        project=context.project.name,
        mode=mode,
        branch=given["branch"],
        base_branch=given["base_branch"],
        may_change=given["may_change"],
        accepts_risk=given["accepts_risk"],
        process=os.getpid(),
    )
    if order is not None:
        plan = as_review(context, plan, order)
    return exit_code(execute(context, plan, given["as_json"], given["quiet"], given["review"]))


def _parameters(definition: AgentDefinition, given: dict[str, Any]) -> dict[str, Any]:
    """The value of every parameter; what is required and not given is refused."""
    values: dict[str, Any] = {}
    missing: list[Problem] = []
    task = given.get("task")
    for name, parameter in definition.file.parameters.items():
        value = given.get(_destination(name))
        if name == ISSUE and task is not None:
            value = _one_task(task, value)
        value = list(value) if isinstance(value, tuple) and value else (None if value == () else value)
        value = parameter.default if value is None else value
        if value is None and parameter.required:
            message = parameter.description or "the agent needs it"
            missing.append(Problem(COMMAND_LINE, option_name(name, parameter), f"is required and missing: {message}"))
        values[name] = value
    if missing:
        raise ConfigurationError(tuple(missing), hint=f"genba run {definition.name} --help")
    return values if task is None else {**values, ISSUE: task}


def _one_task(task: int, declared: Any) -> int:
    if declared not in (None, task):
        raise UsageError(f"two tasks are named, #{task} and #{declared}; a session works on one")
    return task


def _command_line_layers(definition: AgentDefinition, given: dict[str, Any]) -> list[Layer]:
    """What the options set, in the shape of agent.json, over everything else."""
    finalize: dict[str, Any] = {}
    if given["no_merge"]:
        finalize["autoMerge"] = False
    if given["push"]:
        finalize["push"] = True
    if given["push_remote"] is not None:
        finalize["remote"] = given["push_remote"]
    if given["create_pr"]:
        finalize["createPr"] = True
    if given["pr_target"] is not None:
        finalize["prTarget"] = given["pr_target"]
    settings: list[dict[str, Any]] = [{"runner": {"execution": {"finalize": finalize}}}] if finalize else []
    if given["adapter"] is not None and given["adapter"] != definition.adapter_type:
        settings.append({"runner": {"adapter": {"type": given["adapter"]}}})
    if given["sandbox"] is not None:
        settings.append({"runner": {"sandbox": {"kind": given["sandbox"]}}})
    if given["model"] is not None:
        settings.append({"runner": {"flow": {"defaultModel": given["model"]}}})
    for name in definition.file.parameters:
        chosen = given[_destination(name)]
        settings.append(settings_from(name, chosen, definition.file.runner.completion.type))
    settings += [at_path(*_setting(text)) for text in given["settings"]]
    return [Layer(COMMAND_LINE, values) for values in settings if values]


def _setting(text: str) -> tuple[str, Any]:
    path, equals, value = text.partition("=")
    if not equals or not path:
        raise UsageError(f'--set takes PATH=VALUE, not "{text}"', hint="--set runner.limits.maxIterations=30")
    if path.count(".") >= DEEPEST:
        raise UsageError(f'--set takes a path of agent.json, not "{path[:80]}"')
    try:
        decoded = msgspec.json.decode(value.encode())
    except (ValueError, RecursionError):
        return path, value
    wrong = plain_problems(decoded, COMMAND_LINE, f"--set {path}")
    if wrong:
        raise UsageError(str(wrong[0]))
    return path, decoded


def _resume_settings(settings: tuple[str, ...]) -> dict[str, Any]:
    """What a resumed run may be given: larger budgets, and nothing else."""
    chosen = [_setting(text) for text in settings]
    foreign = [path for path, _ in chosen if not path.startswith("runner.limits.") and path != _ITERATIONS]
    if foreign:
        raise UsageError(
            f"a resumed run keeps its definition; {foreign[0]} cannot be set, only its budgets can",
            hint="--set runner.limits.maxIterations=40",
        )
    return merge([Layer(COMMAND_LINE, at_path(path, value)) for path, value in chosen]).values


def _check_unknown(extra: list[str], definition: AgentDefinition, strict: bool) -> None:
    """Warn of foreign options, and refuse what must not be ignored. Nothing was started yet."""
    known = tuple(option for option, _ in _declared(definition)) + RUN_OPTIONS
    for found in unknown_options(extra, known):
        name = printable(found.name)
        if found.name.partition("=")[0] == "--resume":
            raise UsageError("--resume goes with a run, not with an agent", hint="genba run --resume RUN")
        if strict or found.kind in (Kind.CLOSE, Kind.CAUTIOUS):
            raise _refused(found, name, definition)
        if found.name.lstrip("-").replace("_", "-") in _words_of_genba():
            raise UsageError(
                f"{name} is a word of genba that `genba run` does not know: {definition.name} does not declare it",
                unchanged="nothing was started, nothing was changed.",
                hint=f"known: genba run {definition.name} --help",
            )
        if found.kind is Kind.WORD:
            show_warning(f'"{name}" is ignored: {definition.name} takes options only')
        else:
            show_warning(f"{name} is not declared by {definition.name} and is ignored")


def _words_of_genba() -> set[str]:
    """The commands of genba, the options of those that work or look, and the words for where work lands."""
    root = click.get_current_context().find_root()
    assert isinstance(root.command, click.Group)  # noqa: S101  (genba is a group of commands)
    found = {"into", "onto", "from", "to", "at", "list", *root.command.list_commands(root)}
    commands = [root.command.get_command(root, name) for name in ("work", "facilitate", "status")]
    tasks = root.command.get_command(root, "task")
    if isinstance(tasks, click.Group):
        commands += [tasks.commands.get(name) for name in ("add", "edit")]
    params = [each for command in commands if command is not None for each in command.params]
    found.update(option.lstrip("-") for each in params for option in each.opts if option.startswith("--"))
    return found - {"plain", "json"}  # how a command shows itself changes nothing that it does


def _refused(found: UnknownOption, name: str, definition: AgentDefinition) -> UsageError:
    help_ = f"genba run {definition.name} --help"
    if found.kind is Kind.CLOSE:
        hint = f'did you mean "{found.meant}"?   known: {help_}'
    elif found.kind is Kind.CAUTIOUS:
        hint = f"leave the branch unmerged: --no-merge   known: {help_}"
    else:
        hint = f"known: {help_}   without --strict-options it is ignored"
    why = "asks for caution that it does not know" if found.kind is Kind.CAUTIOUS else "is not one of its options"
    message = f"{name} {why}: {definition.name} does not declare it"
    return UsageError(message, unchanged="nothing was started, nothing was changed.", hint=hint)


def _declared(definition: AgentDefinition) -> Iterator[tuple[str, bool]]:
    """Every option of an agent, and whether it takes a value."""
    for name, parameter in definition.file.parameters.items():
        for option in options_of(name, parameter):
            yield option, parameter.type != "boolean"


class AgentCommand(click.Command):
    """The command of one agent. An option does not take another option for its value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        valued = {
            option
            for each in self.params
            if isinstance(each, click.Option) and not each.is_flag and not each.count
            for option in each.opts
        }
        for word, following in itertools.pairwise(args):
            if word == "--":
                break
            if word in valued and looks_like_option(following):
                message = f"{word} needs a value, and {printable(following)} looks like an option"
                raise UsageError(
                    message,
                    unchanged="nothing was started, nothing was changed.",
                    hint=f"a value that begins with a dash: {word}={printable(following)}",
                )
        return super().parse_args(ctx, args)


@contextlib.contextmanager
def _view(quiet: bool) -> Iterator[tuple[Any, ...]]:
    if quiet:
        yield ()
    elif sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        from rich.console import Console  # noqa: PLC0415  (only a terminal needs rich)

        from genba.entrypoints.cli.rendering.live_view import LiveView  # noqa: PLC0415

        with LiveView(Console(stderr=True)) as view:
            yield (view,)
    else:
        yield (PlainView(lambda line: click.echo(line, err=True)),)


def execute(context: ProjectContext, plan: RunPlan, as_json: bool, quiet: bool, review: bool = False) -> RunResult:
    """Run a plan and show it; with `review`, an agent reviews the work before it lands."""
    look: TriageResult | None = None

    def carry_out(each: RunPlan) -> RunResult:
        nonlocal look
        with _view(quiet) as listeners:
            prepared = standalone_session(context, each, listeners)
            result = run_async(prepared.execute())
        look = prepared.answers.look if prepared.answers is not None else None
        if not as_json:
            show_verdict(result)
        return result

    if review:
        check_review(context, plan)
    result = carry_out(plan)
    if review:
        result = reviewed(context, result, carry_out)
    if as_json:
        _print_result(result, look)
    elif look is not None:
        from genba.entrypoints.cli.inspect.facilitate_command import show_look  # noqa: PLC0415  (only for a facilitator)

        show_look(look)
    elif quiet:
        click.echo(printable(f"{result.outcome}: {result.reason}"), err=True)
    if result.hint:
        show_hint(result.hint)
    if context.project.file.tracker.github is not None and not quiet:
        _tell_of_github(context, result)
    return result


def _print_result(result: RunResult, look: "TriageResult | None") -> None:
    """The result; with the report of an agent that facilitates."""
    values: dict[str, Any] = msgspec.to_builtins(result)
    if look is not None:
        from genba.application.facilitator.facilitator import report_of  # noqa: PLC0415  (only for a facilitator)

        values["report"] = report_of(look)
    click.echo(msgspec.json.format(msgspec.json.encode(values), indent=2).decode())


def _tell_of_github(context: ProjectContext, result: RunResult) -> None:
    """What of this run is not there yet, and how its pull request goes on."""
    office = context.office()
    waiting = [] if office is None else [one for one in office.outbox().list() if one.run == result.run]
    if waiting:
        count = f"{len(waiting)} change{'s wait' if len(waiting) > 1 else ' waits'} in the outbox"
        why = next((one.error for one in waiting if one.error), "")
        show_warning(f"{count}: {why}" if why else count)
        failed = any(one.status is OutboxStatus.FAILED for one in waiting)
        show_hint("genba outbox list" if failed else "genba outbox send")
    elif result.pull_request and _in_review(context, result.issue):
        show_hint("genba sync   once it is reviewed or merged")


def _in_review(context: ProjectContext, issue: int | None) -> bool:
    """Whether its task follows the pull request: an agent that leaves issues alone moves none."""
    from genba.domain.tasks.task import TaskStatus  # noqa: PLC0415  (a run without a task does not load them)

    return issue is not None and context.board().get(issue).status is TaskStatus.REVIEW


def exit_code(result: RunResult) -> int:
    match result.outcome:
        case Outcome.COMPLETED:
            return 0
        case Outcome.BUDGET_EXHAUSTED:
            return 6
    in_the_way = (MergeStatus.CONFLICT, MergeStatus.CHECKOUT_IN_THE_WAY)
    return 5 if result.merge in in_the_way else 1
