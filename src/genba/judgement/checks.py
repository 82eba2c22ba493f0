"""Checks that need nothing but what git shows."""

from genba.domain.evidence import (
    Check,
    CheckResult,
    CheckStatus,
    CommitsExistCheck,
    FilesChangedCheck,
    GitCleanCheck,
    TreeFacts,
)

_SHOWN = 5


def judge_check(name: str, check: Check, facts: TreeFacts) -> CheckResult | None:
    """The result of a check on git facts, or None when the check must be run in the working tree."""
    match check:
        case GitCleanCheck() if facts.strayed:
            return _result(name, False, f"the working tree is on {facts.strayed}, not on the branch of the run")
        case GitCleanCheck():
            return _result(name, not facts.dirty, f"{_count(facts.dirty, 'file')} not committed: {_some(facts.dirty)}")
        case CommitsExistCheck():
            return _result(name, bool(facts.commits), "the branch has no commit over its base")
        case FilesChangedCheck(pattern=pattern):
            from genba.judgement.paths import matches  # noqa: PLC0415  (few agents have such a check)

            fitting = [path for path in facts.changed_files if matches(path, pattern)]
            return _result(name, bool(fitting), f"no commit changed a file that fits {pattern}")
    return None


def _result(name: str, passed: bool, complaint: str) -> CheckResult:
    status = CheckStatus.PASSED if passed else CheckStatus.FAILED
    return CheckResult(name, status, "" if passed else complaint)


def _count(things: tuple[str, ...], word: str) -> str:
    return f"{len(things)} {word}{'' if len(things) == 1 else 's'}"


def _some(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(paths[:_SHOWN]) + more
