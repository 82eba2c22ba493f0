"""Asking: retries after passing errors, waits for rate limits, and bounded re-asks of replies that do not fit."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec

from genba.definitions.agent.completion import StructuredSignal, structured_signal
from genba.definitions.agent.definition import AgentDefinition
from genba.definitions.steps.steps_registry import Step
from genba.domain.convert import too_deep
from genba.domain.errors import (
    AgentUnavailable,
    BoundaryViolationError,
    RateLimited,
    RecoverableError,
    SchemaViolationError,
)
from genba.domain.events import (
    AgentEnded,
    AgentOutput,
    AgentStarted,
    AskRetried,
    Notice,
    OutputLeftOut,
    ReplyReceived,
    ReplyRefused,
    ToolUsed,
)
from genba.domain.long_text import shortened
from genba.domain.ports import AgentInstance
from genba.domain.processes import LEFT_OUT
from genba.domain.sessions.loop_state import LoopState
from genba.domain.sessions.replies import Ask, Reply, Usage
from genba.domain.tool_names import is_listed
from genba.execution.loop.prompts import ResolvedPrompt, refusal_section
from genba.execution.session_context import SessionContext
from genba.judgement.language.sentences import in_language
from genba.judgement.language.wording import say
from genba.judgement.loop.budgets import time_left
from genba.judgement.loop.claims import ClaimKind, read_claim
from genba.judgement.loop.retries import wait_before_retry
from genba.judgement.loop.structured_output import last_block, whole_reply
from genba.judgement.loop.transitions import Refusal, StepTransition, follow, gate_move

_LONGEST_REPLY = 100_000
_LEAST_STRUCTURED = 16 * 1024
_LONGEST_TARGET = 300
_LONGEST_NOTICE = 2000


class OutOfTime(Exception):
    """Waiting for the provider would take longer than the run may last."""


class WorkView(Protocol):
    """What git shows of the work, for replies that cannot be read."""

    def judges(self, state: LoopState) -> bool:
        """Whether checks alone judge this session at its step: it has given no structured output so far."""
        ...

    async def moved(self, state: LoopState) -> bool:
        """Whether anything changed since the last iteration."""
        ...

    async def delivered(self, state: LoopState) -> bool:
        """Whether something new could be verified: commits, or changes that Genba commits."""
        ...


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A reply that fits, and what it took to get it."""

    reply: Reply
    structured: dict[str, Any] | None
    move: StepTransition | None
    usage: Usage
    asks: int
    unfit: str = ""
    """Why no reply fitted, when the fallback intent was taken."""


class Asking:
    """Puts the question of one iteration until there is an answer that can be judged."""

    def __init__(
        self,
        definition: AgentDefinition,
        context: SessionContext,
        instance: AgentInstance,
        issue: int | None,
        *,
        work: WorkView | None = None,
        is_over: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        self.definition = definition
        self.context = context
        self.instance = instance
        self.issue = issue
        self.limits = definition.file.runner.limits
        self.spent = Usage()
        """What the questions of this iteration cost, whether or not an answer comes of them."""
        self.began = context.clock.elapsed()
        self.is_over = is_over
        """True when the session has a result although its instance failed: then it is not asked again."""
        self.work = work
        """What the work itself shows of a reply that names no next step; None: replies alone count."""

    async def put(self, state: LoopState, prompt: ResolvedPrompt) -> Answer:
        text, asks = prompt.text, 0
        self.spent = Usage()
        self.began = self.context.clock.elapsed()
        for attempt in range(1, self.limits.reasks + 2):
            reply, tries = await self._with_retries(state, prompt, text, asks)
            asks += tries
            self.spent = self.spent.plus(reply.usage)
            self._check_tools(state.step, reply)
            structured = self._structured(reply)
            found = self._too_large(structured) or self._fit(state.step, structured)
            if not isinstance(found, Refusal):
                return Answer(reply=reply, structured=structured, move=found, usage=self.spent, asks=asks)
            if structured is None and await self._needs_no_words(state):
                return Answer(reply=reply, structured=None, move=None, usage=self.spent, asks=asks)
            self.context.journal.emit(
                ReplyRefused(
                    step=state.step,
                    iteration=state.iterations + 1,
                    reason=shortened(found.reason, _LONGEST_NOTICE),
                    attempt=attempt,
                    again=attempt <= self.limits.reasks,
                )
            )
            result = refusal_section(shortened(found.reason, _LONGEST_NOTICE), self.definition.language)
            text, refusal = f"{prompt.text}\n{result}\n", found
        if structured is None and self.work is not None and self.work.judges(state):
            return Answer(reply=reply, structured=None, move=None, usage=self.spent, asks=asks)
        return self._fall_back(state, reply, refusal, asks)

    async def _needs_no_words(self, state: LoopState) -> bool:
        """True when the work judges a reply without structured output, which is then not asked for again."""
        if self.work is None or not self.work.judges(state):
            return False
        return state.iterations > 0 or await self.work.moved(state)

    async def _with_retries(self, state: LoopState, prompt: ResolvedPrompt, text: str, asked: int) -> tuple[Reply, int]:
        failed, tries = 0, 0
        while True:
            tries += 1
            if self.elapsed() >= time_left(state, self.limits):
                raise OutOfTime(f"the {self.limits.wall_time_seconds:g} seconds of this run are over")
            try:
                return await self._ask(state, prompt, text, asked + tries), tries
            except RecoverableError as error:
                spent = self.elapsed()
                if self.is_over is not None and await self.is_over():
                    raise
                failed += not (isinstance(error, RateLimited) and (error.retry_after or 0) > 0)
                wait = wait_before_retry(error, failed, self.limits, self.context.agent.jitter())
                if wait is None:
                    raise
                if spent + wait > time_left(state, self.limits):
                    raise OutOfTime(
                        f"{error.message}; the next try is in {wait:.0f} s, after the time of this run"
                    ) from error
                self.context.journal.emit(
                    AskRetried(
                        step=state.step,
                        iteration=state.iterations + 1,
                        reason=error.message,
                        wait_seconds=round(wait, 3),
                        attempt=tries,
                    )
                )
                await self.context.clock.sleep(wait)

    def elapsed(self) -> float:
        """Seconds since this iteration began to ask."""
        return self.context.clock.elapsed() - self.began

    async def _ask(self, state: LoopState, prompt: ResolvedPrompt, text: str, number: int) -> Reply:
        step_id = state.step
        left = max(0.1, time_left(state, self.limits) - self.elapsed())
        ask = Ask(
            run=self.instance.session.run,
            agent=self.definition.name,
            step=step_id,
            iteration=state.iterations + 1,
            number=state.asks + number,
            number_in_step=state.asks_by_step.get(step_id, 0) + number,
            prompt=text,
            system_prompt=prompt.system,
            model=self.definition.model_for(step_id),
            allowed_tools=self.definition.tools_for(step_id),
            permission_mode=self.definition.permission_for(step_id),
            session_id=state.session_id,
            output_schema=self._schema(step_id),
            issue=self.issue,
            timeout_seconds=min(self.limits.ask_timeout_seconds, left),
            idle_seconds=self.limits.idle_timeout_seconds,
            output_bytes=self.context.journal.room(),
        )
        reply = await self.context.agent.adapter.execute(self.instance, ask, self._listen(state))
        if not reply.usage.believable():
            message = "warning: the agent reported a usage that no reply can have; it is not counted"
            self.context.journal.emit(Notice(step=step_id, iteration=state.iterations + 1, message=message))
            reply = msgspec.structs.replace(reply, usage=Usage())
        if reply.failure:
            await self._weigh_failure(state, reply.failure)
        if too_deep(reply.structured):
            reply = msgspec.structs.replace(reply, structured=None)
        ended = AgentEnded(
            step=step_id,
            iteration=state.iterations + 1,
            exit_code=reply.exit_code,
            seconds=round(reply.seconds, 3),
        )
        self.context.journal.emit(ended)
        received = ReplyReceived(
            step=step_id,
            iteration=state.iterations + 1,
            text=shortened(reply.text, _LONGEST_REPLY),
            structured=reply.structured,
            session_id=reply.session_id,
            usage=reply.usage,
        )
        self.context.journal.emit(received)
        return reply

    async def _weigh_failure(self, state: LoopState, failure: str) -> None:
        """A failure counts, unless the instance has left work since the last iteration: then that is judged."""
        if self.work is None or not await self.work.delivered(state):
            raise AgentUnavailable(failure)
        message = f"warning: {failure}; it left work on its branch, which is judged"
        self.context.journal.emit(
            Notice(step=state.step, iteration=state.iterations + 1, message=message[:_LONGEST_NOTICE])
        )

    def _listen(self, state: LoopState) -> Any:
        step, iteration, emit = state.step, state.iterations + 1, self.context.journal.emit

        def on_output(stream: str, line: str) -> None:
            if stream == "started":
                emit(AgentStarted(process=int(line), step=step, iteration=iteration))
            elif stream == "tool":
                tool, _, target = line.partition(" ")
                tool, target = tool[:_LONGEST_TARGET], target[:_LONGEST_TARGET]
                emit(ToolUsed(tool=tool, target=target, step=step, iteration=iteration))
            elif stream == "notice":
                emit(Notice(message=line[:_LONGEST_NOTICE], step=step, iteration=iteration))
            elif stream == LEFT_OUT:
                name, size, lines = line.split(" ")
                emit(OutputLeftOut(stream=name, bytes=int(size), lines=int(lines), step=step, iteration=iteration))
            else:
                emit(AgentOutput(stream=stream, text=line, step=step, iteration=iteration))

        return on_output

    def _schema(self, step_id: str) -> dict[str, Any] | None:
        signal = structured_signal(self.definition.completion)
        wanted = signal.output_schema if signal is not None else None
        return self.definition.schemas.get(step_id) or (wanted if isinstance(wanted, dict) else None)

    def _structured(self, reply: Reply) -> dict[str, Any] | None:
        if reply.structured is not None:
            return reply.structured
        signal = structured_signal(self.definition.completion)
        if signal is not None and signal.response_format == "json":
            return whole_reply(reply.text)
        actions = self.definition.file.runner.actions
        return last_block(reply.text, actions.types if actions.enabled else ())

    def _too_large(self, structured: dict[str, Any] | None) -> Refusal | None:
        """A structured reply is kept in the state and in the journal, which has room for so much."""
        most = max(_LEAST_STRUCTURED, self.context.journal.room() // 8)
        size = len(msgspec.json.encode(structured)) if structured is not None else 0
        return Refusal(say(self.definition.language, "large_json", size=size, most=most)) if size > most else None

    def _fit(self, step_id: str, structured: dict[str, Any] | None) -> StepTransition | Refusal | None:
        """The way on, nothing for a step without a gate, or why the reply cannot be used."""
        step = self.definition.step(step_id)
        if read_claim(structured).kind is ClaimKind.BLOCKED:
            return None
        schemas = [schema for schema in (self.definition.schemas.get(step_id), self._signal_schema()) if schema]
        if schemas and structured is None:
            return Refusal(say(self.definition.language, "no_json"))
        for schema in schemas:
            problems = _problems(schema, structured)
            if problems:
                return Refusal(say(self.definition.language, "unfit_json", problems="; ".join(problems)))
        return (
            gate_move(step_id, step, structured, self.definition.language) if step.structured_gate is not None else None
        )

    def _signal_schema(self) -> dict[str, Any] | None:
        """The schema that every reply is held to: that of a structuredSignal which alone completes the agent."""
        completion = self.definition.completion
        if isinstance(completion, StructuredSignal) and isinstance(completion.output_schema, dict):
            return completion.output_schema
        return None

    def _fall_back(self, state: LoopState, reply: Reply, refusal: Refusal, asks: int) -> Answer:
        step: Step = self.definition.step(state.step)
        gate = step.structured_gate
        if gate is None or gate.fallback_intent is None:
            raise self._unfit(f"no reply fitted after {self.limits.reasks + 1} questions: {refusal.reason}")
        move = follow(state.step, step, gate.fallback_intent)
        if isinstance(move, Refusal):
            raise self._unfit(f"the fallback intent leads nowhere: {move.reason}")
        return Answer(reply=reply, structured={}, move=move, usage=self.spent, asks=asks, unfit=refusal.reason)

    def _unfit(self, message: str) -> SchemaViolationError:
        """The error for replies that never fit. What is wrong with them is in the language of the project already."""
        return SchemaViolationError(in_language(self.definition.language, message))

    def _check_tools(self, step_id: str, reply: Reply) -> None:
        allowed = self.definition.tools_for(step_id)
        foreign = [tool for tool in reply.tools_used if allowed is not None and not is_listed(tool, allowed)]
        if foreign:
            own = self.definition.step(step_id).allowed_tools is not None
            where = f"allowedTools of the step {step_id}" if own else "runner.boundaries.allowedTools"
            raise BoundaryViolationError(f'the agent used "{foreign[0]}", which {where} does not list')


def _problems(schema: dict[str, Any], value: Any) -> tuple[str, ...]:
    from genba.definitions.agent.json_schema import problems_in_value  # noqa: PLC0415  (only agents with schemas pay)

    return problems_in_value(schema, value)
