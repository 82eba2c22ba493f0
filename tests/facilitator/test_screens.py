"""How the field looks on a screen: what is true at a glance, and commands that can be pasted whole."""

from datetime import UTC, datetime

import pytest
from inline_snapshot import snapshot

from genba.domain.facilitation import FieldReport, IssueFacts
from genba.entrypoints.cli.rendering.columns import width
from genba.entrypoints.cli.rendering.triage_views import facilitate_lines, mermaid, status_lines
from genba.judgement.triage.health import health_of
from genba.judgement.triage.maintenance import Keeping, Known, actions
from genba.judgement.triage.orphaned_work import orphaned
from genba.judgement.triage.recommendations import Recommender, TriageContext
from tests.facilitator.fields import NOW, REVIEWER, agent, at, field, issue, judged, landed, request, session

LATER = datetime(2026, 1, 8, 8, 4, tzinfo=UTC)
EVIL = 'Evil \x1b[31m"];\n  click i1 call x()\n<script>--> %% end 題名'


def report(*issues: IssueFacts) -> tuple[FieldReport, Recommender]:
    states, facts = judged(*issues), field(*issues)
    moves = Recommender(states, facts, (agent(), REVIEWER), TriageContext())
    recommendation = moves.recommend()
    made = FieldReport(
        project="acme/shop",
        looked_at=NOW,
        agents=(agent(), REVIEWER),
        assessments=tuple(states.values()),
        actions=actions(states, facts, {}, Keeping(), Known(command_for=moves.for_comment)),
        recommendation=recommendation,
        health=health_of(states, recommendation),
        orphaned=orphaned(states, facts, TriageContext()),
    )
    return made, moves


def many(number: int) -> list[IssueFacts]:
    """Issues of every kind, with titles of every kind."""
    found = []
    for at_ in range(1, number + 1):
        values = {
            "title": EVIL if at_ % 7 == 0 else f"Add the page number {at_} of the shop, with all that belongs to it"
        }
        match at_ % 6:
            case 0:
                found.append(issue(at_, commits=(landed(at_),), **values))
            case 1:
                found.append(issue(at_, dependencies=(at_ + 1,), **values))
            case 2:
                found.append(issue(at_, sessions=(session(f"iterator-{at_}-1", alive=at_ % 4 == 0),), **values))
            case 3:
                found.append(issue(at_, pull_requests=(request(1000 + at_),), **values))
            case 4:
                found.append(issue(at_, question='which "region"\x07?' * 9, **values))
            case 5:
                found.append(issue(at_, missing=("the tracker does not answer",), **values))
    return found


FEW = (
    issue(3, state="closed", commits=(landed(),)),
    issue(8, commits=(landed(),)),
    issue(12, pull_requests=(request(decision="approved"),)),
    issue(14, title="Add login", sessions=(session("iterator-14-1", alive=True),), last_at=at(8, 8)),
    issue(15, title="Pay by card", commits=(landed(on_base=False),)),
    issue(16, dependencies=(14,)),
    issue(18, question="which region?"),
    issue(20, title="Sort the list"),
)


def test_the_short_view() -> None:
    assert "\n".join(status_lines(report(*FEW)[0], LATER, 100)) == snapshot("""\
acme/shop · 8 issues · updated 4 min ago
 health   states clear ✓   next clear ✓   blockers visible ✓   startable ✓

   state           issues
 ● done            #3 #8    2
 ◐ review_pending  #12      1   #12 pull request #31: approved   genba run reviewer --issue 12
 ▶ in_progress     #14 #15  2   #14 iterator works on it (iterator-14-1), 4 min ago
 ✗ blocked         #16 #18  2   #16 waits for #14 · #18 asks: "which region?"
 ○ incomplete      #20      1
 ! attention       #18      1   #18 asks: "which region?"   genba answer 18 "…"
 ! orphaned        #8       1   commit 0000000 is on the base (trailer), and its i…   genba verify 8

 next  0.66  medium  genba run reviewer --issue 12  finished work waits · Add login
       0.66  medium  genba run iterator --issue 15  work has begun · Pay by card
       0.63  high    genba answer 18 "…"            Answer #18: asks: "which region?"
       0.56  medium  genba run iterator --issue 20  nothing in its way · Sort the list
       0.63  medium  genba work --until-empty       All 3 issues that can go on\
""")


@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize("number", [0, 3, 30, 300])
def test_no_line_is_wider_than_the_screen_unless_a_command_is(number: int, columns: int) -> None:
    made, moves = report(*many(number))
    commands = {each.command for each in made.recommendation.suggestions} | {each.command for each in made.orphaned}
    shown = [*status_lines(made, LATER, columns), *facilitate_lines(made, LATER, columns, moves.command_for)]
    for line in shown:
        assert width(line) <= columns or any(line.endswith(command) for command in commands), line
        assert line.isprintable(), line
        assert "\x1b" not in line
    assert len(list(status_lines(made, LATER, columns))) <= 24


def test_a_field_without_issues_says_so() -> None:
    assert "\n".join(status_lines(report()[0], LATER, 80)) == snapshot("""\
acme/shop · 0 issues · updated 4 min ago
 health   states clear ✓   next clear ✓   blockers visible ✓   startable ✓

 next  nothing: there are no issues\
""")


def test_every_issue_that_is_open_has_a_command_and_a_blocked_one_that_of_what_it_waits_for() -> None:
    made, moves = report(*many(60))
    assert all(moves.command_for(each.issue) for each in made.assessments)
    assert moves.command_for(1) == "genba run --resume iterator-2-1"
    assert moves.command_for(7) == "genba logs iterator-8-1"


def test_a_circle_ends_the_search_for_a_command() -> None:
    whole = issue(1, children=(2,))
    _, moves = report(whole, issue(2, children=(1,), dependencies=(1,)), issue(3, dependencies=(2,)))
    assert isinstance(moves.command_for(3), str)


def test_nothing_in_a_title_is_read_as_a_graph() -> None:
    made, _ = report(issue(1, title=EVIL), issue(2, dependencies=(1,), title="x" * 10_000))
    drawn = list(mermaid(made.assessments, field(issue(1), issue(2, dependencies=(1,)))))
    assert drawn[1] == snapshot(
        '  i1["#1 Evil     click i1 call x()  script --     end 題名<br/>incomplete"]:::incomplete'
    )
    assert all(len(line) < 120 and line.isprintable() for line in drawn)
    assert [line for line in drawn if "-->" in line] == ["  i1 --> i2"]


def test_a_graph_that_is_too_large_says_what_it_leaves_out() -> None:
    issues = [issue(number) for number in range(1, 251)]
    made, _ = report(*issues)
    assert "  %% 50 more issues are not drawn" in list(mermaid(made.assessments, field(*issues)))
