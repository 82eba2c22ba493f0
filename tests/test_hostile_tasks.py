import json
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genba.judgement.verification.paths import _compiled, _walk, matches
from tests.project import GENBA, Project, ordinary_environment

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


def test_what_is_wrong_with_git_is_reported_in_its_own_words(project: Project) -> None:
    project.write(".git/config", "[core\n")
    done = project.genba("task", "list", check=1)
    assert "bad config line" in done.err
    assert "hint: " in done.err


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("dod: [git_clean]\ndod: []\n", 'the key "dod" stands there twice'),
        ("dod:\n- {type: custom_script, script: a, script: b}\n", 'the key "script" stands there twice'),
        ("dod:\n- tests_pass: 1\n", "expected str"),
        ("dod: &a [*a]\n", "nested too deeply"),
        ("dod:\n- {type: custom_script, script: 2020-01-01}\n", "is a date"),
        ("database: {url: 'mysql://x'}\n", "neither sqlite:// nor postgresql://"),
    ],
)
def test_settings_that_say_nothing_clear_are_refused(project: Project, text: str, result: str) -> None:
    project.write(".genba/config.yaml", text)
    done = project.genba("task", "add", "x", check=3)
    assert result in done.err
    assert "hint: " in done.err
    assert not (project.root / ".genba" / "genba.db").exists()


def test_a_key_of_an_anchor_may_be_repeated(project: Project) -> None:
    project.write("goals.yaml", "- &a {type: custom_script, script: a}\n- {<<: *a, script: b}\n")
    added = project.genba("task", "add", "x", "--goals", "goals.yaml", "--json", check=0).json
    assert [goal["script"] for goal in added["goals"]] == ["a", "b"]


@pytest.mark.parametrize("words", ["task add x --body -", "task add x --goals -"])
def test_a_missing_standard_input_is_reported(project: Project, words: str) -> None:
    environment = {**ordinary_environment(), **project.environment}
    line = f"{GENBA} {words} <&-"
    done = subprocess.run(line, shell=True, cwd=project.root, env=environment, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"there is no standard input" in done.stderr


@pytest.mark.parametrize("number", ["²", "１", "0", "-1", "9" * 30])
def test_what_is_no_number_is_no_task(project: Project, number: str) -> None:
    project.agent(parameters={"issue": {"type": "number"}})
    project.issue(1, "One")
    for words in (("verify", "--", number), ("run", "worker", f"--issue={number}"), ("task", "show", "--", number)):
        done = project.genba(*words)
        assert done.code in (2, 4), (words, done)
        assert "hint: " in done.err
        assert "GENBA_DEBUG" not in done.err


@pytest.mark.parametrize("kind", ["a folder", "a link to nowhere", "a link to itself", "half a page"])
def test_what_is_no_database_is_reported_and_left_alone(project: Project, kind: str) -> None:
    where = project.root / ".genba" / "genba.db"
    where.parent.mkdir()
    match kind:
        case "a folder":
            where.mkdir()
        case "a link to nowhere":
            where.symlink_to(project.root / "nowhere" / "x.db")
        case "a link to itself":
            where.symlink_to(where.name)
        case _:
            project.issue(1, "One")
            where.write_bytes(where.read_bytes()[:2048])
    for words in (("task", "list"), ("task", "add", "x"), ("verify", "1")):
        done = project.genba(*words, check=5)
        assert "hint: " in done.err


def test_the_file_of_the_blackboard_alone_has_all_of_it(project: Project) -> None:
    project.genba("task", "add", "x", check=0)
    assert [path.name for path in (project.root / ".genba").iterdir()] == ["genba.db"]


def test_hostile_texts_reach_no_terminal(project: Project) -> None:
    evil = "\x1b]0;pwn\x07\u202ered\n\tline"
    project.genba("task", "add", evil, "--body", evil, "--label", evil, check=0)
    project.genba("task", "comment", "1", evil, check=0)
    project.genba("task", "block", "1", "--reason", evil, check=0)
    for words in (("list",), ("show", "1")):
        done = project.genba("task", *words, check=0)
        assert not set(done.out) & {"\x1b", "\x07", "\u202e"}
