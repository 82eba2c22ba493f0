"""The table at the top of the page of numbers, and the paragraph of README.md."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bench.ledgers import Ledger
from bench.measuring import Row
from bench.peers import TITLE, Peers

TITLE_OF_TABLE = "Summary"
NOT_YET = "not measured yet"
NOT_THERE = "not in its ledger"
"""The cell for a ledger of an unexpected form; a test fails then."""
_COMMANDS = {"chaos": "make chaos", "soak": "make soak", "tests": "make test-all"}


@dataclass(frozen=True)
class Headline:
    """One line of the table: read from one ledger."""

    name: str
    means: str
    part: str
    figure: Callable[[Ledger], str]
    beside: Callable[[Ledger], str] | None = None
    """The floor: the bare thing, or another way to do the same, measured in the same run."""


def table(found: Mapping[str, Ledger], others: Peers) -> str:
    """Every headline, measured or not."""
    lines = [f"## {TITLE_OF_TABLE}\n", "| | Genba | alternative | command |", "|---|---|---|---|"]
    for each in HEADLINES:
        ledger = found.get(each.part)
        command = _COMMANDS.get(each.part, f"make bench PARTS={each.part}")
        if ledger is None:
            lines.append(line(f"**{each.name}**: {each.means}", NOT_YET, _peers(each, others), f"`{command}`"))
            continue
        beside = "; ".join(filter(None, (_read(each.beside, ledger), _peers(each, others))))
        how = f"[measured](#{anchor(title(ledger))}) by `{ledger.command}`"
        lines.append(line(f"**{each.name}**: {each.means}", f"**{_read(each.figure, ledger)}**", beside, how))
    return "\n".join(lines) + "\n"


def paragraph(found: Mapping[str, Ledger]) -> str:
    """The figures of README.md. Parts without a ledger are left out."""
    lines = [_read(sentence, found[part]) for part, sentence in _SENTENCES.items() if part in found]
    lines = [sentence for sentence in lines if sentence]
    return (
        f"**Measured**: {'; '.join(lines)}. [All numbers](docs/numbers.md), each with its command.\n" if lines else ""
    )


def _read(cell: Callable[[Ledger], str] | None, ledger: Ledger) -> str:
    try:
        return cell(ledger) if cell else ""
    except LookupError:
        return NOT_THERE


def line(*cells: str) -> str:
    """A row of a table."""
    escaped = (re.sub(r"(?<!\\)\|", r"\\|", cell) for cell in cells)
    return f"| {' | '.join(escaped)} |"


def title(ledger: Ledger) -> str:
    """What a section is called: what its ledger is about, up to the first stop."""
    return re.split(r"[:.](?: |$)", ledger.about, maxsplit=1)[0]


def anchor(title: str) -> str:
    """Where a heading is found, as GitHub names it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def row(ledger: Ledger, begins: str) -> Row:
    """The row of a ledger whose name begins so."""
    for each in ledger.rows:
        if each.what.startswith(begins):
            return each
    raise LookupError(f"the ledger of {ledger.about!r} has no row that begins with {begins!r}")


def of(count: int, total: int) -> str:
    """A count and its rate."""
    if count == 0:
        return f"0 of {total:,}"
    return f"{count} of {total:,} ({100 * count / total:.0f} %)"


def bound(total: int) -> str:
    """What a rate is when nothing was seen: the rule of three."""
    return f"below {300 / total:.1f} % with 95 % confidence"


def _peers(headline: Headline, others: Peers) -> str:
    given = others.of(headline.name)
    if given and headline.beside:
        return f"[others](#{anchor(TITLE)})"
    if given:
        return "; ".join(f"{each.system} publishes {each.figure}" for each in given)
    return "" if headline.beside else f"[none found](#{anchor(TITLE)})"


def _judge(ledger: Ledger, judge: str, wrong: str) -> int:
    return int(ledger.more["judges"][judge][wrong])


def _wrong(name: str, among: str) -> tuple[Callable[[Ledger], str], Callable[[Ledger], str]]:
    """How often Genba was wrong in one way, and how often simpler judges were on the same agents."""

    def figure(ledger: Ledger) -> str:
        count, total = _judge(ledger, "genba", name), ledger.more[among]
        return f"{of(count, total)} in [our own corpus](lying-agents.md#the-corpus-is-our-own)"

    def others(ledger: Ledger) -> str:
        who = {"report": "trust the agent", "tree": "trust passing tests in the worktree"}
        who |= {"commit": "trust passing tests in a clean clone"}
        return "; ".join(
            f"{words}: {of(_judge(ledger, judge, name), ledger.more[among])}" for judge, words in who.items()
        )

    return figure, others


def _asked(ledger: Ledger) -> str:
    found = ledger.more
    return of(found["asked"], found["commits"]) if "asked" in found else ledger.rows[0].figure


def _answered(ledger: Ledger) -> str:
    if "asked" not in ledger.more:
        return ""
    return f"with the named permission, returned again: {row(ledger, 'real commits that are returned al').figure}"


def chaos(ledger: Ledger) -> dict[str, Any]:
    """What the rounds of chaos came to, by names without spaces."""
    return {name.replace(" ", "_"): value for name, value in ledger.more["found"].items()}


def _counted(name: str, what: str) -> Callable[[Ledger], str]:
    """A count of the chaos, and out of how many."""

    def figure(ledger: Ledger) -> str:
        found = chaos(ledger)
        happened = sum(found["troubles"].values())
        without = f", without {' and '.join(found['not_run'])}" if found.get("not_run") else ""
        rounds = f"{found['rounds']:,} rounds with {found[what]:,} {what}"
        return f"{found[name]} in {rounds} and {happened:,} troubles{without}"

    return figure


def _recovery(ledger: Ledger) -> str:
    seconds = {name.replace(" ", "_"): value for name, value in chaos(ledger)["recovered"].items()}
    return (
        f"{seconds['median_seconds']:.1f} s, at worst {seconds['worst_seconds']:.1f} s, of {seconds['times']:,} deaths"
    )


def _beside(begins: str, ratio: bool = True) -> tuple[Callable[[Ledger], str], Callable[[Ledger], str]]:
    """A row that says `this beside that; more`: its ratio with this, and that. What was not run says so."""

    def figure(ledger: Ledger) -> str:
        found = row(ledger, begins)
        if found.ratio is None:
            return found.figure
        this = found.figure.partition(" beside ")[0]
        return f"{found.ratio:.2f}×: {this}" if ratio else this

    def floor(ledger: Ledger) -> str:
        found = row(ledger, begins)
        that = found.figure.partition(" beside ")[2].partition(";")[0]
        return f"{found.what.partition(' / ')[2]}: {that}" if that else ""

    return figure, floor


def _tests(ledger: Ledger) -> str:
    found = row(ledger, "tests that failed")
    return f"{found.found} failed: {found.figure}"


HEADLINES = (
    Headline("false done", "lies that are accepted as work", "truth", *_wrong("false_done", "lies")),
    Headline("false reject", "refused honest work", "truth", *_wrong("false_refused", "honest")),
    Headline("asks first", "real commits that change an existing test or check", "real_commits", _asked, _answered),
    Headline("lost work", "commits that no ref reaches", "chaos", _counted("lost_commits", "merges")),
    Headline("doubled work", "tasks merged twice", "chaos", _counted("doubled_merges", "merges")),
    Headline(
        "leftovers",
        "processes, worktrees, branches, locks or rows left behind",
        "chaos",
        _counted("leftovers", "tasks"),
    ),
    Headline(
        "recovery",
        "from the death of a single executor on SQLite to the next event of its successor",
        "chaos",
        _recovery,
    ),
    Headline(
        "overhead", "a session with a real agent, beside the agent alone", "real_agents", *_beside("genba run with")
    ),
    Headline(
        "throughput", "200 instant tasks, each verified and merged, on 4 workers", "fleet", *_beside("200 instant")
    ),
    Headline("memory per worker", "at work, without its agent", "memory", *_beside("memory of a worker at work")),
    Headline(
        "model calls while idle",
        "all of Genba running, without work",
        "idle_calls",
        *_beside("model calls while idle", ratio=False),
    ),
    Headline("tests", "every test of both tiers, in one run", "tests", _tests),
)
"""The rows of the table."""


def _overhead(ratio: float | None) -> str:
    return "" if ratio is None else f"a session with Claude Code takes {ratio:.2f}× the time of the bare agent"


_SENTENCES: dict[str, Callable[[Ledger], str]] = {
    "truth": lambda ledger: (
        f"{ledger.more['lies']} lying agents of our corpus: {_judge(ledger, 'genba', 'false_done')} accepted "
        f"({_judge(ledger, 'tree', 'false_done')} by a loop that trusts passing tests); {ledger.more['honest']} honest "
        f"agents: {_judge(ledger, 'genba', 'false_refused')} rejected"
    ),
    "chaos": lambda ledger: (
        "{rounds:,} chaos rounds: {lost_commits} lost commits, {doubled_merges} double merges, {false_done} false "
        "done, {leftovers} leftovers".format(**chaos(ledger))
    ),
    "real_agents": lambda ledger: _overhead(row(ledger, "genba run with").ratio),
}
"""The sentence for each part in README.md."""
