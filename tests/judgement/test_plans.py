"""Plans of a planner: what becomes parts, and what goes back with every problem named."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genba.domain.fleet.records import Plan, Subtask
from genba.domain.goals.goal import FileExists, TestsPass
from genba.domain.problems import Problem
from genba.domain.sessions.evidence import CheckStatus
from genba.domain.tasks.task import Priority, Task
from genba.judgement.scheduling.plans import (
    PlanLimits,
    find_circle,
    plan_check,
    plan_limits,
    plan_lines,
    read_plan,
)

TASK = Task(id=1, number=12, title="Add a login", type="feature")
LIMITS = PlanLimits(max_parts=3, agents=("iterator", "builder"))


def part(key: str, **more: Any) -> dict[str, Any]:
    return {"key": key, "title": f"Part {key}", "body": "Do it.", "goals": [], **more}


def proposal(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"status": "completed", "summary": "In steps.", "subtasks": list(parts), **more}


def plan(*parts: dict[str, Any], limits: PlanLimits = LIMITS) -> Plan:
    read = read_plan(proposal(*parts), TASK, limits, "planner-12-1")
    assert isinstance(read, Plan), read
    return read


def problems(*parts: dict[str, Any], limits: PlanLimits = LIMITS, task: Task = TASK, **more: Any) -> list[str]:
    read = read_plan(proposal(*parts, **more), task, limits)
    assert isinstance(read, tuple), read
    assert all(isinstance(problem, Problem) for problem in read)
    return [str(problem) for problem in read]


def test_a_plan_becomes_parts_with_goals_scopes_and_dependencies() -> None:
    read = plan(
        part("api", goals=["tests_pass", {"type": "file_exists", "path": "docs/api.md"}], scope=["src/api/**"]),
        part("ui", depends_on=["api", "api"], priority="high", type="bug", assignee="builder"),
    )

    assert (read.task, read.run, read.summary, read.status) == (12, "planner-12-1", "In steps.", "proposed")
    api, ui = read.subtasks
    assert api.goals == (TestsPass(), FileExists(path="docs/api.md"))
    assert api.scope == ("src/api/**",)
    assert (ui.depends_on, ui.priority, ui.type, ui.assignee) == (("api",), Priority.HIGH, "bug", "builder")


def test_the_same_goal_twice_is_one() -> None:
    asks = "endpoint_responds: GET /health → 200"

    assert len(plan(part("a", goals=[asks, asks, "lint_passes"])).subtasks[0].goals) == 2


def test_parts_stand_behind_what_they_depend_on() -> None:
    read = plan(part("c", depends_on=["b"]), part("b", depends_on=["a"]), part("a"))

    assert [found.key for found in read.subtasks] == ["a", "b", "c"]


def test_all_problems_are_reported_at_once() -> None:
    found = problems(
        part("Big Key", title=" "),
        part("b", depends_on=["a"], assignee="nobody", goals=["tests_passes"]),
        part("b", title="Part b", type="chore"),
        part("d", scope=["../x"]),
    )

    assert len(found) == 10
    assert "at most 3 are allowed" in found[0]
    assert any("subtasks[2].key" in line and "subtasks[1] already" in line for line in found)
    assert any("subtasks[2].title" in line and "subtasks[1] already" in line for line in found)
    assert any('subtasks[0].key: "Big Key" is not a key' in line for line in found)
    assert any("subtasks[0].title: is empty" in line for line in found)
    assert any('assignee: "nobody" is not an agent here' in line for line in found)
    assert any('"tests_passes"' in line and "subtasks[1].goals[0]" in line for line in found)
    assert any('"chore" is not a type' in line for line in found)
    assert any('"../x" is not a path inside' in line for line in found)


def test_what_is_not_shaped_like_a_plan_is_reported_by_its_place() -> None:
    read = read_plan({"subtasks": [{"key": 1, "titel": "x"}], "extra": 1}, TASK, LIMITS)

    assert isinstance(read, tuple)
    values = {problem.path: problem.message for problem in read}
    assert set(values) == {"subtasks[0].key", "subtasks[0].titel", "subtasks[0].title", "extra"}


def test_a_circle_is_named() -> None:
    found = problems(part("a", depends_on=["c"]), part("b", depends_on=["a"]), part("c", depends_on=["b"]))

    assert found == ["subtasks: the parts wait for each other in a circle: a → c → b → a"]


def test_a_part_that_waits_for_itself_is_a_circle() -> None:
    assert problems(part("a", depends_on=["a"])) == ["subtasks: the parts wait for each other in a circle: a → a"]


@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdef"), max_size=3)))
def test_a_circle_is_found_exactly_when_there_is_one(waits: dict[str, list[str]]) -> None:
    circle = find_circle(waits)

    left = dict(waits)
    while free := [name for name, on in left.items() if not any(other in left for other in on)]:
        for name in free:
            del left[name]
    assert bool(circle) == bool(left)
    assert all(after in waits[name] for name, after in zip(circle, (*circle[1:], *circle[:1]), strict=True))


def test_a_dependency_on_nothing_names_what_was_meant() -> None:
    read = read_plan(proposal(part("login"), part("ui", depends_on=["logn"])), TASK, LIMITS)

    assert isinstance(read, tuple)
    assert [(problem.message, problem.hint) for problem in read] == [
        ('"logn" is no key of this plan', 'did you mean "login"?')
    ]


def test_parts_that_are_there_and_the_task_itself_are_not_proposed_again() -> None:
    limits = PlanLimits(titles=("Write  the PARSER",))

    found = problems(part("a", title="write the parser"), part("b", title="add a  login"), limits=limits)

    assert found == [
        'subtasks[0].title: "write the parser" is the title of a part that is there already',
        'subtasks[1].title: "add a  login" is the title of the task itself',
    ]


def test_an_empty_plan_and_one_that_is_too_deep_are_refused() -> None:
    assert problems() == ["subtasks: is empty"]
    deep = PlanLimits(depth=2, max_depth=2)
    assert problems(part("a"), limits=deep) == [
        "subtasks: #12 has 2 tasks above it, and at most 2 levels of parts are allowed"
    ]


def test_a_planner_gives_no_leave_to_change_what_judges_the_work() -> None:
    assert problems(part("a", may_change=["tests/**"])) == [
        "subtasks[0].may_change: a plan cannot give leave to change protected paths"
    ]
    assert "leave to change tests" in problems(part("a", type="test"))[0]
    assert problems(part("a", scope=[".genba/config.yaml"]))[0].endswith("work that changes it would be rejected")
    assert "not a plan's to set" in problems(part("a", goals=[{"type": "protected_paths", "required": False}]))[0]


def test_a_task_about_tests_may_have_parts_about_tests() -> None:
    tests = Task(id=1, number=12, title="Tidy the tests", type="test")

    assert isinstance(read_plan(proposal(part("a", type="test")), tests, LIMITS), Plan)


@pytest.mark.parametrize(
    "pattern", ["/etc/passwd", "~/x", "a/../../b", "", "C:\\x", ".git/hooks/**", ":code", "a\nb", "x" * 300]
)
def test_a_scope_stays_inside_of_the_repository(pattern: str) -> None:
    assert len(problems(part("a", scope=[pattern]))) == 1


@pytest.mark.parametrize("pattern", ["src/**", "./README.md", "a b/c.py", "src/[id].tsx", "..hidden/x", "日本/**"])
def test_an_ordinary_scope_is_taken(pattern: str) -> None:
    assert plan(part("a", scope=[pattern])).subtasks[0].scope == (pattern,)


@pytest.mark.parametrize(
    "more",
    [
        {"title": "x" * 201},
        {"title": "two\nlines"},
        {"title": "right\u202eleft"},
        {"body": "x" * 20_001},
        {"scope": ["src/a.py"] * 41},
        {"goals": ["git_clean"] * 21},
        {"goals": ["custom_script:" + "x" * 3000]},
        {"goals": [{"type": "tests_pass", "timeout_seconds": 1e9}]},
        {"goals": ["response_contains: /api"]},
        {"goals": [7]},
        {"body": "half \ud800"},
        {"priority": "urgent"},
    ],
)
def test_what_is_too_long_or_no_text_is_refused(more: dict[str, Any]) -> None:
    assert len(problems(part("a", **more))) == 1


def test_a_summary_has_an_end() -> None:
    assert "summary: has 4001 characters" in problems(part("a"), summary="x" * 4001)[0]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=True),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("key", "title", "goals", "scope", "subtasks", "depends_on", "type", "x")),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(st.lists(_JSON, max_size=4), _JSON)
def test_no_answer_of_a_model_breaks_the_reader(parts: list[Any], summary: Any) -> None:
    read = read_plan({"subtasks": parts, "summary": summary}, TASK, LIMITS)

    assert isinstance(read, Plan) or all(isinstance(problem, Problem) for problem in read)


def test_the_limits_of_a_plan_come_from_the_tasks_around_it() -> None:
    parent = Task(id=1, number=1, title="All", children=(2,))
    task = Task(id=2, number=2, title="Half", parent=1, children=(3, 4))
    tasks = {
        1: parent,
        2: task,
        3: Task(id=3, number=3, title="Quarter", parent=2),
        4: Task(id=4, number=4, title="Review: Half", parent=2, review_of=2),
    }

    limits = plan_limits(task, tasks, max_parts=5, agents=("a",))

    assert (limits.depth, limits.titles, limits.max_parts, limits.agents) == (1, ("Quarter",), 5, ("a",))


def test_a_plan_is_shown_as_a_tree() -> None:
    read = plan(
        part("api", title="Add the endpoint", goals=["file_exists: docs/api.md"], scope=["src/api/**", "tests/api/**"]),
        part("ui", title="Show the form", depends_on=["api"], assignee="builder", priority="high"),
    )

    assert "\n".join(plan_lines(read)) == (
        "#12 in 2 parts\n"
        "│ In steps.\n"
        "├─ api  Add the endpoint  (task, medium)\n"
        "│       writes src/api/**, tests/api/**\n"
        "│       goal   file_exists: docs/api.md\n"
        "└─ ui   Show the form  (task, high, for builder)\n"
        "        after  api\n"
        "        goal   none of its own"
    )


def test_no_text_of_a_planner_breaks_the_tree() -> None:
    hostile = Subtask(
        key="a", title="x\x1b[2J\n\u202eevil " + "w" * 500, body="", goals=(TestsPass(command=("a\n", "b")),)
    )

    lines = plan_lines(Plan(task=1, subtasks=(hostile,), summary="s\n" * 2000), 80)

    assert all(len(line) <= 80 and line.isprintable() for line in lines)
    assert len(lines) < 12


def test_a_plan_that_cannot_be_used_is_a_check_that_fails() -> None:
    assert plan_check(proposal(part("a")), TASK, LIMITS) is None
    failed = plan_check(None, TASK, LIMITS)
    assert failed is not None
    assert (failed.name, failed.status, failed.output) == (
        "plan",
        CheckStatus.FAILED,
        "subtasks: is required and missing",
    )
