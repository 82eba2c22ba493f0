"""The journal of a run as a file: who writes to it, and when it is closed."""

from contextlib import ExitStack
from pathlib import Path

from genba.connections.journal.jsonl import JsonlJournal, read_journal
from genba.domain.events import Notice
from genba.domain.redaction import Redactor


def test_an_event_after_the_close_reaches_its_journal_and_no_file_opened_since(tmp_path: Path) -> None:
    begun: list[str] = []
    journal = JsonlJournal(tmp_path / "r.jsonl", "r", "a", None, Redactor({}), (), lambda: begun.append("once"))
    journal.emit(Notice(message="before"))
    journal.close()
    with ExitStack() as stack:
        others = [stack.enter_context((tmp_path / f"other-{number}").open("wb")) for number in range(8)]
        held = sorted(Path("/proc/self/fd").iterdir())
        journal.emit(Notice(message="late"))
        journal.emit(Notice(message="later"))
        assert sorted(Path("/proc/self/fd").iterdir()) == held, "a late event holds no file open"
        journal.close()
    assert [event.message for event in read_journal(journal.path) if isinstance(event, Notice)] == [
        "before",
        "late",
        "later",
    ]
    assert {Path(other.name).stat().st_size for other in others} == {0}
    assert begun == ["once"]
