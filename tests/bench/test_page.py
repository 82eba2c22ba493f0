"""The page of numbers is made of the ledgers, and of nothing else."""

import re
from pathlib import Path

import pytest

from bench import headlines, ledgers, page, peers
from bench.ledgers import Ledger
from bench.measuring import Row

ABSENT = peers.Peers()


def ledger(*rows: Row, about: str = "A thing", **more: object) -> Ledger:
    facts = {"processor": "a fast one", "Python, git": "3.11.7, 2.39.5", "load when it began": "0.1"}
    return Ledger(about, "make thing", "2026-01-05", "abc1234", facts, rows, dict(more))


def test_the_page_says_what_the_ledgers_say() -> None:
    assert page.TARGET.read_text(encoding="utf-8") == page.page(ledgers.read(), peers.read()), (
        "python -m bench.page writes it anew"
    )


def test_the_front_page_tells_no_other_figures() -> None:
    text = page.README.read_text(encoding="utf-8")

    assert page.readme(text, ledgers.read()) == text, "python -m bench.page writes it anew"
    assert text.count(page.BEGIN) == text.count(page.END) == 1


@pytest.mark.parametrize("row", [Row("a / b", "1 ms beside 2 ms", 0.5, 2.0), Row("a / b", "slow", 3.0, 2.0)])
def test_a_section_says_what_holds(row: Row) -> None:
    shown = page.section(ledger(row, Row("told", "only | told")))

    assert (
        f"| a / b | {row.ratio:.2f}× | 2× | {'holds' if row.holds else '**does not hold**'} | {row.figure} |" in shown
    )
    assert "| told |  |  |  | only \\| told |" in shown


@pytest.mark.parametrize(
    ("about", "title", "text"),
    [
        ("From 10 to 10,000 tasks", "From 10 to 10,000 tasks", ""),
        ("Rounds of chaos: a fleet, while it is killed.", "Rounds of chaos", "A fleet, while it is killed."),
        ("A day. It is 300 times as fast. Nobody sleeps.", "A day", "It is 300 times as fast. Nobody sleeps."),
    ],
)
def test_what_a_ledger_is_about_becomes_a_title_and_a_text(about: str, title: str, text: str) -> None:
    shown = page.section(ledger(Row("told", "told"), about=about))

    assert shown.startswith(f"## {title}\n\nMeasured on ")
    assert (f"\n\n{text}\n\n| what |" in shown) or not text


def test_a_count_is_not_reported_as_a_ratio() -> None:
    shown = page.section(ledger(Row("lost updates", "1920 writes", 0.0, 0.0), Row("kB more", "12 kB", 12.344, 64.0)))

    assert "| lost updates | 0 | 0 | holds | 1920 writes |" in shown
    assert "| kB more | 12.34 | 64 | holds | 12 kB |" in shown


def test_a_section_names_its_day_its_command_its_commit_and_its_machine() -> None:
    shown = page.section(ledger(Row("told", "told")))

    assert "Measured on 2026-01-05 by `make thing` at commit `abc1234`." in shown
    assert "a fast one; Python 3.11.7, git 2.39.5; load 0.1." in shown


def test_a_section_shows_its_notes() -> None:
    shown = page.section(ledger(notes="Read this first."))

    assert "\nRead this first.\n" in shown


def test_what_was_never_measured_is_reported() -> None:
    shown = page.page({}, ABSENT)

    rows = re.findall(r"^\| \*\*(.+?)\*\*: .* \| not measured yet \| .* \| `(.+)` \|$", shown, re.MULTILINE)
    assert [name for name, _ in rows] == [each.name for each in headlines.HEADLINES]
    assert all(command.startswith("make ") for _, command in rows)


def test_known_parts_come_first_and_no_part_is_left_out() -> None:
    found = {name: ledger(about=name) for name in ("zebra", "chaos", "ant", "truth")}

    assert page.in_order(found) == ["truth", "chaos", "ant", "zebra"]


def test_every_link_within_the_page_leads_somewhere() -> None:
    text = page.page(ledgers.read(), peers.read())
    titles = {headlines.anchor(title) for title in re.findall(r"^## (.+)$", text, re.MULTILINE)}

    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= titles


def test_every_measured_headline_is_found_in_its_ledger() -> None:
    found = ledgers.read()
    shown = headlines.table(found, peers.read())

    assert shown.count(headlines.NOT_YET) == sum(each.part not in found for each in headlines.HEADLINES)
    assert headlines.NOT_THERE not in shown + headlines.paragraph(found)


def test_a_ledger_of_another_form_spoils_its_own_line_and_no_other() -> None:
    shown = headlines.table({"chaos": ledger(about="Chaos"), "truth": TRUTH}, ABSENT)

    assert shown.count(headlines.NOT_THERE) == 4
    assert "**0 of 118 in [our own corpus]" in shown


def test_a_row_that_is_gone_is_an_error_and_no_empty_cell() -> None:
    with pytest.raises(LookupError, match="no row that begins with 'speed'"):
        headlines.row(ledger(Row("told", "told")), "speed")


@pytest.mark.parametrize(
    ("count", "total", "output"), [(0, 118, "0 of 118"), (79, 118, "79 of 118 (67 %)"), (0, 30000, "0 of 30,000")]
)
def test_a_count_is_reported_with_its_total(count: int, total: int, output: str) -> None:
    assert headlines.of(count, total) == output


def test_nothing_seen_is_not_called_never() -> None:
    assert headlines.bound(118) == "below 2.5 % with 95 % confidence"


def test_what_is_right_already_is_not_written(tmp_path: Path) -> None:
    target, front = tmp_path / "numbers.md", tmp_path / "README.md"
    front.write_text(f"# Front\n\n{page.BEGIN}old\n{page.END}\nThe end.\n")
    folder = tmp_path / "measured"
    folder.mkdir()

    page.write(folder, target, front)
    first = target.stat().st_mtime_ns, front.stat().st_mtime_ns
    page.write(folder, target, front)

    assert front.read_text() == f"# Front\n\n{page.BEGIN}{page.END}\nThe end.\n"
    assert (target.stat().st_mtime_ns, front.stat().st_mtime_ns) == first


FOUND = {
    "rounds": 500,
    "tasks": 30000,
    "merges": 26000,
    "troubles": {"worker": 3000, "disk": 1000},
    "lost commits": 0,
    "doubled merges": 0,
    "false done": 0,
    "leftovers": 0,
    "other findings": 0,
    "recovered": {"times": 2000, "median seconds": 0.9, "worst seconds": 3.1},
}
CHAOS = ledger(about="Chaos.", found=FOUND)
JUDGES = {"genba": (0, 0), "report": (116, 0), "tree": (93, 0), "commit": (85, 0)}
TRUTH = ledger(
    about="Truth",
    lies=118,
    honest=35,
    judges={name: {"false_done": done, "false_refused": refused} for name, (done, refused) in JUDGES.items()},
)
REAL = ledger(
    Row("genba run with Claude Code / the bare binary, walls", "935 ms beside 738 ms", 1.27, 1.5), about="Real"
)


def report(part: str, found: Ledger) -> dict[str, str]:
    """What the table says of one ledger, by the name of the headline."""
    rows = re.findall(r"^\| \*\*([^*]+)\*\*: .*? \| (.*)$", headlines.table({part: found}, ABSENT), re.MULTILINE)
    return {name: rest for name, rest in rows if headlines.NOT_YET not in rest}


def test_what_chaos_came_to_is_reported_with_how_much_of_it_there_was() -> None:
    rows = report("chaos", CHAOS)

    assert list(rows) == ["lost work", "doubled work", "leftovers", "recovery"]
    assert rows["lost work"].startswith("**0 in 500 rounds with 26,000 merges and 4,000 troubles** |")
    assert rows["recovery"].startswith("**0.9 s, at worst 3.1 s, of 2,000 deaths** |")
    assert rows["recovery"].endswith("[measured](#chaos) by `make thing` |")


def test_trouble_that_a_machine_could_not_make_is_reported() -> None:
    rows = report("chaos", ledger(about="Chaos", found=FOUND | {"not run": ["clock", "disk"]}))

    assert rows["doubled work"].startswith(
        "**0 in 500 rounds with 26,000 merges and 4,000 troubles, without clock and disk**"
    )


def test_false_done_is_shown_beside_other_judges_of_the_same_agents() -> None:
    rows = report("truth", TRUTH)

    assert rows["false done"].startswith(
        "**0 of 118 in [our own corpus](lying-agents.md#the-corpus-is-our-own)** | trust the agent: 116"
    )
    assert "trust passing tests in a clean clone: 85 of 118 (72 %)" in rows["false done"]
    assert rows["false reject"].startswith("**0 of 35 in [our own corpus]")


def test_what_could_not_run_is_reported() -> None:
    missing = ledger(
        Row("genba run with Claude Code / the bare binary", "not run: make clis installs it"), about="Real"
    )

    assert report("real_agents", REAL)["overhead"].startswith("**1.27×: 935 ms** | the bare binary, walls: 738 ms |")
    assert report("real_agents", missing)["overhead"].startswith("**not run: make clis installs it** |  |")
    assert headlines.paragraph({"real_agents": missing}) == ""


def test_the_front_page_tells_only_what_was_measured() -> None:
    shown = headlines.paragraph({"chaos": CHAOS, "truth": TRUTH, "real_agents": REAL})

    assert "118 lying agents of our corpus: 0 accepted (93 by a loop that trusts passing tests)" in shown
    assert "35 honest agents: 0 rejected" in shown
    assert "500 chaos rounds: 0 lost commits, 0 double merges, 0 false done, 0 leftovers" in shown
    assert "a session with Claude Code takes 1.27× the time of the bare agent" in shown
    assert headlines.paragraph({}) == ""
