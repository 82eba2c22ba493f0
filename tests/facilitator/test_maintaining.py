"""What the facilitator proposes to say: once, and not again before something changes."""

from typing import Any

import pytest

from genba.domain.facilitation import FacilitateAction, IssueAssessment, IssueFacts, IssueState
from genba.domain.tasks.task import TaskStatus
from genba.judgement.triage.assessment import assess_all
from genba.judgement.triage.maintenance import Keeping, Known, Posted, actions, comment_of, digest_of
from genba.judgement.triage.recommendations import Recommender, TriageContext
from tests.facilitator.fields import NOW, agent, field, issue, judged, landed, request, session


def proposed(
    *issues: IssueFacts, reply: dict[int, Posted] | None = None, **keeping: Any
) -> tuple[FacilitateAction, ...]:
    states, facts = judged(*issues), field(*issues)
    moves = Recommender(states, facts, (agent(),), TriageContext())
    return actions(states, facts, reply or {}, Keeping(**keeping), Known(command_for=moves.for_comment))


def after(found: tuple[FacilitateAction, ...], states: dict[int, IssueAssessment]) -> dict[int, Posted]:
    return {
        each.issue: Posted(digest=digest_of(each.body), state=str(states[each.issue].state))
        for each in found
        if each.action in ("comment", "update")
    }


STATES = [
    (issue(commits=(landed(on_base=False),)), "Please go on with it"),
    (issue(), "it can be started"),
    (issue(dependencies=(9,)), "waits for #9"),
    (issue(pull_requests=(request(),)), "waits for a review or a merge"),
    (issue(commits=(landed(),)), "Please decide whether to close the issue"),
    (issue(missing=("the tracker does not answer",)), "Please say how it stands"),
]


@pytest.mark.parametrize(("facts", "words"), STATES)
def test_each_state_has_its_words(facts: IssueFacts, words: str) -> None:
    comment = proposed(facts)[0]
    assert comment.action == "comment"
    assert words in comment.body
    assert f"**State: {judged(facts)[12].state}**" in comment.body


def test_what_is_blocked_gets_its_label_with_the_reason_and_loses_it_when_the_way_is_clear() -> None:
    waiting = issue(dependencies=(9,))
    label = proposed(waiting)[1]
    assert (label.action, label.label, label.body) == ("label", "blocked", "waits for #9, of which nothing is known")
    clear = issue(labels=("blocked",), own_labels=("blocked",))
    unlabel = proposed(clear)[1]
    assert (unlabel.action, unlabel.label, unlabel.remove) == ("label", None, ("blocked",))


def test_a_label_that_a_person_added_stays() -> None:
    found = proposed(issue(labels=("blocked",)))
    assert [each.action for each in found] == ["comment", "attention"]


def test_labels_of_states_are_changed_by_one_call() -> None:
    labels = {"in_progress": "doing", "review_pending": "in review", "blocked": "blocked"}
    facts = issue(labels=("doing", "bug"), pull_requests=(request(),))
    label = proposed(facts, labels=labels)[1]
    assert (label.label, label.remove) == ("in review", ("doing",))


def test_a_comment_is_not_posted_twice() -> None:
    issues = (issue(1), issue(2, commits=(landed(),)), issue(3, pull_requests=(request(),)))
    first = proposed(*issues)
    assert [each.action for each in first] == ["comment"] * 3
    assert proposed(*issues, reply=after(first, judged(*issues))) == ()


def test_what_changed_is_an_edit_of_the_one_comment() -> None:
    output = after(proposed(issue()), judged(issue()))
    found = proposed(issue(pull_requests=(request(),)), reply=output)
    assert [each.action for each in found] == ["update"]


def test_time_alone_changes_no_comment() -> None:
    facts = field(issue())
    early, late = assess_all(facts, NOW), assess_all(facts, "2027-01-01T00:00:00.000000Z")
    assert comment_of(early[12]) == comment_of(late[12])


def test_a_closed_issue_without_a_comment_is_left_alone() -> None:
    assert proposed(issue(state="closed")) == ()
    output = after(proposed(issue()), judged(issue()))
    assert [each.action for each in proposed(issue(state="closed"), reply=output)] == ["update"]


def test_no_message_is_sent_while_a_session_works() -> None:
    assert proposed(issue(sessions=(session(alive=True),))) == ()


def test_a_person_is_asked_to_look_once() -> None:
    facts = issue(missing=("the tracker does not answer",))
    found = proposed(facts)
    assert [each.action for each in found] == ["comment", "attention"]
    assert found[1].body == "not known: the tracker does not answer"
    assert proposed(facts, reply=after(found, judged(facts))) == ()


def test_what_only_a_person_can_clear_needs_one_and_what_an_agent_clears_does_not() -> None:
    assert proposed(issue(question="which region?"))[-1].body == 'asks: "which region?"'
    assert [each.action for each in proposed(issue(1), issue(2, dependencies=(1,)))] == ["comment", "comment", "label"]


def test_a_person_is_asked_again_when_something_else_is_in_the_way() -> None:
    first = issue(question="which region?")
    output = after(proposed(first), judged(first))
    labelled: dict[str, Any] = {"labels": ("blocked",), "own_labels": ("blocked",)}
    assert proposed(issue(question="which region?", **labelled), reply=output) == ()
    again = proposed(issue(question="which zone?", **labelled), reply=output)
    assert [(each.action, each.body) for each in again][1:] == [("attention", 'asks: "which zone?"')]


def test_what_decides_it_stands_in_the_comment() -> None:
    assert 'Next: `genba answer 12 "…"`' in proposed(issue(question="which region?"))[0].body
    waits = issue(status=TaskStatus.REVIEW, verified="a" * 40, requires_review=True)
    assert "Next: `genba approve 12`" in proposed(waits)[0].body


def test_one_look_takes_so_many_actions_and_the_next_one_the_rest() -> None:
    issues = [issue(number) for number in range(1, 8)]
    values: dict[int, Posted] = {}
    seen: list[int] = []
    while found := proposed(*issues, reply=values, most_actions=3):
        assert len(found) <= 3
        seen += [each.issue for each in found]
        values |= after(found, judged(*issues))
    assert seen == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("words", ["@everybody look", "closes #3", "<!-- genba -->", "[x](http://evil)", "a\nb\n# c"])
def test_words_of_others_have_no_effect_in_a_comment(words: str) -> None:
    body = proposed(issue(question=words))[0].body
    assert words not in body
    assert "@everybody" not in body
    assert "#3" not in body


def test_every_action_is_one_of_four() -> None:
    everything = [facts for facts, _ in STATES]
    kinds = {each.action for facts in everything for each in proposed(facts)}
    assert kinds <= {"comment", "label", "update", "attention"}
    assert {judged(facts)[12].state for facts in everything} == set(IssueState)
