"""Running the tests of a project once, before its first settings are written: as a verification would run them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from genba.connections.git.repository.history import GitHistory
from genba.connections.journal.redaction import Redactor
from genba.definitions.project.project import rules_from
from genba.domain.goals.goal import TestsPass
from genba.domain.goals.verification import Subject
from genba.domain.processes import VERIFYING
from genba.execution.verification.policy import PolicyResolver
from genba.wiring.sandbox.goal_sandboxes import Maker, fence_for
from genba.wiring.verification.verifier import verifier

if TYPE_CHECKING:
    from genba.domain.sessions.evidence import CheckResult
    from genba.wiring.project.project_context import ProjectContext

LIMIT_SECONDS = 300.0
"""For the setup, and then for the tests."""


async def run_tests_once(context: ProjectContext, command: str, settings: str) -> CheckResult | None:
    """The result of a test command on the newest commit, by settings that are not written yet; None without a commit.

    What is not committed is not seen, as in every verification.
    """
    history = GitHistory(context.layout.git)
    words = ("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    asked = await context.layout.git.run(*words, git_dir=context.layout.git_dir, allow=(0, 1, 128))
    commit = asked.stdout.strip()
    rules = rules_from(settings, "the settings")
    if not commit or rules is None:
        return None
    policy = await PolicyResolver(history, rules, "the settings").freeze(commit, "", None)
    tests = TestsPass(command=command, timeout_seconds=LIMIT_SECONDS)
    goals = tuple(
        msgspec.structs.replace(frozen, goal=tests) for frozen in policy.goals if isinstance(frozen.goal, TestsPass)
    )
    if not goals:
        return None
    limit = min(LIMIT_SECONDS, policy.setup_timeout_seconds)
    policy = msgspec.structs.replace(policy, goals=goals, setup_timeout_seconds=limit)
    mark = f"{VERIFYING}{os.getpid()}-{os.urandom(3).hex()}"
    judge = verifier(context.layout, context.processes, Redactor(os.environ).text, mark, fence_for(context, Maker()))
    subject = Subject(commit=commit, base=commit, branch="", base_branch="")
    verification = await judge.verify(subject, policy, lambda _result: None, fresh=True)
    return verification.results[0].result if verification.results else None
