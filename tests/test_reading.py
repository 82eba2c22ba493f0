"""Shapes are read for the first time by many threads at once, and the process lives."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from genba.domain.decoding import fitted, leniently_read, reader
from genba.domain.sessions.workspaces import MergeStatus, Proposal
from tests.preloaded import ROOT, ordinary_environment

FINDS_OUT = {"msgspec.json.Decoder", "msgspec.convert", "msgspec.yaml.decode", "msgspec.toml.decode"}

_MANY_AT_ONCE = """
import sys, threading, types
import msgspec
from genba.domain.decoding import fitted, reader

def shapes():
    lines = ["import msgspec"]
    for number in range(5):
        lines.append(f"class S{number}(msgspec.Struct):")
        lines += [f"    a{each}: 'list[int] | None' = None" for each in range(20)]
        lines += [f"    n: 'S{number - 1} | None' = None"] if number else []
    module = types.ModuleType(f"shapes{len(sys.modules)}")
    sys.modules[module.__name__] = module
    exec(chr(10).join(lines), module.__dict__)
    return module

sys.setswitchinterval(1e-6)
text = b'{"a1": [1], "a19": [2], "n": {"a3": [1], "n": {"a3": [1]}}}'
for _ in range(60):
    module, start, read = shapes(), threading.Barrier(8), []
    def work(number):
        start.wait()
        kind = getattr(module, f"S{4 - number % 2}")
        read.append(reader(kind).decode(text) if number < 6 else fitted(msgspec.json.decode(text), kind))
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read) == 8, read
print("alive")
"""


def test_a_type_that_many_threads_decode_for_the_first_time_crashes_no_process() -> None:
    words = [sys.executable, "-c", _MANY_AT_ONCE]
    done = subprocess.run(words, cwd=ROOT, env=ordinary_environment(), capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout.strip()) == (0, "alive"), done.stderr


def test_only_one_module_decodes_types() -> None:
    source = Path(__file__).parents[1] / "src" / "genba"
    found = []
    for path in source.rglob("*.py"):
        if path.name == "decoding.py" or "testing" in path.parts:
            continue
        for call in (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)):
            named = ast.unparse(call.func)
            typed = named.startswith("msgspec.") and any(word.arg == "type" for word in call.keywords)
            if named in FINDS_OUT or typed:
                found.append(f"{path.relative_to(source)}:{call.lineno} {named}")
    assert found == []


def test_texts_stand_for_numbers_only_where_that_is_asked_for() -> None:
    assert reader(tuple[int, ...]).decode(b"[1, 2]") == (1, 2)
    assert fitted(["1"], list[int], strict=False) == [1]
    assert leniently_read(b'["1"]', list[int]) == [1]
    assert fitted("merged", MergeStatus) is MergeStatus.MERGED
    assert reader(Proposal) is reader(Proposal)
    with pytest.raises(ValueError, match="int"):
        fitted(["1"], list[int])
