"""Resolving the prompt: the step's text, its variables, the gap, and the form of the answer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from genba.definitions.agent.completion import (
    CheckBudget,
    Completion,
    Composite,
    Custom,
    ExternalState,
    IterationBudget,
    KeywordSignal,
    StepMachine,
    StructuredSignal,
    structured_signal,
    walk,
)
from genba.definitions.agent.definition import AgentDefinition, PromptText
from genba.definitions.steps.steps_registry import Gate
from genba.definitions.steps.templates import fill, output_variable, variables_in
from genba.definitions.steps.variables import IN_RETRY, WITH_ISSUE
from genba.domain.long_text import shortened
from genba.domain.sessions.loop_state import ANSWER, Feedback, LoopState
from genba.domain.sessions.workspaces import Workspace
from genba.domain.tracker.issues import Issue
from genba.execution.loop.messages import is_new
from genba.judgement.language.sentences import detail_in, output_in
from genba.judgement.language.wording import say
from genba.judgement.loop.closure import ClosureWording, wording

if TYPE_CHECKING:
    from genba.domain.workflow.actions import Message

_BUILT_IN = "built-in"
_LONGEST_VALUE = 50_000


class ResolvedPrompt(msgspec.Struct, frozen=True):
    source: str
    text: str
    system: str
    notice: str


class Prompts:
    """The prompts of one run. Everything they need was read before the run began."""

    def __init__(
        self,
        definition: AgentDefinition,
        run: str,
        workspace: Workspace,
        parameters: dict[str, Any],
        issue: Issue | None,
        requirements: tuple[Issue, ...],
        goals: str = "",
        handover: str = "",
    ) -> None:
        self.definition = definition
        self.language = definition.language
        self.handover = handover
        """What the attempts before have left for this one."""
        self.workspace = workspace
        self.issue = issue
        self.goals = goals
        action = definition.file.runner.integrations.github.default_closure_action
        self.wording = wording(action, issue.number, self.language) if issue is not None else None
        self.fixed = {
            **dict.fromkeys(definition.file.parameters),
            **parameters,
            "agent_name": definition.name,
            "agent_description": definition.file.description,
            "run_id": run,
            "max_iterations": definition.iteration_cap,
            "branch": workspace.branch,
            "base_branch": workspace.base_branch,
            "completion_criteria": criteria(definition.completion, self.wording, self.language),
            "completion_keyword": keyword(definition.completion),
            "goals": goals,
            **_issue_variables(issue, requirements, self.wording),
        }

    def resolve(self, state: LoopState, messages: tuple[Message, ...] = ()) -> ResolvedPrompt:
        chosen = self._chosen(state)
        values = self._values(state)
        parts = [fill(chosen.text, values).rstrip(), *self._undeclared_task(chosen)]
        if self.handover and is_new(state):
            parts.append(handover_section(self.handover, self.language))
        if messages:
            parts.append(messages_section(messages, self.language))
        if state.gap is not None and (state.gap.check == ANSWER or not _tells_failure(chosen.text)):
            parts.append(gap_section(state.gap, self.language))
        parts += self._answer_form(state.step)
        system = fill(self.definition.system_prompt.text, values)
        return ResolvedPrompt(chosen.source, "\n\n".join(parts) + "\n", system, chosen.notice)

    def _undeclared_task(self, chosen: PromptText) -> list[str]:
        """The task, for an agent that does not declare the parameter and so cannot ask for it in its prompts."""
        issue = self.issue
        if issue is None or "issue" in self.definition.file.parameters or chosen.source == _BUILT_IN:
            return []
        goals = f"\n\n{say(self.language, 'goals_of_task')}\n\n{self.goals}" if self.goals else ""
        heading = say(self.language, "task_heading", number=issue.number, title=issue.title)
        return [f"{heading}\n\n{issue.body}".rstrip() + goals]

    def for_workflow(self, state: LoopState, messages: tuple[Message, ...] = ()) -> tuple[str, tuple[str, ...]]:
        """For an agent that asks what is next: its system prompt, and what it must know besides."""
        sections = (handover_section(self.handover, self.language),) if self.handover else ()
        if messages:
            sections = (*sections, messages_section(messages, self.language))
        if state.gap is not None:
            sections = (*sections, gap_section(state.gap, self.language))
        return fill(self.definition.system_prompt.text, self._values(state)), sections

    def _chosen(self, state: LoopState) -> PromptText:
        """The retry prompt that the failure chose, the step's own, or the built-in one."""
        if state.gap is not None and state.gap.pattern is not None:
            retry = self.definition.retry_prompts.get(state.step, {}).get(state.gap.pattern)
            if retry is not None:
                return retry
        own = self.definition.prompts.get(state.step)
        return own if own is not None else PromptText(_BUILT_IN, self._builtin(state))

    def _values(self, state: LoopState) -> dict[str, Any]:
        values = dict(self.fixed)
        values["iteration"] = state.iterations + 1
        values["completed_iterations"] = state.iterations
        values["remaining_iterations"] = max(0, self.definition.file.runner.limits.max_iterations - state.iterations)
        values["previous_summary"] = state.previous_summary
        for step_id in self.definition.registry.steps:
            for key in self.definition.outputs_of(step_id) or ():
                flat = key.replace(".", "_")
                values[output_variable(step_id, flat)] = _bounded(state.context.get(step_id, {}).get(flat))
        for name, wanted in self.definition.step(state.step).inputs.items():
            value = values.get(wanted.source.replace(".", "_"))
            values[name] = wanted.default if value is None else value
        if state.gap is not None:
            gap = state.gap.bounded()
            values |= {
                "failure_name": gap.check,
                "failure_detail": detail_in(self.language, gap.check, gap.detail),
                "failure_output": output_in(self.language, gap.check, gap.output),
                "attempt": state.gap.attempt,
                "max_attempts": state.gap.max_attempts,
            }
        return values

    def _answer_form(self, step_id: str) -> list[str]:
        sections = []
        gate = self.definition.step(step_id).structured_gate
        schema = self.definition.schemas.get(step_id) or _signal_schema(self.definition.completion)
        if gate is not None or schema:
            sections.append(say(self.language, "answer_form"))
        if gate is not None:
            sections.append(_gate_section(gate, self.language))
        if schema:
            shown = msgspec.json.format(msgspec.json.encode(schema), indent=2).decode()
            sections.append(f"{say(self.language, 'answer_schema')}\n\n```json\n{shown}\n```")
        return sections

    def _builtin(self, state: LoopState) -> str:
        """The prompt of a step that names none and for which the fallback folder has none."""
        words = partial(_plain, self.language)
        if state.iterations == 0:
            lines = [words("task"), "", "{uv-agent_description}"]
        else:
            lines = [words("go_on"), "", words("iteration"), "", "{uv-previous_summary}"]
        if self.issue is not None:
            lines += ["", words("issue"), "", "{uv-issue_body}"]
        lines += ["", words("done_means")]
        if self.fixed["goals"]:
            lines += ["", words("goals"), "", "{uv-goals}", ""]
        if self.wording is not None:
            lines += [words("issue_care")]
        if self.wording is not None and not self._answer_form(state.step):
            lines += ["", words("when_done"), "", "```json"]
            lines += ['{"status": "completed", "next_action": {"action": "{uv-closure_word}"}}', "```"]
        return "\n".join(lines)


def _bounded(value: Any) -> Any:
    """What a step handed over, short enough for a prompt."""
    return shortened(value, _LONGEST_VALUE) if isinstance(value, str) else value


def _plain(language: str, key: str) -> str:
    """A text with the variables of prompts in it, which are filled in later."""
    return say(language, key).replace("{{", "{").replace("}}", "}")


def gap_section(gap: Feedback, language: str = "en") -> str:
    """What the next attempt must know: what was claimed, what was seen."""
    gap = gap.bounded()
    if gap.check == ANSWER:
        return answer_section(gap.claim, gap.detail, language)
    printed = say(language, "gap_claim", claim=gap.claim) if gap.claim else ""
    lines = [
        say(language, "gap_heading", attempt=gap.attempt, most=gap.max_attempts),
        "",
        printed + say(language, "gap", check=gap.check, detail=detail_in(language, gap.check, gap.detail)),
    ]
    if gap.output:
        output = output_in(language, gap.check, gap.output)
        lines += ["", "```", output.replace("```", "'''"), "```"]
    return "\n".join(lines)


def answer_section(question: str, answer: str, language: str = "en") -> str:
    """What a person answered. The question is the agent's own: behind `>` it cannot pose as the answer."""
    lines = [say(language, "answer_heading"), ""]
    if question:
        lines += [say(language, "answer_asked"), "", *_quoted(question), ""]
    lines += [say(language, "answer_answered"), "", *_quoted(answer), "", say(language, "answer_go_on")]
    return "\n".join(lines)


def handover_section(text: str, language: str = "en") -> str:
    """What was tried before this attempt. A conversation that is resumed has it already."""
    return "\n".join([say(language, "handover_heading"), "", say(language, "handover_note"), "", text])


def messages_section(messages: tuple[Message, ...], language: str = "en") -> str:
    """The messages of other agents, each line behind `>`: none can pose as one of Genba's."""
    lines = [say(language, "messages_heading"), "", say(language, "messages_note")]
    for one in messages:
        who = "".join(letter for letter in one.sender if letter.isprintable()) or say(language, "an_agent")
        key = "message_on_task" if one.task is not None else "message_from"
        lines += ["", say(language, key, type=one.type, sender=who, number=one.task), "", *_quoted(one.content)]
    return "\n".join(lines)


def _quoted(text: str) -> list[str]:
    return [f"> {line}".rstrip() for line in text.splitlines()]


def refusal_section(reason: str, language: str = "en") -> str:
    return f"{say(language, 'refusal_heading')}\n\n{reason}\n\n{say(language, 'refusal_again')}"


def keyword(completion: Completion) -> str:
    """The keyword of a keywordSignal anywhere in the completion."""
    return next((part.completion_keyword for part in walk(completion) if isinstance(part, KeywordSignal)), "")


def criteria(completion: Completion, words: ClosureWording | None, language: str = "en") -> str:
    """When the agent is done, in words for its prompt."""
    match completion:
        case ExternalState(validators=names):
            result = words.criteria if words else say(language, "criteria_issue")
            return say(language, "criteria_external", criteria=result, checks=", ".join(names))
        case IterationBudget(max_iterations=most):
            return say(language, "criteria_iterations", most=most)
        case CheckBudget(max_checks=most):
            return say(language, "criteria_checks", most=most)
        case KeywordSignal(completion_keyword=word):
            return say(language, "criteria_keyword", word=word)
        case StructuredSignal():
            return say(language, "criteria_signal")
        case StepMachine():
            return say(language, "criteria_steps")
        case Composite(mode=mode, completion_conditions=parts):
            return say(language, f"criteria_{mode}").join(f"({criteria(part, words, language)})" for part in parts)
        case Custom(completion_handler=name):
            return say(language, "criteria_custom", name=name)


def _issue_variables(
    issue: Issue | None, requirements: tuple[Issue, ...], words: ClosureWording | None
) -> dict[str, Any]:
    if issue is None or words is None:
        return dict.fromkeys(WITH_ISSUE)
    return {
        "issue": issue.number,
        "issue_title": issue.title,
        "issue_body": issue.body,
        "issue_labels": ", ".join(issue.labels),
        "requirements": "\n\n".join(f"#{found.number} {found.title}\n\n{found.body}" for found in requirements),
        "closure_instruction": words.instruction,
        "closure_word": words.word,
    }


def _signal_schema(completion: Completion) -> dict[str, Any] | None:
    """The schema that the prompt shows: that of a structuredSignal anywhere in the completion."""
    signal = structured_signal(completion)
    return signal.output_schema if signal is not None and isinstance(signal.output_schema, dict) else None


def _gate_section(gate: Gate, language: str) -> str:
    allowed = ", ".join(f'"{intent}"' for intent in gate.allowed_intents)
    lines = [say(language, "gate_intents", field=gate.intent_field, allowed=allowed)]
    if "jump" in gate.allowed_intents:
        lines.append(say(language, "gate_target", field=gate.target_field))
    if gate.handoff_fields:
        lines.append(say(language, "gate_handoff", fields=", ".join(f"`{name}`" for name in gate.handoff_fields)))
    return " ".join(lines)


def _tells_failure(text: str) -> bool:
    return bool(IN_RETRY & set(variables_in(text)))
