"""`genba agent`: what agents there are, what they are made of, and whether they hold."""

import click
import msgspec

from genba.definitions.agent.definition import AgentDefinition
from genba.definitions.agent.layers import leaves
from genba.definitions.agent.parameters import option_name
from genba.definitions.agent.scaffold import TEMPLATES, scaffold
from genba.definitions.steps.step_graph import StepGraph
from genba.domain.errors import ConfigurationError
from genba.domain.problems import Problem
from genba.domain.workflow.actions import RegisteredAgent
from genba.entrypoints.cli.admin.agent_import import import_agents
from genba.entrypoints.cli.admin.registration_commands import passkey, register
from genba.entrypoints.cli.failures import show_error, show_hint, show_problem, show_warning
from genba.entrypoints.cli.project_lookup import project_here
from genba.entrypoints.cli.rendering.json_output import print_json
from genba.entrypoints.cli.rendering.printable import printable
from genba.entrypoints.cli.rendering.tables import table
from genba.wiring import ProjectContext


@click.group("agent")
def agent() -> None:
    """List, show, check and create agents."""


agent.add_command(register)
agent.add_command(passkey)
agent.add_command(import_agents)


@agent.command("list")
@click.option("--capability", metavar="TYPE", help="Only agents with this action type.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_agents(capability: str | None, as_json: bool) -> int:
    """List the agents of the project and the built-in ones."""
    registry = project_here().registry
    infos, broken = registry.agents()
    if capability is not None:
        infos = registry.by_capability(capability)
    external_agents = _registered() if capability is None else ()
    if as_json:
        print_json({"agents": infos, "broken": broken, "registered": external_agents})
        return 0
    rows = [("agent", "can do", "from", "what it is for")]
    rows += [(info.name, ", ".join(info.capabilities) or "-", info.source, info.description) for info in infos]
    rows += [
        (
            external_agent.name,
            ", ".join(external_agent.capabilities) or "-",
            "registered",
            f"comes by itself, as a {external_agent.hierarchy}",
        )
        for external_agent in external_agents
    ]
    for line in table(rows):
        click.echo(line)
    for name, problems in broken.items():
        show_warning(f"{name} cannot be read: {problems[0]}")
        show_hint(f"genba agent check {name}")
    return 0


def _registered() -> tuple[RegisteredAgent, ...]:
    """Those who may come by themselves, where there is a blackboard that knows of them."""
    context = project_here()
    if not context.has_board():
        return ()
    from genba.application.project.agent_registration import registered  # noqa: PLC0415  (only a project with a blackboard pays for it)

    return registered(context)


@agent.command("show")
@click.argument("name")
@click.option("--explain", is_flag=True, help="Each effective value, and where it came from.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(name: str, explain: bool, as_json: bool) -> None:
    """Show one agent: parameters, steps, and how it completes."""
    definition = project_here().registry.load(name)
    if explain:
        _explain(definition, as_json)
    elif as_json:
        print_json({"agent": definition.file, "steps": definition.registry, "hash": definition.digest})
    else:
        for line in _portrait(definition):
            click.echo(printable(line))


def _explain(definition: AgentDefinition, as_json: bool) -> None:
    effective = msgspec.to_builtins(definition.file)
    rows = []
    for path, value in leaves(effective):
        source = definition.sources.get(path) or _source_above(path, definition.sources)
        rows.append((path, msgspec.json.encode(value).decode(), source))
    if as_json:
        print_json(
            [{"path": path, "value": msgspec.json.decode(value), "from": source} for path, value, source in rows]
        )
        return
    for line in table(rows):
        click.echo(line)


def _source_above(path: str, sources: dict[str, str]) -> str:
    """True for a list that is set as a whole or a value that is a default."""
    while path:
        if path in sources:
            return sources[path]
        path = path.rpartition(".")[0]
    return "default"


def _portrait(definition: AgentDefinition) -> list[str]:
    file = definition.file
    lines = [f"{file.name} · {file.title}", file.description, ""]
    lines += table(
        [
            ("completes", _completes(definition)),
            ("adapter", definition.adapter_type or "not chosen"),
            ("model", file.runner.flow.default_model),
            ("can do", ", ".join(definition.capabilities) or "-"),
            ("definition", f"{definition.digest}  {file.version}".rstrip()),
        ]
    )
    if file.parameters:
        lines += ["", "parameters"]
        lines += table(
            (
                f"  {option_name(name, parameter)}",
                parameter.type,
                "required" if parameter.required else "",
                parameter.description,
            )
            for name, parameter in file.parameters.items()
        )
    if definition.state_driven:
        return lines
    lines += ["", "steps"]
    graph = StepGraph(definition.registry, "")
    lines += table(
        (
            f"  {step_id}",
            str(step.step_kind),
            ", ".join(condition.validator for condition in step.completion_conditions) or "-",
            _ways_on(graph, step_id),
            step.description or step.name,
        )
        for step_id, step in definition.registry.steps.items()
    )
    return lines


def _completes(definition: AgentDefinition) -> str:
    runner = definition.file.runner
    if not definition.state_driven:
        return runner.completion.type
    return f"when its report is verified; it is a {runner.flow.hierarchy}, and asks what is next"


def _ways_on(graph: StepGraph, step_id: str) -> str:
    others = sorted(target or "end" for target in graph.edges[step_id] if target != step_id)
    return "→ " + (", ".join(others) or "stays")


@agent.command("check")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(name: str | None, as_json: bool) -> int:
    """Check one agent, or all, and print every problem."""
    context = project_here()
    names = [name] if name is not None else list(context.registry.folders())
    found = {each: _problems(context, each) for each in names}
    problems = [problem for each in found.values() for problem in each]
    if as_json:
        print_json({"ok": not problems, "problems": problems})
        return ConfigurationError.exit_code if problems else 0
    for unknown in context.registry.unknown_sections():
        show_problem(unknown)
    for each, wrong in found.items():
        if not wrong:
            definition = context.registry.load(each)
            chosen = definition.adapter_type
            click.echo(f"✓ {each}" if chosen else f"✓ {each}  (no adapter is chosen for it yet)")
            for notice in context.registry.overruled(definition) if each == name else ():
                show_problem(notice)
    if problems:
        show_error(ConfigurationError(tuple(problems)))
        return ConfigurationError.exit_code
    return 0


def _problems(context: ProjectContext, name: str) -> tuple[Problem, ...]:
    try:
        context.check(context.registry.load(name))
    except ConfigurationError as error:
        return error.problems
    return ()


@agent.command("new")
@click.argument("name")
@click.option("--template", type=click.Choice(sorted(TEMPLATES)), default="steps", show_default=True)
def new(name: str, template: str) -> None:
    """Write a new agent that passes its check."""
    context = project_here()
    context.refuse_links(context.project.agents_folder)
    written = scaffold(context.project.agents_folder, name, template)
    for path in written:
        click.echo(f"wrote {path.relative_to(context.project.root)}")
    then = f'genba task add "…" --assignee {name}   and: genba work' if template == "state-driven" else ""
    show_hint(f"genba agent check {name}   then: {then or f'genba run {name} --help'}")
