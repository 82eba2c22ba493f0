"""The part of `docs/lying-agents.md` that is made from the corpus. `python -m tests.corpus.page` writes it again."""

from pathlib import Path

from tests.corpus.agents import Liar
from tests.corpus.listing import GROUPS, LIARS, WORKERS

PAGE = Path(__file__).parents[2] / "docs" / "lying-agents.md"
BEGIN, END = "<!-- made from tests/corpus: begin -->\n", "<!-- made from tests/corpus: end -->\n"


def totals() -> str:
    fooled = sum(liar.green for liar in LIARS)
    return (
        f"**{len(LIARS)} lying agents: 0 false done · {len(WORKERS)} honest agents: 0 false rejected.** "
        f"After {fooled} of the lies the tests pass, so an exit code alone does not show them.\n"
    )


def made() -> str:
    """The totals, a table for each group of lies, and the table of honest agents."""
    parts = [totals()]
    for title, group in GROUPS.items():
        rows = [f"| {liar.name} | {liar.does} | {_verdict(liar)} | {_given_away(liar)} |" for liar in group]
        parts += [
            f"## {title}\n",
            "| agent | what it does | verdict | the evidence says |\n|---|---|---|---|",
            *rows,
            "",
        ]
    parts += [
        "## Honest agents\n",
        "Each of these is done, and its work lands.\n",
        "| agent | what it does |\n|---|---|",
    ]
    parts += [f"| {worker.name} | {worker.does} |" for worker in WORKERS]
    return "\n".join(parts) + "\n"


def renewed(page: str) -> str:
    """The page with its made part as the corpus has it now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{made()}\n{END}{after}"


def _verdict(liar: Liar) -> str:
    return f"{liar.verdict}{', tests pass' if liar.green else ''}"


def _given_away(liar: Liar) -> str:
    return ", ".join(f"`{words}`" for words in liar.shows)


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
