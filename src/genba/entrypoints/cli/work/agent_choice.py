"""The agent of `genba run 12`: the one that the task, its type or work.agent names."""

from genba.domain.errors import NotFoundError
from genba.entrypoints.cli.failures import show_note
from genba.wiring import ProjectContext


def issue_number(text: str) -> int | None:
    """The number in `12` or `#12`."""
    digits = text.removeprefix("#")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None  # noqa: PLR2004


def agent_for(context: ProjectContext, number: int) -> str:
    """The name of the agent that takes an issue. Raises NotFoundError where none does."""
    default = context.project.fleet.work.agent
    if not context.has_board():
        return default
    from genba.judgement.scheduling.assignment import NoAgent, assign  # noqa: PLC0415  (most sessions have no task)

    task = context.board().get(number)
    infos, _ = context.registry.agents()
    choice = assign(task, [each for each in infos if each.answers], default, context.project.stages.get(task.type, ()))
    if isinstance(choice, NoAgent):
        raise NotFoundError(
            f"no agent takes task #{number}: {choice.why}",
            unchanged="nothing was started.",
            hint=f"genba run AGENT --issue {number}   agents: genba agent list",
        )
    show_note(f"#{number} {task.title}: {choice.agent}, because {choice.why}")
    return choice.agent
