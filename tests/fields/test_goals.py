"""Goals: every type, and every field of each, on a commit in a clean checkout."""

from pathlib import Path
from typing import Any

import pytest

from tests.fields.branches import BRANCH, SERVE, SERVICE, branch, hold_to, judged, result_of, verdict
from tests.project import Project

PASSED = "passed"
FAILED = "failed"
ADDING = "import unittest\n\nfrom adding import add\n\n\n"
ADDS = "class Adds(unittest.TestCase):\n    def test_adds(self):\n        self.assertEqual(add(2, 2), 4)\n"
UNITTEST = "python3 -m unittest -q"
DEAF = (
    "python3 -c 'import socket, threading; s = socket.create_server((\"127.0.0.1\", {port})); threading.Event().wait()'"
)
KEY = "".join(("AKIA", "Z7QH3LMD", "X4RTB6WK"))
"""Looks like a key of a cloud, and never was one."""


def asks(kind: str, **more: Any) -> dict[str, Any]:
    """A goal that asks the mirror."""
    return {"type": kind, "url": "/", "serve": SERVE, **more}


def mirror(project: Project) -> Project:
    """The project, with a service on its base."""
    project.write("mirror.py", SERVICE)
    return project


# ── what every goal has ──────────────────────────────────────────────────────────────────────────────────────────────


def _broken(project: Project, kind: str) -> dict[str, Any]:
    """A branch on which a goal of this type fails, and the goal."""
    project.write("tests/test_adding.py", ADDING + ADDS)
    files = {"work.txt": "work\n"}
    if kind == "protected_paths":
        files = {"ruff.toml": "line-length = 500\n"}
    elif kind == "tests_kept":
        files = {"tests/test_adding.py": "\n"}
    project.commit()
    branch(project, files)
    project.git("switch", "-q", BRANCH)
    if kind == "links_inside":
        Path(project.root / "way-out").symlink_to("/etc/hostname")
        project.commit()
    elif kind == "git_clean":
        project.write("README.md", "changed\n")
    elif kind == "commits_exist":
        project.git("reset", "-q", "--hard", "main")
    if kind != "git_clean":
        project.git("switch", "-q", "main")
    condition: dict[str, Any] = {
        "lint_passes": {"command": "false"},
        "build_succeeds": {"command": "false"},
        "tests_pass": {"command": "false"},
        "no_secrets": {"command": "false"},
        "custom_script": {"script": "false"},
        "files_changed": {"pattern": "absent/*"},
        "file_exists": {"path": "absent.txt"},
        "endpoint_responds": {"url": "/", "serve": "false"},
        "response_contains": {"url": "/", "serve": "false", "text": "hello"},
    }.get(kind, {})
    return {"type": kind, **condition}


@pytest.mark.parametrize(
    "kind",
    [
        "lint_passes", "build_succeeds", "tests_pass", "test_added", "files_changed", "file_exists", "no_secrets",
        "endpoint_responds", "response_contains", "custom_script", "git_clean", "commits_exist", "protected_paths",
        "tests_kept", "links_inside",
    ],
)  # fmt: skip
def test_a_goal_rejects_unless_it_is_not_required(project: Project, kind: str) -> None:
    goal = _broken(project, kind)
    dirty = kind == "git_clean"
    found = {}
    for required in (True, False):
        if dirty:
            project.git("stash", "-q")
            project.git("switch", "-q", "main")
        hold_to(project, [{**goal, "required": required}])
        if dirty:
            project.git("switch", "-q", BRANCH)
            project.git("stash", "pop", "-q")
        found[required] = verdict(project)
    assert (found[True]["status"], found[True]["reason"]) == ("rejected", "goals_not_met")
    assert found[False]["status"] == "done"
    assert [result_of(each, kind)["status"] for each in found.values()] == [FAILED, FAILED]


@pytest.mark.parametrize(
    ("goal", "output"),
    [
        ({"type": "lint_passes", "command": "sleep 30"}, "took longer than 0.3 s"),
        ({"type": "build_succeeds", "command": "sleep 30"}, "took longer than 0.3 s"),
        ({"type": "tests_pass", "command": "sleep 30"}, "took longer than 0.3 s"),
        ({"type": "no_secrets", "command": "sleep 30"}, "took longer than 0.3 s"),
        ({"type": "custom_script", "script": "sleep 30"}, "took longer than 0.3 s"),
        ({"type": "test_added", "must_fail_on_base": True, "command": "sleep 30"}, "took longer than 0.3 s"),
        ({"type": "endpoint_responds", "url": "/", "serve": DEAF}, "GET / → no answer within 0.3 s"),
        ({"type": "response_contains", "url": "/", "serve": DEAF, "text": "a"}, "GET / → no answer within 0.3 s"),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_a_goal_that_takes_too_long_fails(project: Project, goal: dict[str, Any], output: str) -> None:
    files = {"tests/test_adding.py": ADDING + ADDS}
    assert judged(project, {**goal, "timeout_seconds": 0.3}, files) == (FAILED, output)


# ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["lint_passes", "build_succeeds", "tests_pass"])
def test_a_command_decides(project: Project, kind: str) -> None:
    hold_to(project, [{"type": kind, "command": "test ! -e wrong.txt"}, {"type": "custom_script", "script": "true"}])
    branch(project)
    assert result_of(verdict(project), kind)["status"] == PASSED
    project.git("switch", "-q", BRANCH)
    project.write("wrong.txt", "wrong\n")
    project.commit()
    assert result_of(verdict(project), kind)["status"] == FAILED


@pytest.mark.parametrize("kind", ["lint_passes", "build_succeeds", "tests_pass"])
def test_a_command_of_words_is_read_by_no_shell(project: Project, kind: str) -> None:
    assert judged(project, {"type": kind, "command": ["test", "$HOME", "=", "$HOME"]})[0] == PASSED


@pytest.mark.parametrize(
    ("kind", "command"), [("lint_passes", "make lint"), ("build_succeeds", "make build"), ("tests_pass", "make test")]
)
def test_without_a_command_one_is_detected_on_the_base(project: Project, kind: str, command: str) -> None:
    project.write("Makefile", "lint build test:\n\t@test -e work.txt\n")
    hold_to(project, [{"type": kind}])
    branch(project, {"work.txt": "work\n", "package.json": '{"scripts": {"lint": "false", "build": "", "test": "x"}}'})
    found = verdict(project)
    assert found["results"][0]["goal"]["goal"]["command"] == command
    assert result_of(found, kind)["status"] == PASSED


@pytest.mark.parametrize("kind", ["lint_passes", "build_succeeds", "tests_pass"])
def test_a_goal_that_cannot_be_run_is_neither_passed_nor_failed(project: Project, kind: str) -> None:
    hold_to(project, [{"type": kind, "command": "no-such-program"}])
    branch(project)
    found = verdict(project)
    assert (found["status"], result_of(found, kind)["status"]) == ("error", "error")


def test_a_script_decides(project: Project) -> None:
    assert judged(project, {"type": "custom_script", "script": "grep -q work work.txt"})[0] == PASSED


def test_a_script_that_fails_is_reported_with_its_last_line(project: Project) -> None:
    goal = {"type": "custom_script", "script": "echo the menu has no price; exit 3"}
    assert judged(project, goal) == (FAILED, "the menu has no price (exit code 3)")


def test_a_script_may_have_to_be_silent(project: Project) -> None:
    goal = {"type": "custom_script", "script": "echo TODO", "empty_output": True}
    assert judged(project, goal) == (FAILED, "printed something: TODO")


# ── what git shows ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("pattern", "status"),
    [
        ("src/**/*", PASSED),
        ("*.py", PASSED),
        (":code", PASSED),
        (":docs", PASSED),
        (":tests", FAILED),
        ("*.go", FAILED),
    ],
)
def test_files_changed_wants_a_file_that_fits(project: Project, pattern: str, status: str) -> None:
    files = {"src/tea/pot.py": "POT = 1\n", "README.md": "# Tea\n"}
    assert judged(project, {"type": "files_changed", "pattern": pattern}, files)[0] == status


@pytest.mark.parametrize(("path", "status"), [("docs/tea.md", PASSED), ("docs/*.md", PASSED), ("tea.md", FAILED)])
def test_file_exists_wants_a_file_at_its_path(project: Project, path: str, status: str) -> None:
    assert judged(project, {"type": "file_exists", "path": path}, {"docs/tea.md": "Tea\n"})[0] == status


def test_test_added_wants_a_new_test(project: Project) -> None:
    assert judged(project, {"type": "test_added"}, {"tests/test_adding.py": ADDING + ADDS})[0] == PASSED


def test_a_test_that_can_never_fail_is_no_new_test(project: Project) -> None:
    files = {"tests/test_adding.py": "def test_adds():\n    assert True\n"}
    assert judged(project, {"type": "test_added"}, files)[0] == FAILED


@pytest.mark.parametrize(("pattern", "status"), [("spec/*_check.py", PASSED), ("tests/*", FAILED)])
def test_the_pattern_says_which_files_are_tests(project: Project, pattern: str, status: str) -> None:
    files = {"spec/adding_check.py": ADDING + ADDS}
    assert judged(project, {"type": "test_added", "pattern": pattern}, files)[0] == status


@pytest.mark.parametrize(
    ("base", "status", "output"),
    [
        ("a - b", PASSED, "red on the base, green on the branch"),
        ("a + b", FAILED, "test_adding.py passes on the base as well"),
    ],
)
def test_a_new_test_may_have_to_be_red_on_the_base(project: Project, base: str, status: str, output: str) -> None:
    project.write("adding.py", f"def add(a, b):\n    return {base}\n")
    files = {"adding.py": "def add(a, b):\n    return a + b\n", "test_adding.py": ADDING + ADDS}
    goal = {"type": "test_added", "must_fail_on_base": True, "command": UNITTEST}
    assert judged(project, goal, files) == (status, output)


def test_the_new_tests_stand_where_the_command_says(project: Project) -> None:
    project.write("adding.py", "def add(a, b):\n    return a - b\n")
    files = {"adding.py": "def add(a, b):\n    return a + b\n", "test_adding.py": ADDING + ADDS}
    command = "echo asked for {files}; python3 -m unittest -q {files}"
    hold_to(project, [{"type": "test_added", "must_fail_on_base": True, "command": command}])
    branch(project, files)
    result = result_of(verdict(project), "test_added")
    assert result["status"] == PASSED
    assert "asked for test_adding.py" in result["output"]


def test_no_secrets_looks_at_every_commit(project: Project) -> None:
    hold_to(project, [{"type": "no_secrets"}])
    branch(project, {"keys.py": f'KEY = "{KEY}"\n'})
    project.git("switch", "-q", BRANCH)
    project.write("keys.py", "KEY = None\n")
    project.commit("Take it back")
    result = result_of(verdict(project), "no_secrets")
    assert result["status"] == FAILED
    assert "in keys.py:1 (commit" in result["detail"]
    assert KEY not in str(result)


def test_a_scanner_of_your_own_looks_for_secrets(project: Project) -> None:
    goal = {"type": "no_secrets", "command": "! grep -rn hush *.txt"}
    assert judged(project, goal, {"work.txt": "hush\n"})[0] == FAILED


def test_git_clean_wants_nothing_uncommitted(project: Project) -> None:
    hold_to(project, [{"type": "git_clean"}])
    branch(project)
    assert result_of(verdict(project), "git_clean")["status"] == PASSED
    project.git("switch", "-q", BRANCH)
    project.write("work.txt", "more\n")
    assert result_of(verdict(project), "git_clean")["detail"] == "1 file not committed: work.txt"


def test_commits_exist_wants_a_commit_that_changes_something(project: Project) -> None:
    hold_to(project, [{"type": "commits_exist"}])
    project.git("switch", "-q", "-c", BRANCH)
    project.commit("Nothing at all")
    assert result_of(verdict(project), "commits_exist")["detail"] == "its commits change nothing"
    project.write("work.txt", "work\n")
    project.commit()
    assert result_of(verdict(project), "commits_exist")["status"] == PASSED


# ── guards ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_protected_paths_are_left_alone(project: Project) -> None:
    branch(project, {"ruff.toml": "line-length = 500\n"})
    assert result_of(verdict(project), "protected_paths")["detail"] == "changes what judges it: ruff.toml"
    assert verdict(project, "--may-change", "ruff.toml")["status"] == "done"


def test_the_tests_of_the_base_are_kept(project: Project) -> None:
    project.write("tests/test_adding.py", ADDING + ADDS)
    project.commit()
    branch(project, {"tests/test_adding.py": ADDING + ADDS.replace("4", "5")})
    found = result_of(verdict(project), "tests_kept")
    assert (found["status"], "tests/test_adding.py" in found["detail"]) == (FAILED, True)
    assert verdict(project, "--may-change", ":tests")["status"] == "done"


def test_links_stay_inside(project: Project) -> None:
    branch(project)
    project.git("switch", "-q", BRANCH)
    Path(project.root / "inside").symlink_to("work.txt")
    project.commit()
    assert result_of(verdict(project), "links_inside")["status"] == PASSED
    Path(project.root / "outside").symlink_to("/etc/hostname")
    project.commit()
    assert result_of(verdict(project), "links_inside")["status"] == FAILED


# ── services ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["endpoint_responds", "response_contains"])
def test_a_service_is_started_from_the_commit_and_asked(project: Project, kind: str) -> None:
    more = {"text": "GET"} if kind == "response_contains" else {}
    assert judged(mirror(project), asks(kind, **more))[0] == PASSED


@pytest.mark.parametrize("kind", ["endpoint_responds", "response_contains"])
@pytest.mark.parametrize(("url", "status"), [("/status/201", PASSED), ("/status/404", FAILED)])
def test_the_url_and_the_status_of_an_answer_count(project: Project, kind: str, url: str, status: str) -> None:
    more = {"text": "GET"} if kind == "response_contains" else {}
    assert judged(mirror(project), asks(kind, url=url, status=201, **more))[0] == status


def test_an_address_of_another_machine_is_not_asked(project: Project) -> None:
    goal = asks("endpoint_responds", url="http://example.invalid/")
    assert "is not this machine" in judged(mirror(project), goal)[1]


@pytest.mark.parametrize(
    ("more", "path", "value"),
    [
        ({"method": "PUT"}, "$.method", "PUT"),
        ({"headers": {"X-Colour": "red"}}, "$.colour", "red"),
        ({"method": "POST", "body": "a text"}, "$.body", "a text"),
        ({"method": "POST", "body": {"tea": 1}}, "$.kind", "application/json"),
    ],
    ids=["method", "headers", "body", "body-as-json"],
)
def test_the_question_is_put_as_the_goal_says(project: Project, more: dict[str, Any], path: str, value: str) -> None:
    goal = asks("response_contains", json_path=path, equals=value, **more)
    assert judged(mirror(project), goal) == (PASSED, f'{more.get("method", "GET")} / → 200, {path} is "{value}"')


def test_an_endpoint_is_asked_by_the_method_with_headers_and_a_body(project: Project) -> None:
    strict = SERVICE.replace(
        "words = self.path",
        'told["fits"] = (self.command, told["colour"], asked) == ("POST", "red", "tea")\n'
        '        self.path = "/" if told["fits"] else "/status/400"\n'
        "        words = self.path",
    )
    project.write("mirror.py", strict)
    goal = asks("endpoint_responds", method="POST", headers={"X-Colour": "red"}, body="tea")
    assert judged(project, goal) == (PASSED, "POST / → 200")
    changes: list[dict[str, Any]] = [{"method": "GET"}, {"headers": {}}, {"body": "milk"}]
    for change in changes:
        hold_to(project, [{**goal, **change}])
        assert "→ 400, wanted 200" in result_of(verdict(project), "endpoint_responds")["detail"]


@pytest.mark.parametrize("kind", ["endpoint_responds", "response_contains"])
def test_a_goal_about_a_service_needs_one(project: Project, kind: str) -> None:
    goal = {"type": kind, "url": "/", **({"text": "GET"} if kind == "response_contains" else {})}
    status, result = judged(project, goal)
    assert (status, "no serve command" in result) == ("error", True)


@pytest.mark.parametrize("kind", ["endpoint_responds", "response_contains"])
def test_a_service_is_ready_when_it_says_so_or_answers(project: Project, kind: str) -> None:
    more = {"text": "GET"} if kind == "response_contains" else {}
    hold_to(mirror(project), [asks(kind, ready_when="the mirror hangs", **more)])
    branch(project)
    assert result_of(verdict(project), kind)["status"] == PASSED
    hold_to(project, [asks(kind, ready_when="/status/204", **more)])
    assert result_of(verdict(project), kind)["status"] == PASSED
    hold_to(project, [asks(kind, ready_when="/status/503", ready_seconds=0.5, **more)])
    assert result_of(verdict(project), kind)["detail"] == "the service was not ready within 0.5 s"


@pytest.mark.parametrize("kind", ["endpoint_responds", "response_contains"])
def test_a_service_has_so_long_to_be_ready(project: Project, kind: str) -> None:
    more = {"text": "GET"} if kind == "response_contains" else {}
    goal = asks(kind, ready_when="never said", ready_seconds=0.2, **more)
    assert judged(mirror(project), goal) == (FAILED, "the service was not ready within 0.2 s")


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ({"json_path": "$.method"}, PASSED),
        ({"json_path": "$.absent"}, FAILED),
        ({"json_path": "$.method", "equals": "GET"}, PASSED),
        ({"json_path": "$.method", "equals": "PUT"}, FAILED),
        ({"text": '"method": "GET"'}, PASSED),
        ({"text": "PUT"}, FAILED),
    ],
)
def test_an_answer_contains_what_it_should(project: Project, condition: dict[str, Any], status: str) -> None:
    assert judged(mirror(project), asks("response_contains", **condition))[0] == status


# ── how goals are written ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("short", "whole"),
    [
        ("tests_pass", {"type": "tests_pass"}),
        ("tests_pass:pytest -q", {"type": "tests_pass", "command": "pytest -q"}),
        ({"lint_passes": "npm run lint"}, {"type": "lint_passes", "command": "npm run lint"}),
        ({"file_exists": {"path": "a.txt", "required": False}}, {"type": "file_exists", "path": "a.txt"}),
        (
            "endpoint_responds:POST /api/login → 200",
            {"type": "endpoint_responds", "url": "/api/login", "method": "POST", "status": 200},
        ),
        (
            'response_contains:GET /api/me $.name == "Ada"',
            {"type": "response_contains", "url": "/api/me", "json_path": "$.name", "equals": "Ada"},
        ),
        (
            "response_contains:/ welcome",
            {"type": "response_contains", "url": "/", "text": "welcome"},
        ),
    ],
)
def test_a_goal_has_a_short_form(project: Project, short: Any, whole: dict[str, Any]) -> None:
    hold_to(project, [short])
    goals = project.genba("verify", "--explain", "--json", check=0).json["policy"]["goals"]
    assert {key: goals[0]["goal"][key] for key in whole} == whole


def test_a_condition_that_is_missing_is_reported_before_anything_runs(project: Project) -> None:
    hold_to(project, ["files_changed", "response_contains:/", {"type": "tests_past"}])
    result = project.genba("verify", "main", check=3).err
    assert "dod[0]" in result
    assert "dod[2]" in result
