import io
import os
import pty
import sys
import threading

import pytest

from genba.entrypoints.cli.rendering.progress import Progress


class Screen:
    """A terminal, and what was drawn on it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.mine, theirs = pty.openpty()
        self.file = os.fdopen(theirs, "w", encoding="utf-8")
        monkeypatch.setattr(sys, "stderr", self.file)
        monkeypatch.setenv("TERM", "xterm")

    def until(self, wanted: str) -> str:
        seen = b""
        while wanted not in seen.decode(errors="replace"):
            seen += os.read(self.mine, 4096)
        return seen.decode(errors="replace")

    def close(self) -> None:
        self.file.close()
        os.close(self.mine)


def test_at_a_terminal_it_says_what_is_done_now_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch)
    try:
        with Progress("counting") as progress:
            assert "counting" in screen.until("counting")
            progress.doing = "weighing"
            screen.until("weighing")
            progress.say("one is done")
            screen.until("one is done")
            screen.until("weighing")
        screen.file.write("the end")
        screen.file.flush()
        assert screen.until("the end").endswith("\r\x1b[2Kthe end")
    finally:
        screen.close()


def test_without_a_terminal_quick_work_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    received = io.StringIO()
    monkeypatch.setattr(sys, "stderr", received)
    with Progress("counting") as progress:
        progress.say("one is done")
    assert received.getvalue() == "one is done\n"


def test_with_json_no_hint_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    received = io.StringIO()
    monkeypatch.setattr(sys, "stderr", received)
    before = threading.active_count()
    with Progress("counting", quiet=True) as progress:
        assert threading.active_count() == before
        progress.say("one is done")
    assert received.getvalue() == ""
