"""Names that changed from version to version, and the ones that Genba has for them."""

COMPLETION_TYPES = {
    "issue": "externalState",
    "issueClose": "externalState",
    "externalState": "externalState",
    "poll:state": "externalState",
    "iterate": "iterationBudget",
    "iterationBudget": "iterationBudget",
    "count:iteration": "iterationBudget",
    "checkBudget": "checkBudget",
    "count:check": "checkBudget",
    "manual": "keywordSignal",
    "keywordSignal": "keywordSignal",
    "detect:keyword": "keywordSignal",
    "structuredSignal": "structuredSignal",
    "detect:structured": "structuredSignal",
    "stepFlow": "stepMachine",
    "stepMachine": "stepMachine",
    "detect:graph": "stepMachine",
    "composite": "composite",
    "meta:composite": "composite",
    "custom": "custom",
    "meta:custom": "custom",
}

INTENTS = {
    "next": "next",
    "continue": "next",
    "pass": "next",
    "repeat": "repeat",
    "retry": "repeat",
    "wait": "repeat",
    "fail": "repeat",
    "jump": "jump",
    "handoff": "handoff",
    "escalate": "escalate",
    "closing": "closing",
    "complete": "closing",
    "done": "closing",
    "finished": "closing",
}

STEP_KINDS = {"initial": "work", "continuation": "work", "verification": "verification", "closure": "closure",
              "complete": "closure"}  # fmt: skip
"""The kind of a step that names none, by its c2."""

VARIABLES = {
    "issue_number": "issue",
    "project_number": "project",
    "iterations": "max_iterations",
    "remaining": "remaining_iterations",
    "baseBranch": "base_branch",
    "verdict_keyword": "completion_keyword",
}
"""Variables of prompts that Genba supplies under another name."""

TEXTS = {
    "issue_content": "{uv-issue_title}\n\n{uv-issue_body}",
    "input_text": "",
    "project_context_section": "",
    "cross_repo_note": "",
    "summary_section": "{uv-previous_summary}",
}
"""Placeholders without `uv-` that the original filled by its own code."""

RUNNER_SECTIONS = {
    "prompts": "runner.flow.prompts",
    "actions": "runner.actions",
    "github": "runner.integrations.github",
    "worktree": "runner.execution.worktree",
    "finalize": "runner.execution.finalize",
    "logging": "runner.logging",
    "behavior.systemPromptPath": "runner.flow.systemPromptPath",
    "behavior.defaultModel": "runner.flow.defaultModel",
    "behavior.completionType": "runner.completion.type",
    "behavior.completionConfig": "runner.completion.config",
    "behavior.allowedTools": "runner.boundaries.allowedTools",
    "behavior.permissionMode": "runner.boundaries.permissionMode",
    "runner.verdict": "runner.completion",
}
"""Where a section of an older or newer layout stands in the layout of 1.12."""

CONDITION_LISTS = ("completionConditions", "validationConditions", "postLLMConditions")
VALIDATION_STEPS = ("completionSteps", "validationSteps")
PATTERNS = ("completionPatterns", "failurePatterns")
