"""With `workflow.language: ja`, what Genba itself says to agents and people is Japanese."""

import ast
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from genba.coordination.workflow.visibility import ABOUT
from genba.domain.goals.goal import GUARDS, goal_type
from genba.entrypoints.mcp.schemas import listed
from genba.entrypoints.mcp.server import INSTRUCTIONS
from genba.entrypoints.mcp.tools import TOOLS, ToolEntry
from genba.judgement.language import sentences, wording, wording_en
from genba.judgement.language.sentences import tool_text
from tests.fleet.yard import Yard
from tests.project import Project

BUILTIN = Path(wording.__file__).parents[1] / "definitions" / "builtin"
JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
LETTERS = re.compile(r"[A-Za-z]")
SETTINGS = """
workflow: {language: ja}
agents: {default: {adapter: {type: custom, command: "./agent.sh"}}}
dod:
  - file_exists: work.txt
"""


def names_in(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("language", [name for name in wording.CATALOGUES if name != "en"])
def test_every_text_of_the_catalogue_is_in_every_language(language: str) -> None:
    """A new text without a translation fails here."""
    other = wording.CATALOGUES[language].TEXTS
    assert other.keys() == wording_en.TEXTS.keys()
    assert {f"means_{goal_type(guard)}" for guard in GUARDS} <= other.keys()
    for key, text in wording_en.TEXTS.items():
        assert names_in(other[key]) == names_in(text), key
        own_words = re.sub(r"\{+[^}]*\}+|Issue", "", text)
        if LETTERS.search(own_words):
            assert JAPANESE.search(other[key]), f"{key} is not translated"


def test_the_built_in_checks_are_known_by_name() -> None:
    assert {goal_type(guard) for guard in GUARDS} == sentences.BUILT_IN


@pytest.mark.parametrize(
    "path", sorted(BUILTIN.glob("*/prompts/**/*.md")), ids=lambda path: str(path.relative_to(BUILTIN))
)
def test_every_prompt_of_a_built_in_agent_is_in_japanese_with_the_same_variables(path: Path) -> None:
    if path.name.endswith(".ja.md"):
        assert path.with_name(path.name.replace(".ja.md", ".md")).is_file()
        return
    other = path.with_suffix(".ja.md").read_text("utf-8")
    wanted = re.findall(r"\{uv-[\w.-]+\}", path.read_text("utf-8"))
    assert JAPANESE.search(other)
    assert sorted(re.findall(r"\{uv-[\w.-]+\}", other)) == sorted(wanted)


def english_lines(prompt: str) -> list[str]:
    """Lines with words and without any Japanese, outside of code blocks."""
    outside = re.sub(r"```.*?```", "", prompt, flags=re.DOTALL)
    lines = [line for line in outside.splitlines() if len(re.findall(r"[A-Za-z]{3,}", line)) > 2]
    return [line for line in lines if not JAPANESE.search(line)]


def working(project: Project, script: str) -> None:
    project.write("agent.sh", f"#!/bin/sh\ncat > /dev/null\n{script}").chmod(0o755)
    project.write(".genba/config.yaml", SETTINGS)
    project.commit()
    project.issue(1, "作業", body="ファイルを書く")


def test_prompts_and_feedback_of_the_built_in_iterator_are_japanese(project: Project) -> None:
    """The first answers lack the form, then the commit, then the file: each feedback is in a prompt."""
    working(
        project,
        "echo $GENBA_ITERATION >> count.txt\n"
        "if [ $(wc -l < count.txt) -gt 3 ]; then git add -A; git commit -qm x; fi\n",
    )
    project.run("iterator", "--issue", "1", check=None)
    prompts = project.prompts()
    assert len(prompts) > 2
    assert "# Issue #1 を理解する" in prompts[0]
    assert any("ブランチにベースより新しいコミットがありません" in prompt for prompt in prompts)
    assert any("まだ足りないもの" in prompt for prompt in prompts)
    assert [line for prompt in prompts for line in english_lines(prompt) if "file_exists" not in line] == []


def test_the_built_in_prompt_and_a_refused_answer_are_japanese(project: Project) -> None:
    project.write(".genba/config.yaml", "workflow: {language: ja}\n")
    gate = {"structuredGate": {"allowedIntents": ["next", "repeat"], "handoffFields": ["plan"]}}
    project.agent(
        completion={"type": "iterationBudget", "config": {"maxIterations": 2}},
        parameters={"issue": {"type": "number"}},
        script={"turns": [{"reply": "まだ"}], "repeat": True},
        steps={"work": {**gate, "transitions": {"next": None}}},
    )
    project.issue(1, "作業", body="ファイルを書く")
    result = project.run("worker", "--issue", "1", check=1)
    assert "回答に JSON オブジェクトがありません" in result["reason"]
    prompt = project.prompts()[0]
    for words in ("# あなたのタスク", "完了の条件", "## 回答の形式", "後のステップに必要な項目"):
        assert words in prompt
    assert [line for line in english_lines(prompt) if line != "An agent of the tests"] == []


def test_a_reason_to_stop_is_in_one_language(project: Project) -> None:
    project.write(".genba/config.yaml", "workflow: {language: ja}\n")
    step = {"completionConditions": [{"validator": "commits-exist"}], "transitions": {"next": None}}
    project.agent(
        completion={"type": "stepMachine"},
        script={"turns": [{"reply": "まだ"}], "repeat": True},
        steps={"work": step},
    )
    result = project.run("worker", check=None)
    assert result["reason"] == (
        "進展がありません: commits-exist: ブランチにベースより新しいコミットがありません。"
        "同じ失敗の繰り返しで、ツリーは変わっていません"
    )


def test_an_answer_that_never_fits_its_schema_is_reported_in_one_sentence(project: Project) -> None:
    """What the library of JSON Schema says of it stays English."""
    project.write(".genba/config.yaml", "workflow: {language: ja}\n")
    project.agent(**answering("summary"), script={"turns": [{"reply": "```json\n{}\n```"}], "repeat": True})
    reason = project.run("worker", check=None)["reason"]
    assert 'JSON がスキーマに適合していません: "summary" is a required property' in reason
    assert re.findall(r"[A-Za-z]{2,}", reason.replace('"summary" is a required property', "")) == ["JSON"]


def texts_of(value: Any) -> Iterator[str]:
    """Every text for readers in a tool that is listed."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if (key in ("title", "description", "next") and isinstance(inner, str)) or (
                key == "default" and isinstance(inner, str) and " " in inner
            ):
                yield inner
            else:
                yield from texts_of(inner)
    for inner in value if isinstance(value, list) else ():
        yield from texts_of(inner)


@pytest.mark.parametrize("entry", TOOLS, ids=lambda entry: entry.name)
def test_every_tool_is_described_in_japanese(entry: ToolEntry[Any]) -> None:
    """A new description without a translation fails here."""
    texts = [*texts_of(listed(entry, "ja").model_dump(by_alias=True, mode="json"))]
    assert len(texts) > 2
    assert [text for text in texts if not JAPANESE.search(text)] == []


def test_help_and_instructions_of_the_server_are_in_japanese() -> None:
    assert [text for text in (INSTRUCTIONS, *ABOUT.values()) if not JAPANESE.search(tool_text("ja", text))] == []


def test_what_a_person_is_asked_is_japanese(project: Project) -> None:
    project.write(
        ".genba/config.yaml", "workflow: {language: ja}\nattempts: {max: 1, per_agent: 1}\nwork: {agent: worker}\n"
    )
    project.agent(script={"turns": [{"reply": "nothing"}], "repeat": True}, parameters={"issue": {"type": "number"}})
    project.issue(1, "作業")
    project.genba("work", "--until-empty")
    asked = project.genba("decisions", "--json", check=0).out
    assert JAPANESE.search(asked), asked


# ── decisions and feedback of a fleet ────────────────────────────────────────────────────────────────────────────────

PART_OF_PLAN = {"key": "api", "title": "入口を追加", "body": "src に書く", "depends_on": []}
PLAN = {"status": "completed", "summary": "順番に", "subtasks": [PART_OF_PLAN]}
WRONG_PLAN = {
    "status": "completed",
    "summary": "",
    "subtasks": [
        {**PART_OF_PLAN, "scope": ["../x"], "assignee": "nobody", "depends_on": ["form", "none"]},
        {**PART_OF_PLAN, "key": "Form", "goals": ["file_exist: x", "custom_script: make"]},
    ],
}
CIRCLE = {
    **PLAN,
    "subtasks": [{**PART_OF_PLAN, "depends_on": ["form"]}, {**PART_OF_PLAN, "key": "form", "depends_on": ["api"]}],
}
FINDING = {"path": "task-1.txt", "line": 1, "severity": "must", "text": "説明が足りない"}
CHANGES = {"status": "completed", "verdict": "changes", "findings": [FINDING], "summary": "もう少し"}
UNUSABLE = {"status": "completed", "verdict": "approve", "findings": [FINDING], "summary": ""}


def answering(name: str) -> dict[str, Any]:
    schema = {"type": "object", "required": [name]}
    return {"completion": {"type": "structuredSignal", "config": {"outputSchema": schema}}}


@pytest.fixture
def yard(project: Project) -> Iterator[Yard]:
    with Yard(project) as made:
        made.settings["workflow"] = {"language": "ja"}
        yield made


def answers(yard: Yard, name: str, required: str, *replies: dict[str, Any]) -> None:
    yard.project.agent(
        name,
        script={"turns": [{"reply": reply} for reply in replies], "repeat": True},
        parameters={"issue": {"type": "number"}},
        prompts={"system.md": "テスト用のエージェントです。\n"},
        limits={"maxIterations": 5},
        **answering(required),
    )


def worker(yard: Yard, script: str = "", **more: Any) -> None:
    yard.agent(script=script, prompts={"system.md": "テスト用のエージェントです。\n"}, **more)


def asked(yard: Yard) -> list[str]:
    """What people are asked, with the reasons beside it."""
    with yard.board() as board:
        decisions = board.escalations(open_only=False)
    texts = [decision.question for decision in decisions]
    for decision in decisions:
        texts += [str(decision.evidence.get(name) or "") for name in ("last_reason", "detail")]
        texts += [tried["reason"] for tried in decision.evidence.get("tried", ())]
    return texts


def prompts(yard: Yard) -> list[str]:
    with yard.board() as board:
        runs = [session.run for task in yard.statuses() for session in board.sessions(task)]
    return [prompt for run in dict.fromkeys(runs) for prompt in yard.project.prompts(run)]


def not_japanese(*texts: str) -> list[str]:
    """Lines with English words alone, which neither a tool nor an agent wrote; the blocks of feedback count too."""
    found = []
    for text in texts:
        outside = re.sub(r"```json.*?```", "", text, flags=re.DOTALL)
        for line in outside.splitlines():
            words = re.sub(r"^- (file_exists|custom_script): .*|`[^`]*`|genba [a-z -]+|An agent of the tests", "", line)
            if len(re.findall(r"[A-Za-z]{3,}", words)) > 2 and not JAPANESE.search(line):
                found.append(line)
    return found


def test_a_rejection_and_the_decision_after_it_are_japanese(yard: Yard) -> None:
    """Goals and guards fail, the next session reads what was tried, and then a person is asked."""
    project = yard.project
    project.write("tests/test_a.py", "def test_a():\n    assert True\n\n\ndef test_b():\n    assert True\n")
    project.write("pytest.ini", "[pytest]\n")
    yard.settings["dod"] = ["file_exists: work.txt", {"custom_script": "exit 3"}]
    yard.set(attempts={"max": 2, "per_agent": 2})
    run = (
        "echo x >> pytest.ini; ln -sf /etc out; git add -A; git commit -qm w --allow-empty; "
        "printf 'import os\\n\\n\\ndef test_a():\\n    pass\\n' > tests/test_a.py; "
        "git add -A; git commit -qm w --allow-empty"
    )
    turn = {"do": [{"run": run}], "reply": {"status": "completed", "summary": "終わり"}}
    project.agent(
        script={"turns": [turn], "repeat": True},
        parameters={"issue": {"type": "number"}},
        prompts={"system.md": "テスト用のエージェントです。\n"},
        limits={"maxIterations": 5},
        **answering("summary"),
    )
    yard.task(1, "作業", body="ファイルを書く")

    yard.work(check=1)

    seen = prompts(yard)
    feedback = "\n".join(seen)
    for message in (
        "却下: goals_not_met",
        "ファイル work.txt がありません",
        "自身を判定するものを変更しています: pytest.ini",
        "tests/test_a.py: test_b を削除",
        "tests/test_a.py: test_a を空洞化",
        "タスクの許可が必要です: --may-change 'tests/test_a.py'",
        "out は /etc を指しています",
        "実行していません: ブランチは自身を判定するものを変更しています",
        "## これまでに試したこと",
    ):
        assert message in feedback, message
    assert not_japanese(*seen) == []
    assert any("2 回中 2 回の試行が失敗しました" in question for question in asked(yard))
    assert not_japanese(*asked(yard)) == []


def test_a_plan_that_is_unusable_or_rejected_is_reported_in_japanese(yard: Yard) -> None:
    yard.set(work={"workers": 1})
    worker(yard)
    answers(yard, "planner", "subtasks", WRONG_PLAN, CIRCLE, PLAN)
    yard.task(1, "ログインを追加", decompose=True)

    yard.work(check=1)
    yard.genba("reject", "1", "--reason", "大きすぎる")
    yard.work(check=1)

    seen = prompts(yard)
    for message in (
        "計画は使えません。問題が",
        "というエージェントはここにはいません",
        "リポジトリ内のパスではありません",
        "部分が互いに待ち合って循環しています",
        "大きすぎる",
    ):
        assert any(message in prompt for prompt in seen), message
    assert not_japanese(*seen) == []
    assert not_japanese(*asked(yard)) == []


def test_reviews_and_what_a_person_is_asked_about_them_are_japanese(yard: Yard) -> None:
    yard.set(work={"workers": 1}, review={"rounds": 1})
    worker(yard, "echo $GENBA_ISSUE >> task-$GENBA_ISSUE.txt")
    answers(yard, "reviewer", "verdict", UNUSABLE, CHANGES)
    yard.task(1, "作業", requires_review=True, reviewer_type="ai")

    yard.work(check=1)

    seen = prompts(yard)
    assert any("判定は使えません" in prompt for prompt in seen)
    assert any("先に変更すべき点を挙げた所見があります" in prompt for prompt in seen)
    assert any("説明が足りない" in prompt for prompt in seen)
    assert not_japanese(*seen) == []
    assert asked(yard)
    assert not_japanese(*asked(yard)) == []


def test_a_review_that_no_agent_can_do_is_asked_for_in_japanese(yard: Yard) -> None:
    yard.set(review={"agent": "nobody"})
    worker(yard)
    yard.task(1, "作業", requires_review=True, reviewer_type="ai")

    yard.work(check=1)

    assert any("レビューするエージェントがいません" in question for question in asked(yard))
    assert not_japanese(*asked(yard)) == []


def test_questions_and_budgets_are_asked_in_japanese(yard: Yard) -> None:
    question = {"status": "blocked", "reason": "どのポートにしますか?"}
    turn = {"do": [{"run": "echo x > a.txt; git add -A; git commit -qm w"}], "reply": "完了"}
    turns = [{"reply": question, "usage": {"cost_usd": 1.0}}, {**turn, "usage": {"cost_usd": 1.0}}]
    yard.set(work={"workers": 1}, budget={"task_usd": 1.5})
    worker(yard)
    yard.project.agent(
        script={"turns": turns, "repeat": True},
        parameters={"issue": {"type": "number"}},
        completion={"type": "iterationBudget", "config": {"maxIterations": 3}},
        prompts={"system.md": "テスト用のエージェントです。\n"},
    )
    yard.task(1, "作業")
    yard.work(check=1)
    yard.genba("answer", "1", "8080 を使う")
    yard.work(check=None)

    assert any("タスクの予算に達しました" in question for question in asked(yard)), asked(yard)
    assert any("8080 を使う" in prompt for prompt in prompts(yard))
    assert not_japanese(*prompts(yard), *asked(yard)) == []


def test_conflicts_and_failures_after_a_merge_are_reported_in_japanese(yard: Yard) -> None:
    yard.set(work={"workers": 2}, attempts={"max": 2, "per_agent": 2}, merge={"rounds": 1})
    place = yard.project.root.parent / "meeting"
    place.mkdir()
    meets = f"touch {place}/$GENBA_ISSUE; until [ $(ls {place} | wc -l) -ge 2 ]; do sleep 0.02; done"
    yard.project.write("shared.txt", "始め\n")
    leaves = "if grep -q '<<<<<<<' shared.txt; then echo x > other.txt; else echo $GENBA_ISSUE > shared.txt; fi"
    worker(yard, f"{meets}; {leaves}")
    yard.task(1, "作業 1")
    yard.task(2, "作業 2")

    yard.work(check=1)

    seen = prompts(yard)
    assert any("shared.txt で main とコンフリクトしています" in prompt for prompt in seen)
    assert any("マーカーが shared.txt に残っています" in prompt for prompt in seen)
    assert asked(yard)
    assert not_japanese(*seen, *asked(yard)) == []


_WORDS_BETWEEN = 3


def made_of(words: str, phrases: list[str], stderr: str) -> bool:
    """Whether the code says these words, in one piece or put together of phrases."""
    if words in stderr:
        return True
    rest = words
    for phrase in phrases:
        rest = rest.replace(phrase, " ")
    return all(word in stderr for word in rest.split()) and len(rest.split()) <= _WORDS_BETWEEN


@pytest.mark.parametrize("language", list(sentences.CATALOGUES))
def test_every_stored_sentence_is_one_that_the_code_has(language: str) -> None:
    package = Path(wording.__file__).parents[2]
    own = {"sentences.py", f"sentences_{language}.py"}
    sources = [path for path in package.rglob("*.py") if path.name not in own]
    nodes = [node for path in sources for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    texts = {
        node.value.strip(" ().;:$") for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    output = "\n".join(texts)
    phrases = sorted((text for text in texts if " " in text), key=len, reverse=True)
    catalogue = sentences.CATALOGUES[language]
    for english, text in {**catalogue.SENTENCES, **catalogue.PARTS, **catalogue.LOSSES}.items():
        assert names_in(text) == names_in(english), english
        words = [piece.strip(" ().;:$") for piece in re.split(r"\{\w+\}|[();:.]", english)]
        assert [word for word in words if not made_of(word, phrases, output)] == [], english
        if LETTERS.search("".join(words)):
            assert JAPANESE.search(text), english
