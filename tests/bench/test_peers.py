import re

from bench import headlines, peers


def test_every_figure_of_another_system_has_its_source_and_its_day() -> None:
    found = peers.read()

    for each in found.figures:
        assert all((each.system, each.measure, each.figure, each.means)), each
        assert each.address.startswith("https://"), each
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", each.read), each
    for silent in found.silent:
        assert silent.looked, silent
        assert all(address.startswith("https://") for address in silent.looked), silent
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", silent.read), silent


def test_no_system_both_publishes_and_does_not_publish_a_figure() -> None:
    found = peers.read()
    names = [each.system for each in found.silent]

    assert len(set(names)) == len(names)
    assert len({(each.system, each.measure, each.figure) for each in found.figures}) == len(found.figures)


def test_every_figure_of_another_system_stands_in_its_table() -> None:
    found = peers.read()
    shown = peers.section(found)

    for each in found.figures:
        assert f"| [{each.system}]({each.address}) |" in shown
    for silent in found.silent:
        assert f"- {silent.system}: [1]({silent.looked[0]})" in shown


def test_a_figure_of_a_headline_stands_beside_it() -> None:
    given = peers.Figure("Somebody", "recovery", "9 s", "killed once", "https://somebody.example", "2026-01-05")

    assert "Somebody publishes 9 s" in headlines.table({}, peers.Peers((given,)))
