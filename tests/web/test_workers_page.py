"""The page of the workers: who lives, what each runs now, and who did what when."""

import re
import subprocess
import sys

from genba.connections.processes.memory import look
from genba.connections.processes.tree import MARK
from genba.domain.fleet.records import Executor, SegmentEnd, WaitsFor
from tests.project import until
from tests.web.fleet_scenes import HERE, add, begun, executor, shown, spent
from tests.web.serving import Dashboard


def test_a_worker_is_shown_with_its_slots_and_what_it_runs(served: Dashboard) -> None:
    with executor(served, workers=4):
        session = begun(served, add(served, "Make tea"))
        spent(served, session.run, 3, 41_000, 0.41)
        (worker,) = served.site.queries.workers().executors
        page = shown(served, "/workers")

    assert (worker.status, worker.used, worker.slots, worker.here) == ("live", 1, 4, True)
    assert worker.memory_mb is not None
    assert worker.memory_mb > 10
    assert "1 of 4 slots" in page
    assert 's-live"' in page
    assert f'<a href="/sessions/{session.run}" data-entry>#1 Make tea</a>' in page
    assert "implement" in page
    assert "iteration 3" in page
    assert "41.0k" in page
    assert "$0.41" in page
    assert f"memory on {HERE}" in page


def test_the_memory_of_a_session_is_that_of_everything_which_carries_its_mark(served: Dashboard) -> None:
    with executor(served):
        session = begun(served, add(served, "Make tea"))
        words = [sys.executable, "-c", "held = bytearray(64 << 20); held[::4096] = b'x' * len(held[::4096]); input()"]
        with subprocess.Popen(words, stdin=subprocess.PIPE, env={MARK: session.run}) as agent:
            try:
                until(lambda: look(frozenset(), frozenset({session.run})).by_mark.get(session.run, 0) >= 64)
                (busy,) = served.site.queries.workers().busy
            finally:
                agent.kill()
    assert busy.memory_mb is not None
    assert busy.memory_mb >= 64


def test_one_that_died_without_a_word_is_absent_and_its_session_is_suspended(served: Dashboard) -> None:
    served.board.register(Executor(id="laptop", host=HERE, process=2**22, workers=2))
    begun(served, add(served, "Make tea"))

    page = shown(served, "/workers")

    assert "absent" in page
    assert "its lock is free" in page
    assert "1 suspended" in page
    assert "no worker" in page


def test_one_that_left_is_shown_and_counts_no_slots(served: Dashboard) -> None:
    served.board.register(Executor(id="laptop", host=HERE, process=1, workers=2))
    served.board.leave("laptop", "suspended")
    picture = served.site.queries.workers()
    assert [(each.id, each.status) for each in picture.executors] == [("laptop", "suspended")]
    assert (picture.slots, picture.used) == (0, 0)


def test_who_did_what_when_is_drawn_and_listed(served: Dashboard) -> None:
    with executor(served):
        waits = begun(served, add(served, "Boil water"))
        served.board.end_part(SegmentEnd(run=waits.run, part=1, waits_for=WaitsFor.ANSWER))
        fails = begun(served, add(served, "Make tea"), agent="other")
        served.board.end_part(SegmentEnd(run=fails.run, part=1, outcome="failed", reason="no tea"))
        begun(served, add(served, "Fill the cup"))
        page = shown(served, "/workers?reach=1h&by=agent")

    assert re.findall(r'class="bar b-(\w+)"', page) == ["failed", "waiting", "running"]
    assert re.findall(r"<h3>(.*?)</h3>", page) == ["other", "worker"]
    assert "#2 Make tea · other · failed" in page
    assert "The same as a list" in page
    assert '<a href="/workers?reach=1h&amp;by=agent" aria-current="true">' in page


def test_a_run_without_a_fleet_has_its_bar_too(served: Dashboard) -> None:
    served.project.agent("worker", parameters={"issue": {"type": "number"}}, integrations={"github": {"enabled": True}})
    served.project.issue(1, "Make tea")
    served.project.run("worker", "--issue", "1", check=None)

    picture = served.site.queries.workers()

    assert [(lane.name, len(lane.stretches)) for lane in picture.timeline.lanes] == [("genba run", 1)]


def test_without_any_work_the_page_says_what_to_type(served: Dashboard) -> None:
    page = shown(served, "/workers?reach=forever&by=luck")
    assert "No session has run here yet." in page
    assert "genba work" in page


def test_a_day_of_thousands_of_sessions_is_drawn_bounded(served: Dashboard) -> None:
    add(served, "Make tea")
    begun(served, 1)
    served.project.sql(
        """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
        INSERT INTO sessions (run, task_id, agent_id, attempt, status, outcome, started_at, heartbeat_at, ended_at)
        SELECT 'run-' || i, 1, (SELECT id FROM agents LIMIT 1), i + 1, 'ended', 'completed',
          strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || (i * 20) || ' seconds'),
          strftime('%Y-%m-%dT%H:%M:%fZ', 'now'),
          strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || (i * 20 - 15) || ' seconds')
        FROM n;
        """
    )
    page = shown(served, "/workers")
    assert page.count('class="bar ') == 1500
    assert "1501 older sessions of this time are not shown" in page
    assert len(page) < 1_500_000


def test_the_same_moment_is_drawn_alike(served: Dashboard) -> None:
    begun(served, add(served, "Make tea"))
    with served.client() as client:

        def asked_twice() -> int:
            first = client.get("/workers?reach=7d", headers={"genba-live": "1"})
            known = {"genba-live": "1", "genba-digest": first.headers["genba-digest"]}
            return client.get("/workers?reach=7d", headers=known).status_code

        until(lambda: asked_twice() == 204)  # a machine that is busy may let a moment pass between the two
