"""The program that takes the right to write to /proc: it is what its source says, and it starts what it is given."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from genba.connections.sandbox.containers import landlock_program as module
from genba.connections.sandbox.containers.landlock_program import landlock_program

ASSEMBLERS = {"x86_64": "", "aarch64": "aarch64-linux-gnu-"}
HEADERS = 120


@pytest.mark.parametrize("machine", ASSEMBLERS)
def test_the_program_is_what_its_source_says(machine: str, tmp_path: Path) -> None:
    prefix = ASSEMBLERS[machine] if machine != os.uname().machine else ""
    if shutil.which(f"{prefix}as") is None or (not prefix and machine != os.uname().machine):
        pytest.skip(f"not run: there is no assembler for {machine} here")
    source = Path(module.__file__).with_name(f"landlock_{machine}.s")
    made, plain = tmp_path / "made.o", tmp_path / "plain"
    subprocess.run([f"{prefix}as", str(source), "-o", str(made)], check=True)
    subprocess.run([f"{prefix}objcopy", "-O", "binary", "-j", ".text", str(made), str(plain)], check=True)

    program = landlock_program(machine)

    assert program is not None
    assert program[HEADERS:] == plain.read_bytes()


def test_there_is_none_for_a_machine_of_another_kind() -> None:
    assert landlock_program("riscv64") is None


def test_a_command_writes_below_its_folders_and_nowhere_else(tmp_path: Path) -> None:
    program = landlock_program(os.uname().machine)
    if program is None:
        pytest.skip(f"not run: no program for {os.uname().machine}")
    start, inside, outside = tmp_path / "start", tmp_path / "inside", tmp_path / "outside"
    start.write_bytes(program)
    start.chmod(0o700)
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "file").write_text("old")
    (tmp_path / "link").symlink_to(outside)
    line = 'echo new >"$1/file"; echo new >"$2/file"; exit 7'
    args = [str(inside), str(tmp_path / "link"), str(tmp_path / "absent"), str(start), "--"]

    done = subprocess.run(
        [str(start), *args, "/bin/sh", "-c", line, "sh", str(inside), str(outside)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 7
    assert (inside / "file").read_text() == "new\n"
    assert (outside / "file").read_text() == "old"
    assert "ermission denied" in done.stderr
