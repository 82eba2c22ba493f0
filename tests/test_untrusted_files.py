"""Files that tested code may have written: the host waits for none of them, and follows no link."""

import os
import socket
import sys
import time
from pathlib import Path

import pytest

from genba.connections.untrusted_files import UntrustedFolder, read_file, read_start
from tests.project import Project

MOST = 4096

PLANTED = {
    "a-fifo": "os.mkfifo(report)",
    "a-socket": "socket.socket(socket.AF_UNIX).bind(os.path.relpath(report))",
    "a-link-to-a-device": "os.symlink('/dev/zero', report)",
    "a-link-to-a-file": "os.symlink('/etc/passwd', report)",
    "a-folder": "os.mkdir(report)",
    "ten-gigabytes": "os.truncate(os.open(report, os.O_CREAT | os.O_WRONLY), 10 * 2**30)",
    "a-linked-folder": (
        "outside = tempfile.mkdtemp(); open(outside + '/report.xml', 'w').write('<testsuite errors=\"0\">');"
        " os.rename(os.path.dirname(report), os.path.dirname(report) + '.old');"
        " os.symlink(outside, os.path.dirname(report))"
    ),
}
CODE = """
import os, socket, sys, tempfile
report = next(word for word in sys.argv if word.startswith("--junitxml=")).partition("=")[2]
{planted}
os._exit(0)
"""


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_what_stands_in_place_of_a_report_is_no_report(project: Project, planted: str) -> None:
    """A test run that wrote no report did not come to its end, whatever its exit code says."""
    project.write(".genba/config.yaml", f"dod:\n  - tests_pass: {sys.executable} -m pytest -q\n")
    project.write("test_it.py", "import code_\n\ndef test_it():\n    assert code_\n")
    project.write("code_.py", "")
    project.commit()
    project.git("switch", "-q", "-c", "work")
    project.write("code_.py", CODE.format(planted=planted))
    project.commit()

    began = time.monotonic()
    found = project.genba("verify", "work", "--json", check=1).json["verification"]

    assert time.monotonic() - began < 60
    tests = next(each for each in found["results"] if each["goal"]["goal"]["type"] == "tests_pass")["result"]
    assert tests["status"] == "failed"
    assert tests["detail"].startswith("ended with 0, but pytest")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    return made


def test_only_regular_files_are_read(folder: Path) -> None:
    os.mkfifo(folder / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(folder / "socket"))
    (folder / "inner").mkdir()
    (folder / "zero").symlink_to("/dev/zero")
    (folder / "passwd").symlink_to("/etc/passwd")
    (folder / "up").symlink_to("../folder/../../../../etc/passwd")
    (folder / "etc").symlink_to("/etc")
    (folder / "round").symlink_to("round")
    inside = UntrustedFolder(folder)

    for name in (
        "fifo",
        "socket",
        "inner",
        "zero",
        "passwd",
        "up",
        "etc/passwd",
        "round",
        "none",
        "../folder/fifo",
        "",
    ):
        assert inside.read_start(name, MOST) is None, name
        assert not inside.is_file(name), name
        if "/" not in name and name:
            assert read_start(folder / name, MOST) is None, name


def test_a_large_file_is_read_up_to_a_bound(folder: Path) -> None:
    with (folder / "sparse").open("wb") as file:
        file.truncate(10 * 2**30)

    assert read_start(folder / "sparse", MOST) == bytes(MOST)
    assert UntrustedFolder(folder).read_start("sparse", MOST) == bytes(MOST)
    assert read_file(folder / "sparse", MOST) is None


def test_a_link_counts_where_it_stays_in_the_folder(folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "file").write_text("text")
    (folder / "link").symlink_to("deep/../deep/file")
    (folder / "to").symlink_to("deep")
    inside = UntrustedFolder(folder)

    assert inside.read_start("link", MOST) == inside.read_start("to/file", MOST) == b"text"
    assert inside.is_folder("to")
    assert inside.is_folder("")
    assert not inside.is_file("to")


def test_a_pattern_finds_files_and_enters_no_folder_through_a_link(folder: Path) -> None:
    outside = folder.parent / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "note.md").write_text("outside")
    (folder / "docs").symlink_to(outside)
    (folder / "src" / "a").mkdir(parents=True)
    (folder / "src" / "a" / "b.py").write_text("")
    (folder / "src" / "link.py").symlink_to("a/b.py")
    (folder / "src" / "out.py").symlink_to(outside / "deep" / "note.md")
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("")
    os.utime(outside, ns=(0, 10**18))
    inside = UntrustedFolder(folder)

    assert all(inside.has_file_like(each, ".git") for each in ("src/**/*.py", "**/b.py", "src/l*.py", "src/*/[ab].py"))
    for none in ("docs/**/*.md", "**/*.md", "src/o*.py", "src/*.md", ".git/*", "**/HEAD", "/etc/*", "../*", "**"):
        assert not inside.has_file_like(none, ".git"), none
    assert outside.stat().st_atime_ns == 0


def test_what_was_opened_is_what_is_read(folder: Path) -> None:
    """A file that is replaced again and again by a link is read as a file, or not at all."""
    (folder / "file").write_text("own")
    done = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(done[1])
        os.set_blocking(done[0], False)
        while True:
            try:
                if not os.read(done[0], 1):
                    os._exit(0)
            except BlockingIOError:
                pass
            (folder / "next").symlink_to("/etc/passwd")
            (folder / "next").rename(folder / "file")
            (folder / "next").write_text("own")
            (folder / "next").rename(folder / "file")
    os.close(done[0])
    try:
        found = {UntrustedFolder(folder).read_start("file", MOST) for _ in range(2000)}
    finally:
        os.close(done[1])
        os.waitpid(child, 0)
    assert found <= {b"own", None, b""}
