"""Checks that need nothing but what git shows."""

from genba.domain.sessions.evidence import (
    Check,
    CheckResult,
    CheckStatus,
    CommitsExistCheck,
    FilesChangedCheck,
    GitCleanCheck,
    TreeFacts,
)
from genba.judgement.language.wording import say

_SHOWN = 5


def judge_check(name: str, check: Check, facts: TreeFacts, language: str = "en") -> CheckResult | None:
    """The result of a check on git facts, or None when the check must be run in the working tree."""
    match check:
        case GitCleanCheck() if facts.strayed:
            return _result(name, False, say(language, "strayed", strayed=facts.strayed))
        case GitCleanCheck():
            return _result(name, not facts.dirty, _uncommitted(facts.dirty, language))
        case CommitsExistCheck():
            return _result(name, bool(facts.commits), say(language, "no_commit"))
        case FilesChangedCheck(pattern=pattern):
            from genba.judgement.verification.paths import matches  # noqa: PLC0415  (few agents have such a check)

            fitting = [path for path in facts.changed_files if matches(path, pattern)]
            return _result(name, bool(fitting), say(language, "no_change", pattern=pattern))
    return None


def _result(name: str, passed: bool, complaint: str) -> CheckResult:
    status = CheckStatus.PASSED if passed else CheckStatus.FAILED
    return CheckResult(name, status, "" if passed else complaint)


def _uncommitted(paths: tuple[str, ...], language: str) -> str:
    more = say(language, "and_more", count=len(paths) - _SHOWN) if len(paths) > _SHOWN else ""
    files = ", ".join(paths[:_SHOWN]) + more
    key = "one_file_dirty" if len(paths) == 1 else "files_dirty"
    return say(language, key, count=len(paths), files=files)
