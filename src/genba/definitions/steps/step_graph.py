"""The static checks of the step graph: what can be known to go wrong is refused before anything runs."""

import re
from collections import deque
from collections.abc import Iterator

from genba.definitions.steps.partial_data import WHOLE, LeftOut
from genba.definitions.steps.steps_registry import Step, StepsRegistry, Transition
from genba.domain.problems import Problem, did_you_mean
from genba.domain.sessions.outcomes import ALLOWED_INTENTS, LEAVING_INTENTS, Intent, StepKind

_STEP_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")

_SHOWN_ENTRIES = 5
MOST_STEPS = 1000
"""Steps of one agent. Its checks look at each from each."""

END = ""
"""The end of the flow, as a node."""


class StepGraph:
    """The steps and where each may lead. A step of which that is not known counts as one that may end the flow."""

    def __init__(self, registry: StepsRegistry, file: str, left: LeftOut = WHOLE) -> None:
        self.registry = registry
        self.file = file
        self.left = left
        self._reached: dict[tuple[tuple[str, ...], str | None], frozenset[str]] = {}
        self.edges = {step_id: frozenset(targets(step_id, step)) for step_id, step in registry.steps.items()}
        self.unknown = frozenset(step_id for step_id in registry.steps if not self._is_known(step_id))
        self.edges.update(dict.fromkeys(self.unknown, frozenset({END})))

    def _is_known(self, step_id: str) -> bool:
        """Whether everything that this step leads to is known."""
        at = f"steps.{step_id}"
        if self.left.touched(f"{at}.structuredGate", f"{at}.transitions"):
            return False
        if self.registry.steps[step_id].structured_gate is None and self.left.lost(f"{at}.stepKind"):
            return False
        return all(target == END or target in self.registry.steps for target in self.edges[step_id])

    def _knows_entries(self) -> bool:
        left_out = self.left.touched("entryStep", "entryStepMapping")
        return not left_out and all(name in self.registry.steps for name in self.entries())

    def entries(self) -> tuple[str, ...]:
        named = [self.registry.entry_step, *self.registry.entry_step_mapping.values()]
        given = tuple(dict.fromkeys(name for name in named if name is not None))
        return given or tuple(self.registry.steps)[:1]

    def reachable(self, starts: tuple[str, ...], without: str | None = None) -> frozenset[str]:
        if (starts, without) not in self._reached:
            self._reached[starts, without] = self._walked(starts, without)
        return self._reached[starts, without]

    def _walked(self, starts: tuple[str, ...], without: str | None) -> frozenset[str]:
        seen: set[str] = set()
        waiting = deque(start for start in starts if start != without)
        while waiting:
            node = waiting.popleft()
            if node in seen:
                continue
            seen.add(node)
            waiting.extend(target for target in self.edges.get(node, ()) if target != without)
        return frozenset(seen)

    def _leading_to_the_end(self) -> frozenset[str]:
        """Every step from which some path leads, or may lead, to the end."""
        before: dict[str, list[str]] = {}
        for step_id, led_to in self.edges.items():
            for target in led_to:
                before.setdefault(target, []).append(step_id)
        seen: set[str] = set()
        waiting = deque([END])
        while waiting:
            fresh = [step_id for step_id in before.get(waiting.popleft(), ()) if step_id not in seen]
            seen.update(fresh)
            waiting.extend(dict.fromkeys(fresh))
        return frozenset(seen)

    def shortest_path(self, start: str) -> int | None:
        """How many steps at the least lead from here to the end."""
        distance = {start: 1}
        waiting = deque([start])
        while waiting:
            node = waiting.popleft()
            for target in self.edges.get(node, ()):
                if target == END:
                    return distance[node]
                if target not in distance:
                    distance[target] = distance[node] + 1
                    waiting.append(target)
        return None

    def gap_between(self, supplier: str, user: str) -> str:
        """Why `user` may be reached without what `supplier` hands over; empty when it cannot, or is not known."""
        reached = self.reachable(self.entries(), without=supplier) if self._knows_entries() else frozenset[str]()
        if supplier == user or user in reached:
            return f"a path leads to {user} that does not pass {supplier}"
        gate = self.registry.steps[supplier].structured_gate
        if gate is not None and gate.fallback_intent in LEAVING_INTENTS:
            return f"the fallbackIntent of {supplier} may leave it without a reply"
        return ""

    def check(self, ends_by_steps: bool, max_iterations: int) -> Iterator[Problem]:
        if len(self.registry.steps) > MOST_STEPS:
            yield Problem(self.file, "steps", f"has more than {MOST_STEPS} steps")
            return
        yield from self._entry_problems()
        for step_id, step in self.registry.steps.items():
            yield from self._step_problems(step_id, step)
        if not self._knows_entries():
            return
        reachable = self.reachable(self.entries())
        for step_id in self.registry.steps if not reachable & self.unknown else ():
            if step_id not in reachable:
                entries = ", ".join(self.entries()[:_SHOWN_ENTRIES])
                yield Problem(self.file, f"steps.{step_id}", f"no path leads here from the entry step ({entries})")
        if ends_by_steps:
            yield from self._end_problems(reachable, max_iterations)

    def _entry_problems(self) -> Iterator[Problem]:
        registry = self.registry
        if registry.entry_step is not None:
            yield from self._missing_step("entryStep", registry.entry_step)
        for key, name in registry.entry_step_mapping.items():
            yield from self._missing_step(f"entryStepMapping.{key}", name)
        named = registry.entry_step is not None or registry.entry_step_mapping
        if not named and len(registry.steps) > 1 and not self.left.touched("entryStep", "entryStepMapping"):
            yield Problem(self.file, "entryStep", "is required when there is more than one step")

    def _missing_step(self, at: str, name: str) -> Iterator[Problem]:
        steps = self.registry.steps
        if name not in steps and not self.left.lost(f"steps.{name}"):
            yield Problem(self.file, at, f'no step is named "{name}"', did_you_mean(name, steps))

    def _step_problems(self, step_id: str, step: Step) -> Iterator[Problem]:
        at = f"steps.{step_id}"
        if not _STEP_ID.fullmatch(step_id):
            message = "a step's name has letters, digits, ., - and _, at most 100, and no dot at its beginning"
            yield Problem(self.file, at[:80], message)
        if step.step_id is not None and step.step_id != step_id:
            yield Problem(self.file, f"{at}.stepId", f'is "{step.step_id}", but the step is named "{step_id}"')
        allowed = step.structured_gate.allowed_intents if step.structured_gate else _ungated_intents(step)
        for intent in step.structured_gate.allowed_intents if step.structured_gate else ():
            yield from self._intent_problems(at, intent, step)
        knows_allowed = not self.left.touched(f"{at}.structuredGate.allowedIntents")
        if step.structured_gate and knows_allowed and step.structured_gate.fallback_intent not in (None, *allowed):
            yield Problem(self.file, f"{at}.structuredGate.fallbackIntent", "is not one of allowedIntents")
        if step.structured_gate is None and self.left.lost(f"{at}.stepKind"):
            knows_allowed = False
        for name in step.transitions:
            if knows_allowed and name in list(Intent) and Intent(name) not in allowed:
                why = "structuredGate does not allow it" if step.structured_gate else "the step has no structuredGate"
                yield Problem(self.file, f"{at}.transitions.{name}", f"is never taken: {why}")
            yield from self._transition_problems(f"{at}.transitions.{name}", name, step)

    def _intent_problems(self, at: str, intent: Intent, step: Step) -> Iterator[Problem]:
        kind, way = step.step_kind, f"{at}.transitions.{intent}"
        if intent not in ALLOWED_INTENTS[kind] and not self.left.lost(f"{at}.stepKind"):
            known = ", ".join(sorted(ALLOWED_INTENTS[kind]))
            hint = f"a {kind} step has: {known}"
            yield Problem(self.file, at, f'intent "{intent}" is not for a {kind} step', hint)
        elif step.transition(intent) is None and intent is not Intent.REPEAT and not self.left.lost(way):
            yield Problem(self.file, at, f'intent "{intent}" has no transition')

    def _transition_problems(self, at: str, name: str, step: Step) -> Iterator[Problem]:
        if name not in list(Intent):
            yield Problem(self.file, at, f'"{name}" is not an intent', did_you_mean(name, [str(i) for i in Intent]))
            return
        transition = step.transition(Intent(name)) or Transition()
        if transition.targets and Intent(name) is not Intent.JUMP:
            yield Problem(self.file, f"{at}.targets", "only a jump has several targets")
        if transition.targets and transition.target is not None:
            yield Problem(self.file, f"{at}.target", "a jump has a target, or targets to choose between, and not both")
        for target in (transition.target, *transition.targets):
            if target is not None:
                yield from self._missing_step(at, target)
        aimless = transition.target is None and not transition.targets
        if Intent(name) is Intent.JUMP and aimless and not self.left.touched(at):
            yield Problem(self.file, at, "a jump needs a target, or targets to choose between")

    def _end_problems(self, reachable: frozenset[str], max_iterations: int) -> Iterator[Problem]:
        ending = self._leading_to_the_end()
        for step_id in self.registry.steps:
            if step_id in reachable and step_id not in ending:
                yield Problem(self.file, f"steps.{step_id}", "no path leads from here to a closing step")
        for entry in self.entries():
            needed = self.shortest_path(entry) if entry in self.edges else None
            if needed is not None and needed > max_iterations:
                yield Problem(
                    self.file,
                    f"steps.{entry}",
                    f"the shortest path to the end takes {needed} iterations, and only {max_iterations} are allowed",
                    "raise runner.limits.maxIterations",
                )


def _ungated_intents(step: Step) -> tuple[Intent, ...]:
    """A step without a gate is left by `next`, or closes, when its conditions hold."""
    if step.step_kind is StepKind.CLOSURE:
        return (Intent.CLOSING, Intent.REPEAT)
    return (Intent.NEXT, Intent.REPEAT)


def targets(step_id: str, step: Step) -> Iterator[str]:
    """Everywhere a step may lead."""
    for _, target in ways(step_id, step):
        yield target


def ways(step_id: str, step: Step) -> Iterator[tuple[Intent, str]]:
    """Each way on from a step: the intent that takes it, and where it leads."""
    intents = step.structured_gate.allowed_intents if step.structured_gate else _ungated_intents(step)
    for intent in intents:
        transition = step.transition(intent)
        if transition is None:
            yield intent, step_id
        elif intent is Intent.JUMP:
            for target in transition.targets or (transition.target or END,):
                yield intent, target
        elif intent is Intent.ESCALATE and transition.target is None:
            continue
        else:
            yield intent, transition.target if transition.target is not None else END
