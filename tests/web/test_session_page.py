"""The page of a run: its log from the end, its iterations with what was asked and answered, however long it is."""

import re
from pathlib import Path

import msgspec
import pytest

from genba.connections.journal.overview import JournalOverview
from genba.connections.journal.paging import last_lines, line_at, lines_after
from genba.domain import events as report
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.replies import Usage
from genba.domain.tasks.task import TaskDraft
from tests.web.journals import AT, RUN, begun, journal, turn
from tests.web.scenes import HOSTILE, asked, posted
from tests.web.serving import PERSON, Dashboard


def page(served: Dashboard, path: str = f"/sessions/{RUN}") -> str:
    with served.client() as client:
        answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


def test_a_run_without_a_task_shows_its_iterations_and_what_they_used(served: Dashboard) -> None:
    end = report.RunEnded(
        time=AT, outcome=Outcome.COMPLETED, reason="it holds", usage=Usage(), iterations=2, seconds=9.0
    )
    journal(served, [begun(), *turn(1), *turn(2), end])
    shown = page(served)

    assert "completed" in shown
    assert "2 of 20" in shown
    assert "2.0k in, 400 out" in shown
    assert "$1.00 of $5.00" in shown
    assert "missed tests_pass" in shown
    assert "evil.example:443" in shown
    assert "Edit 2×" in shown
    assert "output of 2" in shown
    assert shown.index("2. work") < shown.index("1. work"), "the newest stands first"


def test_prompts_and_replies_are_there_for_who_opens_them(served: Dashboard) -> None:
    journal(served, [begun(), *turn(1, prompt=f"Make tea. {HOSTILE}", reply=f"Hot. {HOSTILE}")])
    shown = page(served)
    places = re.findall(rf'hx-get="(/sessions/{RUN}/text\?at=\d+)"', shown)

    assert len(places) == 2
    assert "Make tea. &lt;script&gt;" in page(served, places[0])
    reply = page(served, places[1])
    assert "Hot. &lt;script&gt;" in reply
    assert "1.2k tokens" in reply
    with served.client() as client:
        for at in ("0", "7", "99999999", "x", "-1", ""):
            assert client.get(f"/sessions/{RUN}/text?at={at}").status_code == 404
    for text in (shown, reply):
        assert "<script>alert" not in text
        assert "<img" not in text


def test_a_run_that_was_cut_off_says_so(served: Dashboard) -> None:
    journal(served, [begun(), *turn(1)[:2]])
    shown = page(served)
    assert "cut off" in shown
    assert "/stop" not in shown
    with served.visitor() as client:
        stopped = posted(client, f"/sessions/{RUN}/stop")
    assert stopped.status_code == 409
    assert "does not run here" in stopped.text


@pytest.mark.parametrize("run", ["nothing", "%2e%2e", "a%2fb", "%00", "<b>", "x" * 3000])
def test_an_unknown_run_is_reported(served: Dashboard, run: str) -> None:
    with served.client() as client:
        assert client.get(f"/sessions/{run}", follow_redirects=False).status_code in (303, 404)
        assert client.get(f"/live?run={run}").status_code == 404


def test_a_session_that_waits_is_answered_from_its_page(served: Dashboard) -> None:
    served.board.board.add(TaskDraft(title="Make tea"), PERSON)
    run = asked(served)
    shown = page(served, f"/sessions/{run}")
    assert "Which pot?" in shown
    assert 'action="/tasks/1/answer"' in shown
    assert "It has written nothing down here." in shown


def test_a_session_of_a_fleet_is_stopped_by_what_is_written_down(served: Dashboard) -> None:
    served.board.board.add(TaskDraft(title="Make tea"), PERSON)
    run = asked(served)
    with served.visitor() as client:
        assert "is stopped" in posted(client, f"/sessions/{run}/stop").text
    assert 1 in served.board.field().held


def test_the_log_is_read_from_its_end_and_every_line_is_reached_once(served: Dashboard) -> None:
    lines = [report.AgentOutput(time=AT, stream="stdout", text=f"line {each}") for each in range(1300)]
    path = journal(served, [begun(), *lines])
    shown = page(served)
    found = [re.findall(r">line (\d+)<", shown)]
    with served.client() as client:
        while earlier := re.search(r'hx-get="([^"]+before=\d+)"', shown):
            shown = client.get(earlier.group(1)).text
            found.append(re.findall(r">line (\d+)<", shown))
        whole = [int(each) for piece in reversed(found) for each in piece]
        assert whole == list(range(1300))
        assert max(len(piece) for piece in found) <= 500

        end = path.stat().st_size
        assert client.get(f"/sessions/{RUN}/log?after={end}").status_code == 204
        with path.open("ab") as file:
            file.write(msgspec.json.encode(report.Notice(time=AT, message=HOSTILE)) + b'\nnot json\n{"event":"torn')
        more = client.get(f"/sessions/{RUN}/log?after={end}")
        assert "&lt;script&gt;" in more.text
        assert more.headers["genba-log-end"] == str(path.stat().st_size - len('{"event":"torn'))


def test_a_log_of_a_hundred_thousand_lines_is_a_page_like_any_other(served: Dashboard) -> None:
    journal(served, [begun(), *turn(1)])
    small = page(served)
    text = "x" * 100
    lines = (report.AgentOutput(time=AT, stream="stdout", text=f"{each} {text}") for each in range(100_000))
    path = journal(served, [begun(), *turn(1), *lines])

    shown = page(served)

    assert len(shown) < len(small) + 500 * 400
    assert "99999 x" in shown
    overview = JournalOverview(path)
    assert overview.look().iterations_total == 1
    assert len(msgspec.json.encode(overview.look())) < 4000, "what is kept of it does not grow with it"


def test_pieces_of_a_journal_are_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b"one\n\ntwo\n" + b"long" * 700_000 + b"\nthree\nfour\nhalf")

    assert [line for _, line in last_lines(path, lines=2).lines] == [b"three", b"four"]
    end = last_lines(path, lines=2)
    assert path.read_bytes()[end.end :] == b"half"
    assert line_at(path, end.lines[0][0]) == b"three\n"
    assert line_at(path, end.lines[0][0] + 1) == b""
    assert line_at(path, -5) == b""
    assert [line for _, line in last_lines(path, 9).lines] == [b"one", b"two"]
    walked, place = [], end.start
    while place > 0:
        piece = last_lines(path, place)
        assert piece.start < place, "it comes to an end, whatever stands there"
        walked += [line for _, line in piece.lines if len(line) < 10]
        place = piece.start
    assert sorted(walked) == [b"one", b"two"]
    seen, place = [], 0
    while (piece := lines_after(path, place)).end > place:
        seen += [line for _, line in piece.lines if len(line) < 10]
        place = piece.end
    assert [line for line in seen if line in (b"one", b"two", b"three", b"four")] == [b"one", b"two", b"three", b"four"]
    assert lines_after(path, 10**9).lines, "a journal that is shorter by now is told from its end"
