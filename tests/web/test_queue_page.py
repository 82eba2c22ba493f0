"""The page of the merge queue: who is next, what is in the way, and what has landed."""

import re

from genba.domain.fleet.records import EntryStatus
from genba.domain.tasks.task import Priority
from tests.web.fleet_scenes import add, queued, red, settled, shown
from tests.web.scenes import HOSTILE
from tests.web.serving import Dashboard


def test_what_waits_stands_in_the_order_in_which_it_lands(served: Dashboard) -> None:
    for title, priority in (("Later", Priority.LOW), ("First", Priority.CRITICAL), ("Second", Priority.HIGH)):
        queued(served, add(served, title, priority=priority))

    (target,) = served.site.queries.queue().targets
    assert [(each.position, each.entry.title) for each in target.open] == [(1, "First"), (2, "Second"), (3, "Later")]
    page = shown(served, "/queue")
    assert re.findall(r'class="place"[^>]*>(\d+)<', page) == ["1", "2", "3"]
    assert 'href="/tasks/2"' in page


def test_a_conflict_names_its_paths(served: Dashboard) -> None:
    entry = queued(served, add(served, "Make tea"))
    settled(served, entry, EntryStatus.CONFLICT, paths=("app.py", f"docs/{HOSTILE}.md"))

    page = shown(served, "/queue")

    assert "Conflict with <code>main</code> at <code>aaaaaaa</code> in 2 paths:" in page
    assert "<code>app.py</code>" in page
    assert "<script>alert" not in page
    assert "<img" not in page


def test_what_is_red_shows_the_goals_that_failed_on_what_would_have_landed(served: Dashboard) -> None:
    entry = queued(served, add(served, "Make tea"))
    red(served, entry, "2 failed: test_pot, test_cup", log="88")

    page = shown(served, "/queue")

    assert "rejected: goals not met, 0 of 1 goals pass" in page
    assert "on <code>ddddddd</code>" in page
    assert "<strong>tests_pass</strong>" in page
    assert "2 failed: test_pot, test_cup" in page
    assert 'href="/tasks/1/goals/88"' in page


def test_what_is_stuck_says_why_and_keeps_its_place(served: Dashboard) -> None:
    entry = queued(served, add(served, "Make tea"))
    settled(served, entry, EntryStatus.STUCK, detail="main was not moved: the checkout has changes")
    page = shown(served, "/queue")
    assert "it is tried again by itself" in page
    assert "the checkout has changes" in page


def test_what_has_landed_is_there_with_its_commit_and_only_the_newest(served: Dashboard) -> None:
    for number in range(1, 53):
        entry = queued(served, add(served, f"Tea {number}"))
        settled(served, entry, EntryStatus.MERGED, landed=f"{number:040x}")

    (target,) = served.site.queries.queue().targets

    assert len(target.landed) == 50
    assert target.landed[0].entry.task == 52
    assert "Landed" in shown(served, "/queue")


def test_each_target_has_a_queue_of_its_own(served: Dashboard) -> None:
    queued(served, add(served, "Make tea"), target="main")
    queued(served, add(served, "Fill the cup"), target="genba/9-breakfast")
    picture = served.site.queries.queue()
    assert [(each.target, each.open[0].position) for each in picture.targets] == [("main", 1), ("genba/9-breakfast", 1)]
    assert picture.waiting == 2


def test_an_empty_queue_says_how_work_comes_there(served: Dashboard) -> None:
    assert "Verified work comes here by itself." in shown(served, "/queue")
