"""`genba run NAME`: the agent's parameters are its options."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

import click
import msgspec

from genba.definitions.agent_file import Parameter
from genba.definitions.definition import AgentDefinition
from genba.definitions.layers import Layer, at_path, merge
from genba.definitions.parameters import ISSUE, RUN_OPTIONS, is_issue_number, option_name, settings_from
from genba.domain.errors import ConfigurationError, GenbaError, UsageError
from genba.domain.outbox import DeedStatus
from genba.domain.outcomes import Outcome
from genba.domain.problems import Problem, did_you_mean, nearest
from genba.domain.shapes import DEEPEST, plain_problems
from genba.domain.workspaces import MergeStatus
from genba.entrypoints.cli.failures import show_hint, show_warning
from genba.entrypoints.cli.houses import house_here, run_async
from genba.entrypoints.cli.plain_view import PlainView
from genba.entrypoints.cli.printable import in_one_line, printable
from genba.execution.running import RunPlan, RunResult
from genba.wiring import House, new_run_id

COMMAND_LINE = "command line"
_ITERATIONS = "runner.completion.config.maxIterations"


class NumberType(click.ParamType[Any]):
    name = "number"
    told = "is not a number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = self.number(str(value))
        if number is None or not self.fits(number):
            self.fail(f"{str(value)[:80]!r} {self.told}", param, ctx)
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
    told = "is not a whole number"

    def fits(self, number: float) -> bool:
        return isinstance(number, int)


class IssueType(WholeNumberType):
    told = "is not the number of an issue"

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
            return sorted(house_here().registry.folders())
        return []

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        house = house_here()
        return agent_command(house, house.registry.load(cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with contextlib.suppress(GenbaError):
            infos, _ = house_here().registry.agents()
            with formatter.section("Agents"):
                formatter.write_dl([(info.name, in_one_line(info.description)) for info in infos])


@click.group("run", cls=RunGroup, invoke_without_command=True, subcommand_metavar="NAME [OPTIONS]")
@click.option("--resume", metavar="RUN", help="Go on with a run that was cut off or parked.")
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help="With --resume: raise a limit.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--quiet", is_flag=True, help="Show nothing while it works.")
@click.pass_context
def run(ctx: click.Context, resume: str | None, settings: tuple[str, ...], as_json: bool, quiet: bool) -> int | None:
    """Run an agent in its own working tree, judge it, and merge what holds."""
    if ctx.invoked_subcommand is not None:
        if resume is not None:
            raise UsageError("--resume goes with a run, not with an agent", hint=f"genba run --resume {resume}")
        ctx.obj = {"settings": settings, "as_json": as_json, "quiet": quiet}
        return None
    if resume is None and as_json:
        raise UsageError("the name of an agent is missing", hint="genba run NAME --json   known: genba agent list")
    if resume is None:
        click.echo(ctx.get_help())
        return UsageError.exit_code
    house = house_here()
    return exit_code(execute(house, house.resumed(resume, _resume_settings(settings)), as_json, quiet))


def agent_command(house: House, definition: AgentDefinition) -> click.Command:
    """The command of one agent: its parameters first, then the options of every run."""

    def callback(**given: Any) -> int:
        ctx = click.get_current_context()
        _warn_of_ignored(ctx.args, definition)
        return _start(house, definition, _with_earlier(given, ctx.obj or {}))

    options = [_parameter_option(name, parameter) for name, parameter in definition.file.parameters.items()]
    return click.Command(
        definition.name,
        callback=callback,
        params=[*options, *_run_options()],
        help=printable(f"{definition.file.title}: {definition.file.description}"),
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "max_content_width": 100},
    )


def _with_earlier(given: dict[str, Any], earlier: dict[str, Any]) -> dict[str, Any]:
    """The options of a run may stand before the agent's name too; what comes later lies over it."""
    settings = (*earlier.get("settings", ()), *given["settings"])
    flags = {name: given[name] or earlier.get(name, False) for name in ("as_json", "quiet")}
    return {**given, **flags, "settings": settings}


def _destination(name: str) -> str:
    """The key under which click hands over a parameter."""
    return "parameter_" + name.replace("-", "_")


def _parameter_option(name: str, parameter: Parameter) -> click.Option:
    option = option_name(name, parameter)
    facts = ["required"] if parameter.required else []
    if parameter.default is not None:
        facts.append(f"default: {msgspec.json.encode(parameter.default).decode()}")
    told = f"{parameter.description}  [{'; '.join(facts)}]" if facts else parameter.description
    declared = f"{option}/--no-{option[2:]}" if parameter.type == "boolean" else option
    return click.Option(
        [declared, _destination(name)],
        type=IssueType() if name == ISSUE else _TYPES[parameter.type],
        multiple=parameter.type == "array",
        default=None,
        help=printable(told.strip()),
    )


def _run_options() -> list[click.Parameter]:
    return [
        click.Option(["--branch"], help="The branch to work on; by default a name is made."),
        click.Option(["--base-branch"], help="The branch to start from and merge into; by default the current one."),
        click.Option(["--no-merge"], is_flag=True, help="Leave the branch unmerged."),
        click.Option(["--push"], is_flag=True, help="Push when done."),
        click.Option(["--push-remote"], metavar="NAME", help="Push to this remote."),
        click.Option(["--create-pr"], is_flag=True, help="Open a pull request instead of merging."),
        click.Option(["--pr-target"], metavar="BRANCH", help="The target of the pull request."),
        click.Option(["--adapter"], metavar="TYPE", help="Which kind of agent answers."),
        click.Option(["--sandbox"], metavar="KIND", help="worktree, bubblewrap, docker or podman."),
        click.Option(["--i-accept-the-risk", "accepts_risk"], is_flag=True, help="bypassPermissions without walls."),
        click.Option(["--model"], help="The model, where a step names none of its own."),
        click.Option(["--mode"], metavar="KEY", help="Begin at the step that entryStepMapping has for this key."),
        click.Option(["--set", "settings"], multiple=True, metavar="PATH=VALUE", help="Set any value of agent.json."),
        click.Option(["--may-change"], multiple=True, metavar="GLOB", help="A protected path that it may change."),
        click.Option(["--json", "as_json"], is_flag=True, help="Print the result as JSON."),
        click.Option(["--quiet"], is_flag=True, help="Show nothing while it works."),
    ]


def _start(house: House, definition: AgentDefinition, given: dict[str, Any]) -> int:
    values = _parameters(definition, given)
    layers = _command_line_layers(definition, given)
    if layers:
        definition = house.registry.load(definition.name, layers)
    mode = given["mode"]
    mapping = definition.registry.entry_step_mapping
    if mode is not None and mode not in mapping:
        problem = Problem(COMMAND_LINE, "--mode", f'no entry step is mapped to "{mode}"', did_you_mean(mode, mapping))
        raise ConfigurationError((problem,))
    plan = RunPlan(
        run=new_run_id(definition.name),
        definition=definition,
        parameters=values,
        project=house.project.name,
        mode=mode,
        branch=given["branch"],
        base_branch=given["base_branch"],
        may_change=given["may_change"],
        accepts_risk=given["accepts_risk"],
        process=os.getpid(),
    )
    return exit_code(execute(house, plan, given["as_json"], given["quiet"]))


def _parameters(definition: AgentDefinition, given: dict[str, Any]) -> dict[str, Any]:
    """The value of every parameter; what is required and not given is refused."""
    values: dict[str, Any] = {}
    missing: list[Problem] = []
    for name, parameter in definition.file.parameters.items():
        value = given[_destination(name)]
        value = list(value) if isinstance(value, tuple) and value else (None if value == () else value)
        value = parameter.default if value is None else value
        if value is None and parameter.required:
            told = parameter.description or "the agent needs it"
            missing.append(Problem(COMMAND_LINE, option_name(name, parameter), f"is required and missing: {told}"))
        values[name] = value
    if missing:
        raise ConfigurationError(tuple(missing), hint=f"genba run {definition.name} --help")
    return values


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


def _warn_of_ignored(extra: list[str], definition: AgentDefinition) -> None:
    known = [option_name(name, parameter) for name, parameter in definition.file.parameters.items()]
    known += RUN_OPTIONS
    bare = {option.removeprefix("--"): option for option in known}
    after_option = False
    for word in extra:
        name = word.partition("=")[0]
        if name == "--resume":
            raise UsageError("--resume goes with a run, not with an agent", hint="genba run --resume RUN")
        if not name.startswith("-"):
            if not after_option:
                show_warning(f'"{word}" is ignored: {definition.name} takes options only')
            after_option = False
            continue
        after_option = "=" not in word
        near = nearest(name.lstrip("-"), bare)
        hint = f'; did you mean "{bare[near]}"?' if near else ""
        show_warning(f"{name} is not declared by {definition.name} and is ignored{hint}")


@contextlib.contextmanager
def _view(quiet: bool) -> Iterator[tuple[Any, ...]]:
    if quiet:
        yield ()
    elif sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        from rich.console import Console  # noqa: PLC0415  (only somebody who watches pays for rich)

        from genba.entrypoints.cli.live_view import LiveView  # noqa: PLC0415

        with LiveView(Console(stderr=True)) as view:
            yield (view,)
    else:
        yield (PlainView(lambda line: click.echo(line, err=True)),)


def execute(house: House, plan: RunPlan, as_json: bool, quiet: bool) -> RunResult:
    """Run a plan in front of whoever watches."""
    with _view(quiet) as listeners:
        result = run_async(house.prepare(plan, listeners).execute())
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(result), indent=2).decode())
    elif quiet:
        click.echo(printable(f"{result.outcome}: {result.reason}"), err=True)
    if result.hint:
        show_hint(result.hint)
    if house.project.file.tracker.github is not None and not quiet:
        _tell_of_github(house, result)
    return result


def _tell_of_github(house: House, result: RunResult) -> None:
    """What of this run is not there yet, and how its pull request goes on."""
    office = house.office()
    waiting = [] if office is None else [one for one in office.outbox().list() if one.run == result.run]
    if waiting:
        count = f"{len(waiting)} change{'s wait' if len(waiting) > 1 else ' waits'} in the outbox"
        why = next((one.error for one in waiting if one.error), "")
        show_warning(f"{count}: {why}" if why else count)
        failed = any(one.status is DeedStatus.FAILED for one in waiting)
        show_hint("genba outbox list" if failed else "genba outbox send")
    elif result.pull_request and _in_review(house, result.issue):
        show_hint("genba sync   once it is reviewed or merged")


def _in_review(house: House, issue: int | None) -> bool:
    """Whether its task follows the pull request: an agent that leaves issues alone moves none."""
    from genba.domain.tasks import TaskStatus  # noqa: PLC0415  (a run without a task does not load them)

    return issue is not None and house.board().get(issue).status is TaskStatus.REVIEW


def exit_code(result: RunResult) -> int:
    match result.outcome:
        case Outcome.COMPLETED:
            return 0
        case Outcome.BUDGET_EXHAUSTED:
            return 6
    in_the_way = (MergeStatus.CONFLICT, MergeStatus.CHECKOUT_IN_THE_WAY)
    return 5 if result.merge in in_the_way else 1
