"""The pages that are made, or that vouch for something: they are fresh, and what they name exists."""

import ast
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.test_docs import ROOT, blocks, prose, text_of

DOCS = ROOT / "docs"
VOUCHING = (ROOT / "SECURITY.md", DOCS / "supply-chain.md", DOCS / "reference" / "privileges.md")
"""The pages whose every law names the test that shows it."""
_NAMED_TEST = re.compile(r"`([\w.]+\.py)::(test_\w+)`")


def loaded(path: Path) -> ModuleType:
    """A script of the documents, as a module."""
    spec = importlib.util.spec_from_file_location(f"docs_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[made.__name__] = made
    spec.loader.exec_module(made)
    return made


def test_no_made_page_is_stale() -> None:
    assert loaded(DOCS / "generate.py").stale() == [], "make docs"


def test_every_test_that_the_security_model_names_exists() -> None:
    files: dict[str, str] = {}
    for folder in (ROOT / "tests", ROOT / "src" / "genba" / "testing"):
        for path in folder.rglob("*.py"):
            files[path.name] = files.get(path.name, "") + text_of(path)
    named = [found for page in VOUCHING for found in _NAMED_TEST.findall(text_of(page))]
    assert len(named) > 120
    assert [f"{file}::{name}" for file, name in named if f"def {name}(" not in files.get(file, "")] == []


def tables(page: Path) -> dict[str, list[str]]:
    """The rows of the tables of a page, by the line that heads them."""
    found: dict[str, list[str]] = {}
    for head, rows in re.findall(r"^(\|.*)\n\|[-|]+\|\n((?:\|.*\n)+)", text_of(page), re.MULTILINE):
        found.setdefault(head, []).extend(rows.splitlines())
    return found


@pytest.mark.parametrize("page", VOUCHING, ids=lambda page: page.name)
def test_every_law_of_the_security_model_names_a_test(page: Path) -> None:
    rows = [row for head, rows in tables(page).items() if head.endswith("| shown by |") for row in rows]
    assert rows
    assert [row for row in rows if not _NAMED_TEST.search(row.split("|")[-2])] == []


def test_every_table_of_the_security_model_that_promises_something_names_tests() -> None:
    without = {head for head in tables(ROOT / "SECURITY.md") if not head.endswith("| shown by |")}
    assert without == {"| who | trusted with |"}


def test_every_module_that_the_architecture_names_exists() -> None:
    named = set(re.findall(r"`([\w./]+/[\w./]*(?:\.py|\.yaml|/))`", prose(DOCS / "architecture.md")))
    paths = {name for name in named if not name.startswith(".")}
    assert len(paths) > 80
    assert sorted(n for n in paths if not (ROOT / "src" / "genba" / n).exists() and not (ROOT / n).exists()) == []


def test_the_pictures_are_few_and_small_and_all_are_shown() -> None:
    taken = {f"{name}.png" for name, *_ in loaded(DOCS / "images" / "take_pictures.py").PICTURES}
    there = {path.name: path.stat().st_size for path in DOCS.glob("images/*.png")}
    assert set(there) == taken
    assert len(there) <= 8
    assert {name for name, size in there.items() if size > 200_000} == set()
    pages = "".join(text_of(path) for path in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
    assert {name for name in taken if name not in pages} == set()


def test_every_claim_about_another_system_has_its_source_and_its_day() -> None:
    text = text_of(DOCS / "comparison.md")
    sources = re.findall(r"^\[\^?(\w[\w-]*)\]: (https://\S+)", text, re.MULTILINE)
    assert len(sources) >= 8
    used = set(re.findall(r"\]\[([\w-]+)\]", text))
    assert used == {name for name, _ in sources}
    assert re.search(r"looked at on 20\d\d-\d\d-\d\d", text)


def test_both_first_pages_show_the_same_commands_and_lead_to_each_other() -> None:
    english, japanese = ROOT / "README.md", ROOT / "README.ja.md"
    assert "(README.ja.md)" in prose(english)
    assert "(README.md)" in prose(japanese)

    def commands(page: Path) -> list[str]:
        shown = [content for marker, content in blocks(page) if marker == "sh"]
        return [line.partition("#")[0].strip() for line in "".join(shown).splitlines()]

    assert commands(english) == commands(japanese)


def printable_texts() -> list[str]:
    """The string literals of the product; a NUL stands for each value in an f-string."""
    texts = []
    for path in (ROOT / "src" / "genba").rglob("*.py"):
        for node in ast.walk(ast.parse(text_of(path))):
            if isinstance(node, ast.JoinedStr):
                parts = (str(each.value) if isinstance(each, ast.Constant) else "\0" for each in node.values)
                texts.append("".join(parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return texts


def test_every_message_of_the_troubleshooting_page_is_in_the_code() -> None:
    cells = re.findall(r"^\| (`[^|]*`) \|", text_of(DOCS / "troubleshooting.md"), re.MULTILINE)
    messages = [message for cell in cells for message in re.findall(r"`([^`]+)`", cell)]
    fragments = [part.strip() for message in messages for part in message.split("…") if part.strip()]
    texts = "\n".join(printable_texts())
    assert len(fragments) > 25
    assert [each for each in fragments if each not in texts] == []
