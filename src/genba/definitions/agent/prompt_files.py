"""Where the prompts of a step are found."""

from genba.definitions.agent.definition import PromptText
from genba.definitions.agent.folder import AgentFolder
from genba.definitions.steps.steps_registry import FailurePattern, Step, StepsRegistry
from genba.domain.problems import Problem


def step_prompt(
    folder: AgentFolder, registry_file: str, step_id: str, step: Step, fallback_dir: str
) -> PromptText | None:
    """The prompt of a step: the path that c2 and c3 name, else a file of the fallback folder, else none."""
    at = f"steps.{step_id}"
    if (step.c2 is None) != (step.c3 is None):
        missing = "c3" if step.c3 is None else "c2"
        folder.problems.append(Problem(registry_file, f"{at}.{missing}", "c2 and c3 go together"))
        return None
    if step.c2 is not None and step.c3 is not None:
        return _edition(folder, registry_file, at, f"prompts/steps/{step.c2}/{step.c3}", step.edition, step.adaptation)
    for name, value, plain in (("edition", step.edition, "default"), ("adaptation", step.adaptation, None)):
        if value != plain:
            problem = Problem(registry_file, f"{at}.{name}", "needs c2 and c3: it names a file in their folder")
            folder.problems.append(problem)
    for candidate in (f"{step_id}.md", "default.md"):
        relative = f"{fallback_dir.rstrip('/')}/{candidate}"
        if folder.has(relative):
            text = folder.text(relative, registry_file, at)
            return PromptText(folder.shown(folder.in_language(relative)), text) if text is not None else None
    return None


def retry_prompts(
    folder: AgentFolder, registry_file: str, step: Step, registry: StepsRegistry
) -> dict[str, PromptText]:
    """The prompts that failure patterns choose for this step; a pattern without a file here chooses none."""
    found: dict[str, PromptText] = {}
    if step.c2 is None or step.c3 is None:
        return found
    for name, pattern in registry.failure_patterns.items():
        if _has_edition(folder, step, pattern):
            text = _edition(
                folder,
                registry_file,
                f"failurePatterns.{name}",
                f"prompts/steps/{step.c2}/{step.c3}",
                pattern.edition,
                pattern.adaptation,
            )
            if text is not None:
                found[name] = text
    return found


def _has_edition(folder: AgentFolder, step: Step, pattern: FailurePattern) -> bool:
    base = f"prompts/steps/{step.c2}/{step.c3}/f_{pattern.edition}"
    names = [f"{base}.md"] + ([f"{base}_{pattern.adaptation}.md"] if pattern.adaptation else [])
    return any(folder.has(name) for name in names)


def _edition(
    folder: AgentFolder, file: str, at: str, base: str, edition: str, adaptation: str | None
) -> PromptText | None:
    plain = f"{base}/f_{edition}.md"
    wanted = f"{base}/f_{edition}_{adaptation}.md" if adaptation else plain
    notice = ""
    if adaptation and not folder.has(wanted) and folder.has(plain):
        notice = f"{folder.shown(wanted)} is not there; {folder.shown(plain)} is used"
        wanted = plain
    text = folder.text(wanted, file, at)
    return PromptText(folder.shown(folder.in_language(wanted)), text, notice) if text is not None else None
