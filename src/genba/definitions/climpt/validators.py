"""Validators as checks of Genba's."""

import re
import shlex
from typing import Any

from genba.definitions.climpt.reading import objects_at, text_at
from genba.definitions.climpt.report import ImportReport

_FILE = "steps_registry.json"
_REMOTE = ("@{u}", "@{upstream}", "origin/", "git push", "git fetch", "git ls-remote")
_STATUS = "git status --porcelain"
_DENO = re.compile(r"\bdeno\b")
_FOREIGN = re.compile(r"\\[dwsDWSbBnrt]|\(\?")
"""What JavaScript has in its regular expressions, and POSIX has not."""
_NO_EFFECT = {
    "extractParams": "a retry prompt gets the whole output of the check",
    "phase": "Genba checks when a step is left",
    "description": "it is for readers only",
    "name": "it is the key of the validator",
}


def convert_validators(raw: dict[str, Any], patterns: set[str], report: ImportReport) -> dict[str, dict[str, Any]]:
    """The checks by name. One that Genba does by itself, or cannot do, is left out and reported."""
    found: dict[str, dict[str, Any]] = {}
    for name, declared in objects_at(raw, "validators").items():
        key = f"validators.{name}"
        check = _converted(declared, key, report)
        if check is None:
            continue
        if text_at(declared, "failurePattern") in patterns:
            check["failurePattern"] = declared["failurePattern"]
            report.mapped(_FILE, f"{key}.failurePattern")
        elif "failurePattern" in declared:
            report.no_effect(_FILE, f"{key}.failurePattern", "the pattern has no prompt: Genba's own is used")
        for field, why in _NO_EFFECT.items():
            if field in declared:
                report.no_effect(_FILE, f"{key}.{field}", why)
        found[name] = check
    return found


def _converted(declared: dict[str, Any], key: str, report: ImportReport) -> dict[str, Any] | None:
    kind, command = declared.get("type", "command"), text_at(declared, "command").strip()
    if kind == "file":
        return _file_check(declared, key, report)
    if kind not in ("command", "custom") or not command:
        report.attention(_FILE, key, f"{kind!r} cannot be checked by a command and was left out", whole=True)
        return None
    if any(part in command for part in _REMOTE):
        why = "the sandbox has no remote: Genba merges and pushes by itself, after it has verified the work"
        report.no_effect(_FILE, key, why)
        return None
    if "type" in declared:
        report.mapped(_FILE, f"{key}.type", "command")
    success = text_at(declared, "successWhen") or "exitCode:0"
    if command == _STATUS and success == "empty":
        report.mapped(_FILE, f"{key}.command", "git-clean")
        report.mapped(_FILE, f"{key}.successWhen", "git-clean")
        return {"type": "git-clean"}
    check, what = _by_command(command, success)
    if what:
        report.attention(_FILE, f"{key}.successWhen", what, whole=True)
    elif "successWhen" in declared:
        report.mapped(_FILE, f"{key}.successWhen")
    if _DENO.search(command):
        what = "needs deno in the sandbox: name your own command if you do not use it"
        report.attention(_FILE, f"{key}.command", what)
    else:
        report.mapped(_FILE, f"{key}.command")
    return check


def _file_check(declared: dict[str, Any], key: str, report: ImportReport) -> dict[str, Any] | None:
    field = "path" if "path" in declared else "file"
    path = text_at(declared, field)
    if not path or path.startswith(("/", "~")) or ".." in path.split("/"):
        report.attention(_FILE, key, "names no file in the repository and was left out", whole=True)
        return None
    report.mapped(_FILE, f"{key}.type", "file-exists")
    report.mapped(_FILE, f"{key}.{field}")
    return {"type": "file-exists", "path": path}


def _by_command(command: str, success: str) -> tuple[dict[str, Any], str]:
    """The check, and what is different from the original where something is."""
    how, _, value = success.partition(":")
    plain: dict[str, Any] = {"type": "command", "command": command}
    if how == "empty":
        return {**plain, "successWhen": "emptyOutput"}, ""
    if how == "exitCode" and value.strip() in ("", "0"):
        return plain, ""
    if how == "exitCode" and value.strip().isdecimal():
        return {**plain, "command": f"( {command}\n); test $? -eq {int(value)}"}, ""
    if how in ("contains", "matches") and value:
        is_foreign = how == "matches" and _FOREIGN.search(value)
        what = "grep -E reads the pattern: write it in its syntax" if is_foreign else ""
        option = "-qF" if how == "contains" else "-qE"
        return {**plain, "command": f"( {command}\n) 2>&1 | grep {option} -e {shlex.quote(value)}"}, what
    return plain, f"{success!r} is not known: the exit code decides"
