"""The same agent, written for climpt 1.10, 1.12, 1.13 and 1.14. The texts are our own."""

import json
from pathlib import Path
from typing import Any

VERSIONS = ("1.10", "1.12", "1.13", "1.14")
_PARAMETERS = {
    "issue": {"type": "number", "description": "The issue", "required": True, "cli": "--issue"},
    "branch": {"type": "string", "required": False, "cli": "--branch"},
    "iterateMax": {"type": "number", "default": 30, "cli": "--iterate-max", "validation": {"min": 1}},
}
_LABELS = {"requirements": "docs", "inProgress": "in-progress", "gap": "from review"}
_TOOLS = ["Read", "Write", "Bash"]


def write(root: Path, version: str, name: str = "builder") -> Path:
    """Write the agent below a folder; returns its own."""
    folder = root / ".agent" / name
    files = {
        "agent.json": _agent(version, name),
        "steps_registry.json": _registry(version, name),
        "config.json": {
            "worktree": {"forceWorktree": True, "worktreeRoot": "../worktree"},
            "overrides": {"runner.logging.maxFiles": 20},
            "telemetry": {"enabled": False},
        },
        "schemas/build.schema.json": _schema(),
        "schemas/common.schema.json": {
            "$defs": {
                "answer": {"type": "object", "required": ["summary"], "properties": {"summary": {"type": "string"}}}
            }
        },
    }
    texts = {
        "prompts/system.md": "You are {uv-agent_name}.\n\n{uv-completion_criteria}\n",
        "prompts/steps/initial/build/f_default.md": (
            "---\nstepId: initial.build\n---\n\nIssue {uv-issue_number}\n\n{issue_content}\n\n{uv-label_info}\n"
        ),
        "prompts/steps/continuation/build/f_default.md": (
            "After {uv-completed_iterations} iterations. The plan: {uv-initial_build_approach}, {uv-plan}\n"
        ),
        "prompts/steps/closure/build/f_default.md": "Close it.\n",
        "prompts/steps/closure/build/f_default_label-only.md": "Set the labels, and leave it open.\n",
        "prompts/steps/retry/build/f_failed_git-dirty.md": (
            "Not committed for issue {uv-issue_number}:\n{{#if changedFiles}}\n{{#each changedFiles}}\n- {{this}}\n"
            "{{/each}}\n{{else}}none{{/if}}\n"
        ),
        "README.md": "About this agent.\n",
    }
    for path, value in files.items():
        _put(folder / path, json.dumps(value, indent=2))
    for path, text in texts.items():
        _put(folder / path, text)
    return folder


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _agent(version: str, name: str) -> dict[str, Any]:
    head = {"$schema": "../agent.schema.json", "version": "1.0.0", "name": name, "displayName": "Builder", "team": "a",
            "description": "Builds what an issue asks for", "parameters": _PARAMETERS}  # fmt: skip
    github = {"enabled": True, "labels": _LABELS, "defaultClosureAction": "close"}
    actions = {"enabled": True, "types": ["issue-action"], "outputFormat": "json",
               "handlers": {"issue-action": "./handlers/issue.ts"}}  # fmt: skip
    logging = {"directory": f"tmp/logs/agents/{name}", "format": "jsonl", "maxFiles": 100}
    if version == "1.10":
        behavior = {"systemPromptPath": "prompts/system.md", "completionType": "externalState",
                    "completionConfig": {"maxIterations": 40}, "allowedTools": _TOOLS, "permissionMode": "acceptEdits",
                    "preCloseValidation": {"enabled": True, "validators": ["git-clean"]}}  # fmt: skip
        prompts = {"registry": "steps_registry.json", "fallbackDir": "prompts/"}
        return {**head, "behavior": behavior, "prompts": prompts, "actions": actions, "github": github,
                "worktree": {"enabled": True, "root": "../worktree"}, "logging": logging}  # fmt: skip
    completion: dict[str, Any] = {
        "type": "externalState" if version == "1.12" else "poll:state",
        "config": {"maxIterations": 40},
    }
    if version == "1.14":
        completion["config"] = {"maxIterations": 40, "resourceType": "github-issue"}
    runner = {
        "flow": {"systemPromptPath": "prompts/system.md", "prompts": {"registry": "steps_registry.json"}},
        "completion" if version == "1.12" else "verdict": completion,
        "boundaries": {"allowedTools": _TOOLS, "permissionMode": "acceptEdits"},
        "integrations": {"github": github},
        "actions": actions,
        "execution": {"worktree": {"enabled": True, "root": "../worktree"}},
        "logging": logging,
    }
    return {**head, "runner": runner}


def _registry(version: str, name: str) -> dict[str, Any]:
    newer = version in ("1.13", "1.14")
    conditions = {"1.13": "validationConditions", "1.14": "postLLMConditions"}.get(version, "completionConditions")
    phase = {"phase": "postllm"} if version == "1.14" else {}
    before = {"preflightConditions": [{"validator": "says-ok"}]} if version == "1.14" else {}
    leave = "handoff" if newer else "closing"
    gate = {"intentField": "next_action.action", "fallbackIntent": "next", "failFast": True}
    step: dict[str, Any] = {"type": "prompt", "edition": "default", "usesStdin": False, "fallbackKey": "none"}
    steps = {
        "initial.build": {
            **step, "stepId": "initial.build", "stepKind": "work", "c2": "initial", "c3": "build",
            "uvVariables": ["issue_number"],
            "outputSchemaRef": {"file": "build.schema.json", "schema": "initial.build"},
            "structuredGate": {**gate, "allowedIntents": ["next", "repeat"], "handoffFields": ["analysis.approach"]},
            "transitions": {"next": {"target": "continuation.build"}, "repeat": {"target": "initial.build"}},
        },
        "continuation.build": {
            **step, "stepId": "continuation.build", "stepKind": "work", "c2": "continuation", "c3": "build",
            "model": "sonnet", "inputs": {"plan": {"from": "initial.build.approach", "required": True}},
            "structuredGate": {**gate, "allowedIntents": ["continue", "repeat", leave]},
            "transitions": {"continue": {"target": "continuation.build"}, "repeat": {"target": "continuation.build"},
                            leave: {"target": "closure.build"}},
        },
        "closure.build": {
            **step, "stepId": "closure.build", "stepKind": "closure", "c2": "closure", "c3": "build",
            "structuredGate": {**gate, "allowedIntents": ["closing", "repeat"], "fallbackIntent": "closing"},
            "transitions": {"closing": {"target": None}, "repeat": {"target": "closure.build"}},
        },
        "initial.forgotten": {**step, "stepId": "initial.forgotten", "c2": "initial", "c3": "forgotten"},
        "section.context": {**step, "c2": "section", "c3": "context"},
    }  # fmt: skip
    return {
        "agentId": name, "version": "1.0.0", "userPromptsBase": f".agent/{name}/prompts",
        "schemasBase": f".agent/{name}/schemas", "c1": "steps", "pathTemplate": "{c1}/{c2}/{c3}/f_{edition}.md",
        "entryStepMapping": {"poll:state" if newer else "externalState": "initial.build"},
        "failurePatterns" if newer else "completionPatterns": {
            "git-dirty": {"description": "not committed", "edition": "failed", "adaptation": "git-dirty",
                          "params": ["changedFiles"]},
            "test-failed": {"edition": "failed", "adaptation": "test-failed"},
        },
        "validators": {
            "git-clean": {"type": "command", "command": "git status --porcelain", "successWhen": "empty",
                          "failurePattern": "git-dirty", "extractParams": {"changedFiles": "parseChangedFiles"},
                          **phase},
            "branch-pushed": {"type": "command", "command": "git rev-parse --symbolic-full-name @{u}"},
            "type-check": {"type": "command", "command": "cd src && deno check mod.ts", "successWhen": "exitCode:0"},
            "good-enough": {"type": "semantic", "prompt": "Is it good?"},
            "says-ok": {"type": "command", "command": "echo all is well", "successWhen": "contains:is well"},
        },
        "validationSteps" if newer else "completionSteps": {
            "closure.build": {"stepId": "closure.build", "c2": "retry", "c3": "build",
                              conditions: [{"validator": "git-clean"}, {"validator": "branch-pushed"},
                                           {"validator": "says-ok"}, {"validator": "never-written"}], **before,
                              "onFailure": {"action": "retry", "maxAttempts": 2}},
        },
        "steps": steps,
    }  # fmt: skip


def _schema() -> dict[str, Any]:
    action = {"type": "object", "required": ["action"], "properties": {"action": {"enum": ["next", "repeat"]}}}
    analysis = {"type": "object", "properties": {"approach": {"type": "string"}}, "required": ["approach"]}
    return {
        "$id": "build.schema.json",
        "initial.build": {
            "allOf": [{"$ref": "common.schema.json#/$defs/answer"}],
            "type": "object",
            "required": ["analysis"],
            "properties": {"next_action": action, "analysis": {"$ref": "#/$defs/analysis"}},
        },
        "$defs": {"analysis": analysis},
    }
