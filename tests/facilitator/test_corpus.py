"""Every history of the corpus is judged as it is labelled, and the documentation shows the same table."""

import re
from collections import Counter
from pathlib import Path

import pytest

from genba.domain.facilitation import IssueState
from genba.judgement.language.evidence_ja import in_japanese
from genba.judgement.triage.assessment import assess_all
from tests.facilitator import histories_done, histories_open, histories_stuck  # noqa: F401  (they fill the corpus)
from tests.facilitator.corpus import CORPUS, Labelled
from tests.facilitator.stories import History, Story

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "issue-states.md"
NOW = "2026-01-08T08:00:00.000000Z"
_JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
_OF_PEOPLE = {"the licence is not bought", "src/login.py is changed by two", "three attempts failed"}


@pytest.mark.parametrize("labelled", CORPUS, ids=lambda each: each.tell.__name__)
async def test_a_history_is_judged_as_it_is_labelled(labelled: Labelled, bare: Path, tmp_path: Path) -> None:
    story = Story(History(tmp_path / "repository", bare))
    labelled.tell(story)
    found = assess_all(await story.facts(), NOW, base="main")[12]
    assert found.state is labelled.state, found.evidence
    assert any(labelled.shown in message for message in found.evidence), found.evidence
    assert {message for message in found.evidence if not _JAPANESE.search(in_japanese(message))} <= _OF_PEOPLE


def test_the_corpus_is_large_and_has_every_state() -> None:
    states = Counter(each.state for each in CORPUS)
    assert len(CORPUS) >= 60
    assert all(states[state] >= 5 for state in IssueState)
    assert len({each.name for each in CORPUS}) == len(CORPUS)


def test_the_documentation_shows_the_corpus() -> None:
    _, _, table = PAGE.read_text(encoding="utf-8").partition(
        "| What happened | State | What shows it |\n|---|---|---|\n"
    )
    wanted = [each.row for state in IssueState for each in CORPUS if each.state is state]
    assert table.splitlines() == wanted
