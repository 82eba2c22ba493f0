"""Files that come into their place whole."""

import os
import threading
from pathlib import Path

import pytest

from genba.connections.atomic_write import put, writer_of


def test_a_file_is_put_in_the_place_of_a_link_and_what_the_link_led_to_stays(tmp_path: Path) -> None:
    theirs, place = tmp_path / "theirs", tmp_path / "place"
    theirs.write_text("theirs")
    place.symlink_to(theirs)

    put(place, b"ours", mode=0o600)

    assert (theirs.read_text(), place.read_text(), place.is_symlink()) == ("theirs", "ours", False)
    assert place.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["place", "theirs"]


def test_many_who_write_the_same_file_at_once_are_in_nobodys_way(tmp_path: Path) -> None:
    place, failed = tmp_path / "place", list[Exception]()

    def write(who: int) -> None:
        try:
            for _ in range(50):
                put(place, bytes([who]) * 5000)
                assert len(set(place.read_bytes())) == 1
        except Exception as error:  # noqa: BLE001  (reported below)
            failed.append(error)

    threads = [threading.Thread(target=write, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failed == []
    assert [path.name for path in tmp_path.iterdir()] == ["place"]


def test_what_cannot_be_put_into_its_place_leaves_no_draft_and_all_as_it_was(tmp_path: Path) -> None:
    place, elsewhere = tmp_path / "place", tmp_path / "elsewhere"
    (place / "inside").mkdir(parents=True)
    elsewhere.mkdir()

    with pytest.raises(OSError, match="directory"):
        put(place, b"ours", folder=elsewhere)

    assert list(elsewhere.iterdir()) == []
    assert (place / "inside").is_dir()


def test_the_name_of_a_draft_says_who_writes_it(tmp_path: Path) -> None:
    seen: list[str] = []

    class Watched(type(tmp_path)):  # type: ignore[misc]
        def replace(self, target: object) -> object:
            seen.append(self.name)
            return super().replace(target)

    put(Watched(tmp_path / "place"), b"")

    assert [writer_of(name) for name in seen] == [os.getpid()]
    assert [writer_of(name) for name in ("place", ".1-0a.new", ".x-0123456789abcdef.new")] == [None] * 3
