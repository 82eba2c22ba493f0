"""What is recommended: who, by which command, in which order, and why."""

import shlex
from typing import Any

import click
import msgspec
import pytest

from genba.domain.facilitation import IssueFacts, RecommendAction
from genba.domain.tasks.task import Priority, TaskStatus
from genba.entrypoints.cli.commands import cli
from genba.judgement.triage.orphaned_work import orphaned
from genba.judgement.triage.recommendations import IN_WORK, Recommender, TriageContext, recommend
from tests.facilitator.fields import REVIEWER, agent, at, field, issue, judged, landed, request, session

ITERATOR = agent()
ON_GITHUB = TriageContext(repository="acme/shop")


def recommended(*issues: IssueFacts, agents: Any = (ITERATOR, REVIEWER), **around: Any) -> RecommendAction:
    return recommend(judged(*issues), field(*issues), agents, TriageContext(**around))


def commands(*issues: IssueFacts, **options: Any) -> list[str]:
    return [each.command for each in recommended(*issues, **options).suggestions]


BEGUN = session(status="waiting", waits_for="resume")
VERIFIED: dict[str, Any] = {"status": TaskStatus.REVIEW, "verified": "a" * 40}
SINGLE = [
    ("begin", issue(), "genba run iterator --issue 12"),
    ("go on", issue(branches=(), commits=(landed(on_base=False),)), "genba run iterator --issue 12"),
    ("suspended", issue(sessions=(BEGUN,)), "genba run --resume iterator-12-1"),
    ("dead", issue(sessions=(session(),)), "genba run --resume iterator-12-1"),
    ("review", issue(pull_requests=(request(),)), "genba run reviewer --issue 12"),
    ("approve", issue(**VERIFIED, requires_review=True), "genba approve 12"),
    ("merge", issue(**VERIFIED), "genba work --until-empty"),
    ("queued", issue(sessions=(session(status="waiting", waits_for="merge"),)), "genba work --until-empty"),
    ("answered", issue(sessions=(session(status="waiting", waits_for="answer"),)), "genba work --until-empty"),
    ("budget", issue(sessions=(session(status="waiting", waits_for="budget"),)), "genba approve 12"),
    ("landed", issue(commits=(landed(),)), "genba verify 12"),
    ("landed in review", issue(commits=(landed(),), status=TaskStatus.REVIEW), "genba task done 12"),
    ("question", issue(question="which region?"), 'genba answer 12 "…"'),
    (
        "failed",
        issue(status=TaskStatus.BLOCKED, blocker_kind="failed", blocker_reason="three attempts"),
        "genba task unblock 12",
    ),
    ("elsewhere", issue(blocked_elsewhere=("https://example.org/3",)), "genba task show 12"),
    ("label", issue(labels=("blocked",)), "genba task show 12"),
    ("itself", issue(dependencies=(12,)), "genba task depend 12 --remove 12"),
    ("nobody knows", issue(dependencies=(99,)), "genba task show 12"),
    ("of a person", issue(assignee="@ada"), "genba task show 12"),
    ("of a login", issue(assignees=("ada",)), "genba run iterator --issue 12"),
    ("of a person, begun", issue(assignee="@ada", sessions=(BEGUN,)), "genba run --resume iterator-12-1"),
    ("unknown", issue(missing=("the tracker does not answer",)), "genba task show 12"),
]


@pytest.mark.parametrize(("facts", "command"), [each[1:] for each in SINGLE], ids=[each[0] for each in SINGLE])
def test_one_issue_has_one_command(facts: IssueFacts, command: str) -> None:
    assert commands(facts) == [command]


def test_an_agent_without_an_answer_is_not_named_where_another_answers() -> None:
    silent, helper = agent(answers=False), msgspec.structs.replace(agent("helper"), capabilities=())
    planner = msgspec.structs.replace(helper, name="planner")
    assert commands(issue(), agents=(silent, helper, planner)) == ["genba run helper --issue 12"]
    assert commands(issue(), agents=(silent, agent("zealous"))) == ["genba run zealous --issue 12"]
    assert commands(issue(), agents=(silent, planner)) == ["genba run iterator --issue 12"]
    assert commands(issue(), agents=(agent(), helper)) == ["genba run iterator --issue 12"]


def test_whom_the_project_names_works_on_issues_whatever_it_says_it_can() -> None:
    helper = msgspec.structs.replace(agent("helper", description="Adds a login"), capabilities=())
    found = recommended(issue(title="Add a login"), agents=(agent(), helper), worker="helper")
    assert (found.next_agent, found.reason) == ("helper", "#12 is incomplete: helper works here")


ON_THE_FORGE = [
    ("landed", issue(commits=(landed(),)), "gh issue close 12 --repo acme/shop"),
    ("approved", issue(pull_requests=(request(decision="approved"),)), "gh pr merge 31 --repo acme/shop"),
    ("unknown", issue(missing=("something",)), "gh issue view 12 --repo acme/shop"),
]


@pytest.mark.parametrize(
    ("facts", "command"), [each[1:] for each in ON_THE_FORGE], ids=[each[0] for each in ON_THE_FORGE]
)
def test_an_issue_on_github_has_a_command_for_it(facts: IssueFacts, command: str) -> None:
    assert commands(facts, repository="acme/shop") == [command]


def test_every_command_of_genba_is_one_that_genba_understands() -> None:
    everything = [each[1] for each in SINGLE]
    output = {command for facts in everything for command in commands(facts)}
    output |= {each.command for facts in everything for each in orphaned(judged(facts), field(facts), TriageContext())}
    output |= {commands(issue(1), issue(2), label="sprint 1")[-1]}
    for command in output:
        program, name, *words = shlex.split(command)
        if program != "genba" or name == "run":
            continue  # the options of an agent are known where it is declared
        top = click.Context(cli)
        understood = cli.get_command(top, name)
        if isinstance(understood, click.Group):
            understood = understood.get_command(top, words.pop(0))
        assert understood is not None, command
        with understood.make_context(name, words):
            pass


def test_nothing_is_reported_on_an_issue_that_is_closed_or_in_work() -> None:
    done = issue(1, state="closed")
    worked_on = issue(2, sessions=(session(alive=True),))
    found = recommended(done, worked_on)
    assert (found.next_agent, found.suggestions, found.reason) == ("none", (), IN_WORK)


@pytest.mark.parametrize(
    ("issues", "agents", "reason"),
    [
        ((), (ITERATOR,), "there are no issues"),
        ((issue(state="closed"),), (ITERATOR,), "everything is done"),
        ((issue(),), (REVIEWER,), "no agent that can be called with an issue has the capability issue-action"),
        ((issue(),), (), "no agent that can be called with an issue has the capability issue-action"),
        ((issue(1, children=(2,)), issue(2, sessions=(session(alive=True),))), (ITERATOR,), IN_WORK),
    ],
)
def test_where_nothing_fits_it_says_why(issues: Any, agents: Any, reason: str) -> None:
    found = recommended(*issues, agents=agents)
    assert (found.next_agent, found.target_issues, found.suggestions, found.reason) == ("none", (), (), reason)


def test_an_agent_that_needs_more_than_an_issue_is_not_called() -> None:
    needs = {"issue": {"type": "number"}, "region": {"type": "string", "required": True}}
    assert commands(issue(), agents=(agent(parameters=needs),)) == []
    has = {"issue": {"type": "number"}, "region": {"type": "string", "required": True, "default": "eu"}}
    assert commands(issue(), agents=(agent(parameters=has),)) == ["genba run iterator --issue 12"]
    assert commands(issue(), agents=(agent(parameters={}),)) == []


def test_an_agent_is_called_by_the_option_that_it_declares() -> None:
    other = agent(parameters={"issue": {"type": "number", "cli": "--ticket"}})
    assert commands(issue(), agents=(other,)) == ["genba run iterator --ticket 12"]


def test_the_facilitator_never_recommends_itself() -> None:
    itself = agent("facilitator", "issue-action")
    renamed = agent("minder", "facilitate-action", "issue-action")
    found = recommended(issue(), agents=(itself, renamed))
    assert found.next_agent == "none"
    assert found.available_agents == ("minder",)


def test_the_agent_that_fits_the_text_is_chosen() -> None:
    docs = agent("scribe", description="Writes documentation and guides")
    code = agent("coder", description="Mends parsers and database queries")
    about_docs = issue(1, title="Write a guide", body="The documentation lacks one")
    about_code = issue(2, title="Database query is slow", body="the parser too")
    found = recommended(about_docs, about_code, agents=(code, docs))
    assert {each.issue: each.agent for each in found.suggestions if each.issue} == {1: "scribe", 2: "coder"}


def test_the_more_successful_agent_is_chosen_where_texts_fit_the_same() -> None:
    good, bad = agent("zoe", succeeded=9, failed=1), agent("adam", succeeded=1, failed=9)
    assert recommended(issue(), agents=(bad, good)).next_agent == "zoe"
    assert recommended(issue(), agents=(agent("b"), agent("a"))).next_agent == "a"


def test_a_hundred_agents_with_the_same_capability_are_no_riddle() -> None:
    many = tuple(agent(f"agent-{number:03d}") for number in range(100))
    found = recommended(*(issue(number) for number in range(1, 30)), agents=many)
    assert found.next_agent == "agent-000"
    assert len(found.suggestions) == 21


def test_what_others_wait_for_comes_first_and_says_so() -> None:
    root = issue(3)
    waiting = [issue(number, dependencies=(number - 1,)) for number in (4, 5, 6)]
    found = recommended(issue(1), issue(2), root, *waiting)
    first = found.suggestions[0]
    assert (first.issue, first.priority) == (3, "high")
    assert "3 issues wait for it" in first.rationale
    assert [each.issue for each in found.suggestions] == [3, 1, 2, None]


def test_the_whole_project_is_one_more_suggestion() -> None:
    found = recommended(issue(1), issue(2), label="sprint 1")
    last = found.suggestions[-1]
    assert (last.command, last.issue) == ("genba work --until-empty --label 'sprint 1'", None)
    assert last.description == "All 2 issues that can go on"


@pytest.mark.parametrize(
    ("facts", "priority"),
    [
        (issue(), "medium"),
        (issue(priority=Priority.CRITICAL), "high"),
        (issue(priority=Priority.LOW), "low"),
        (issue(labels=("Refactoring",)), "low"),
        (issue(labels=("enhancement",), priority=Priority.HIGH), "high"),
        (issue(question="which?"), "high"),
    ],
)
def test_priorities(facts: IssueFacts, priority: str) -> None:
    assert recommended(facts).suggestions[0].priority == priority


def test_a_score_is_the_sum_of_its_parts_and_the_rationale_names_them() -> None:
    found = recommended(issue(), issue(13, dependencies=(12,))).suggestions[0]
    assert found.score == round(sum(part.value * part.weight for part in found.parts), 2)
    assert sum(part.weight for part in found.parts) == pytest.approx(1)
    assert {part.name for part in found.parts} == {
        "urgency", "fit", "priority", "freshness", "history", "unblocking"
    }  # fmt: skip
    for part in found.parts:
        assert f"({part.name} {part.value:.2f})" in found.rationale


def test_scores_fall_into_their_bands() -> None:
    urgent = issue(1, priority=Priority.CRITICAL, commits=(landed(on_base=False),))
    others = [issue(number, dependencies=(1,)) for number in range(2, 6)]
    plain = issue(7)
    idle = issue(8, priority=Priority.LOW, last_at=at(1))
    only_open = issue(9, commits=(landed(),), priority=Priority.LOW)
    scores = {each.issue: each.score for each in recommended(urgent, *others, plain, idle, only_open).suggestions}
    assert scores[1] >= 0.8
    assert 0.5 <= scores[7] < 0.8
    assert 0.3 <= scores[8] < 0.5
    assert 0.3 <= scores[9] < 0.5


def test_a_whole_with_parts_left_is_not_worked_on_itself() -> None:
    whole, part = issue(1, children=(2,)), issue(2)
    assert commands(whole, part) == ["genba run iterator --issue 2"]


def test_the_reason_names_the_issues_and_the_capability() -> None:
    begun = issue(12, commits=(landed(on_base=False),))
    found = recommended(begun, issue(13))
    assert found.reason == "#12 is in_progress, #13 is incomplete: iterator has the capability issue-action"
    assert (found.next_agent, found.target_issues) == ("iterator", (12, 13))


def test_each_issue_can_be_asked_for_by_itself() -> None:
    issues = [issue(number) for number in range(1, 100)]
    asked = Recommender(judged(*issues), field(*issues), (ITERATOR,), ON_GITHUB)
    found = asked.for_issue(99)
    assert found is not None
    assert found.command == "genba run iterator --issue 99"
    assert found in [each for each in (asked.for_issue(number) for number in range(1, 100)) if each]


def test_hostile_names_stay_one_word_of_a_command() -> None:
    evil = agent("a; rm -rf ~")
    assert shlex.split(commands(issue(), agents=(evil,))[0]) == ["genba", "run", "a; rm -rf ~", "--issue", "12"]
    run = msgspec.structs.replace(BEGUN, run="$(reboot)")
    assert shlex.split(commands(issue(sessions=(run,)))[0]) == ["genba", "run", "--resume", "$(reboot)"]


def test_the_command_for_a_whole_board_is_limited_to_its_issues() -> None:
    on_board = recommended(issue(1), issue(2), project=5, label="web").suggestions[-1]
    assert on_board.command == "genba work --until-empty --label web --project 5"
    of_others = recommended(issue(1), issue(2), project=5, project_owner="acme").suggestions[-1]
    assert of_others.command == "genba work --until-empty --project 5 --project-owner acme"
    assert recommended(issue(1), issue(2)).suggestions[-1].command == "genba work --until-empty"
