"""Code that ends the run of the tests when it is imported, and names that are another file on other machines."""

import pytest

from genba.judgement.verification.built_in_checks import judge_links_inside
from tests.judgement.branches import branch

ENDINGS = {
    "on import": "import os\n\nos._exit(0)\n",
    "under another name": "from os import _exit\n\n_exit(0)\n",
    "in a class body": "import os\n\n\nclass Settings:\n    ready = os._exit(0)\n",
    "at the end of the process": "import atexit\nimport os\n\natexit.register(os._exit, 0)\n",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_code_that_ends_the_importing_process_is_seen(ending: str) -> None:
    made = branch({"app.py": "x = 1\n"}, {"app.py": ENDINGS[ending]})

    assert made.tests_kept().detail == "adds a call that ends the whole run on import (app.py)"
    assert made.tests_kept("app.py").passed


@pytest.mark.parametrize(
    "text",
    [
        "import os\n\n\ndef leave():\n    os._exit(1)\n",
        'import os\n\nif __name__ == "__main__":\n    os._exit(0)\n',
        "import sys\n\nsys.exit(0)\n",
        "def broken(:\n",
    ],
)
def test_code_that_ends_only_when_it_is_asked_to_is_ordinary(text: str) -> None:
    assert branch({}, {"app.py": text}).tests_kept().passed


def test_what_the_base_had_already_is_not_held_against_a_branch() -> None:
    ends = ENDINGS["on import"]

    assert branch({"app.py": ends}, {"app.py": f"{ends}x = 1\n"}).tests_kept().passed


@pytest.mark.parametrize(
    "text",
    [
        "import unittest\n\nunittest.TestCase.assertEqual = print\n",
        "from unittest import TestCase as Case\n\n\ndef title():\n    Case.assertEqual = print\n",
        'import unittest as u\n\nsetattr(u.TestCase, "assertEqual", print)\n',
        "import _pytest.runner\n\n_pytest.runner.call_and_report = print\n",
    ],
)
def test_code_that_changes_what_runs_the_tests_is_seen(text: str) -> None:
    made = branch({}, {"app.py": text})

    assert made.tests_kept().detail == "adds a change to what runs the tests (app.py)"


@pytest.mark.parametrize(
    "text",
    [
        "import pytest\n\n\nclass Suite:\n    @pytest.fixture\n    def x(self):\n        self.y = 1\n",
        "from unittest import mock\n\nthing = mock.Mock()\nthing.answer = 42\n",
        "import unittest\n\nclass Case(unittest.TestCase):\n    longMessage = True\n",
    ],
)
def test_code_that_only_uses_what_runs_the_tests_is_ordinary(text: str) -> None:
    assert branch({}, {"lib/testing.py": text}).tests_kept().passed


def test_a_new_name_that_differs_by_case_alone_is_seen() -> None:
    made = branch({"src/a.py": "x\n"}, {"src/a.py": "x\n", "src/A.py": "y\n", "SRC/other.py": "z\n"})

    result = judge_links_inside(made.facts, made.blobs, made.files)

    assert result.detail == "src/A.py differs from src/a.py by case alone"


def test_a_file_may_be_renamed_by_its_case() -> None:
    made = branch({"a.py": "x\n"}, {"A.py": "x\n"})

    assert judge_links_inside(made.facts, made.blobs, made.files).passed
