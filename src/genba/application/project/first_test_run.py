"""Running the tests of a project once, before its first settings are written: as a verification would run them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from genba.application.verification.maker import Maker
from genba.definitions.project.project import rules_from
from genba.domain.goals.goal import TestsPass
from genba.domain.goals.verification import Subject
from genba.domain.processes import VERIFYING
from genba.execution.verification.policy import PolicyResolver

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext
    from genba.domain.sessions.evidence import CheckResult

LIMIT_SECONDS = 300.0
"""For the setup, and then for the tests."""


async def run_tests_once(context: ProjectContext, command: str, settings: str) -> CheckResult | None:
    """The result of a test command on the newest commit, by settings that are not written yet; None without a commit.

    What is not committed is not seen, as in every verification.
    """
    history = context.ports.repository.history()
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
    subject = Subject(commit=commit, base=commit, branch="", base_branch="")
    verification = await context.ports.verifier(Maker(), mark).verify(subject, policy, lambda _result: None, fresh=True)
    return verification.results[0].result if verification.results else None
