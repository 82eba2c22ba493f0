"""Hostile users of tasks, goals and verification: told what is wrong, never kept waiting, and nothing is changed."""

import json
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genba.judgement.paths import _compiled, _walk, matches
from tests.project import Project

_PARTS = st.sampled_from(("*", "**", "**/", "a", "b", "/", "?", "{a,b}", "{ab,a}", "a/", "."))
_NAMES = st.text("ab.", min_size=1, max_size=4)


@given(st.lists(_PARTS, min_size=1, max_size=6), st.lists(_NAMES, min_size=1, max_size=4))
def test_a_glob_fits_the_same_paths_whichever_way_it_is_read(parts: list[str], names: list[str]) -> None:
    glob, path = _compiled("".join(parts)), "/".join(names)
    assert _walk(glob, path) == (glob.expression.fullmatch(path) is not None)


def test_no_glob_and_no_path_takes_longer_than_anybody_can_wait() -> None:
    assert not matches("a" * 250, "*a" * 40 + "b")
    assert not matches("a" * 4000, "*a*a*b")
    assert not matches("a/" * 2000 + "a", "**/a" * 30 + "/b")
    assert matches("a/" * 2000 + "b", "**/a/" * 30 + "**/b")


def branch_with_dod(project: Project, *goals: object, **files: str) -> None:
    """A branch `work` with a file of its own, held to these goals."""
    project.write(".genba/config.yaml", json.dumps({"dod": list(goals)}))
    for name, text in files.items():
        project.write(f"{name}.py", text)
    project.commit("Say what done means")
    project.git("checkout", "-q", "-b", "work")
    project.write("work.txt", "work\n")
    project.commit("work")
    project.git("checkout", "-q", "main")


SERVER = """
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(ANSWER)
    def log_message(self, *words): pass
http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"""


def test_a_path_into_an_answer_that_would_take_for_ever_is_given_up(project: Project) -> None:
    goal = {
        "type": "response_contains", "url": "/x", "serve": "exec python3 serve.py", "timeout_seconds": 2,
        "json_path": "$[?search(@, '(a+)+$')]",
    }  # fmt: skip
    branch_with_dod(project, goal, serve="""ANSWER = b'["' + b'a' * 5000 + b'!"]'\n""" + SERVER)

    done = project.genba("verify", "work", check=1)

    assert "rejected: goals_not_met" in done.out
    assert "took longer than 2 s" in done.out


@pytest.mark.parametrize(
    ("key", "value"), [("log.showSignature", "true"), ("diff.orderFile", "/nowhere"), ("diff.external", "false")]
)
def test_no_setting_of_the_users_comes_between_git_and_what_is_read(project: Project, key: str, value: str) -> None:
    branch_with_dod(project, "commits_exist", {"files_changed": "work.txt"})
    head, _, message = project.git("cat-file", "commit", "work").partition("\n\n")
    signed = f"{head}\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n iQEz\n -----END PGP SIGNATURE-----\n\n{message}\n"
    words = ["git", "hash-object", "-t", "commit", "-w", "--stdin"]
    made = subprocess.run(words, cwd=project.root, input=signed, capture_output=True, text=True, check=True)
    project.git("update-ref", "refs/heads/work", made.stdout.strip())
    project.git("config", key, value)

    seen = project.genba("verify", "work", "--json", check=0).json["verification"]

    assert [artifact["sha"] for artifact in seen["artifacts"] if artifact["type"] == "commit"] == [made.stdout.strip()]


def test_what_is_wrong_with_git_is_told_in_its_own_words(project: Project) -> None:
    done = project.genba("task", "list", check=1, GIT_CONFIG_COUNT="nonsense")
    assert "bogus count" in done.err
    assert "hint: " in done.err
