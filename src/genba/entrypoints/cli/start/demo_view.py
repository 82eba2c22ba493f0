"""How the story of a demo looks: one line for each issue, what it came to, and what to type next."""

from collections.abc import Iterator

from genba.entrypoints.cli.rendering.columns import cell, cut, fit, width
from genba.entrypoints.cli.start.demo_story import Attempted, Story, TaskStory

_WIDTH = 100
_MARKS = {"done": "●", "rejected": "✗", "waits": "?"}
_SHORT = 7
_COMMAND = 60


def story_lines(story: Story, answers: dict[int, str]) -> Iterator[str]:
    """The table, and the figures below it. `answers` are words to answer a question with."""
    across = max(width(f"#{each.task} {cell(each.title)}") for each in story.tasks)
    agents = max((width(each.agent) for message in story.tasks for each in message.attempts), default=0)
    for message in story.tasks:
        name = f"#{message.task} {cell(message.title)}"
        for number, attempt in enumerate(message.attempts):
            shown = name if number == 0 else "   └ rework"
            status = f"{_MARKS.get(attempt.status, '·')} {attempt.status}"
            line = f" {fit(shown, across)}  {fit(status, 10)}  {fit(cell(attempt.agent), agents)}  "
            end = _end(message, attempt) if number == len(message.attempts) - 1 else _vain(attempt)
            typed = message.command.replace("…", answers.get(message.task, "…"))
            yield from _within(line, end, typed if number == len(message.attempts) - 1 else "")
    yield ""
    yield f" {totals(story)}"


def next_lines(commands: list[tuple[str, str]]) -> Iterator[str]:
    """Commands to type, and what each is for."""
    across = max(len(command) for command, _ in commands if len(command) <= _COMMAND)
    for number, (command, purpose) in enumerate(commands):
        shown = fit(command, across) if len(command) <= across else command
        yield f" {'next' if number == 0 else '    '}   {shown}   {purpose}"


def totals(story: Story) -> str:
    """The figures, as they were counted."""
    every = f"{story.green} of {story.commits} commits of main are green"
    green = "main is green at every commit" if story.green == story.commits else every
    return " · ".join(
        (
            f"{story.sessions} session{'' if story.sessions == 1 else 's'}",
            f"{story.false_done} false done",
            f"{story.commits_lost} commit{'' if story.commits_lost == 1 else 's'} lost",
            green,
        )
    )


def _within(line: str, end: str, typed: str) -> Iterator[str]:
    """The line, and the command to type about it, below it where it has no room. A command is never cut."""
    whole = f"{line}{end}"
    if not typed:
        yield cut(whole, _WIDTH).rstrip()
    elif width(whole) + width(typed) + 3 <= _WIDTH:
        yield f"{whole}   {typed}"
    else:
        yield cut(whole, _WIDTH).rstrip()
        yield f"{' ' * width(line)}{typed}"


def _vain(attempt: Attempted) -> str:
    """The claim of an attempt, and what was verified."""
    if not attempt.failed_on:
        return cut(cell(attempt.claim), 60)
    return f'says "{cell(attempt.claim)}"; {", ".join(attempt.failed_goals)} failed on {attempt.failed_on[:_SHORT]}'


def _end(task: TaskStory, attempt: Attempted) -> str:
    if task.question:
        return f'needs you: "{cell(task.question)}"'
    if attempt.status == "rejected":
        return _vain(attempt)
    parts = [fit(f"{attempt.iterations} iteration{'' if attempt.iterations == 1 else 's'}", 12)]
    parts.append(f"goals {task.goals_passed}/{task.goals}")
    if task.merged:
        parts.append(f"merged {task.merged[:_SHORT]}")
    if task.conflict_paths:
        rivals = " and ".join(f"#{number}" for number in task.conflicts_with) or "main"
        resolved = f", resolved in round {task.rounds}" if task.merged else ""
        return f"conflict with {rivals} in {', '.join(task.conflict_paths)}{resolved}"
    return "  ".join(parts)
