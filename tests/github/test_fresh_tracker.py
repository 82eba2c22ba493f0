"""What a run reads of GitHub itself."""

from types import SimpleNamespace
from typing import Any

from genba.application.tracker.github import FreshTracker
from genba.connections.tracker.nothing import NoTracker
from genba.testing.tracker_doubles import MemoryIssues


async def test_all_open_issues_with_a_label_are_read_however_many_were_closed_before() -> None:
    remote = MemoryIssues(page_size=2)
    for _ in range(5):
        remote.add("An old one", labels=("spec",), state="closed", state_reason="completed")
    wanted = [remote.add("What is asked for", labels=("spec",)) for _ in range(3)]
    remote.add("Another", labels=("other",))
    office: Any = SimpleNamespace(issues=remote)

    found = await FreshTracker(NoTracker(), office, lambda _: None).labelled("spec")

    assert [issue.number for issue in found] == wanted
