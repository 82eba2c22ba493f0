"""Commits of an agent say which issue, agent and session they are of."""

import os
import subprocess
from pathlib import Path

import pytest

from genba.connections.git.private.commit_hook import SIGNING, SIGNING_HOOK

OWN = {"GENBA_ISSUE": "12", "GENBA_AGENT": "worker", "GENBA_RUN": "worker-1"}
SIGNED = "Issue: 12\nAgent: worker\nSession: worker-1"


class Signed:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "-q")
        hook = root / ".git" / SIGNING
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(SIGNING_HOOK, encoding="utf-8")
        hook.chmod(0o755)

    def git(self, *words: str, reply: str | None = None, **environment: str) -> str:
        named = {
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@a",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a",
        }
        whole = {**os.environ, **named, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(self.root), **environment}
        done = subprocess.run(
            ["git", *words], cwd=self.root, check=True, capture_output=True, text=True, input=reply, env=whole
        )
        return done.stdout.strip()

    def commit(self, message: str, **environment: str) -> str:
        self.git("commit", "-q", "--allow-empty", "-F", "-", reply=message, **environment)
        return self.git("log", "-1", "--format=%B")


@pytest.fixture
def signed(tmp_path: Path) -> Signed:
    return Signed(tmp_path)


@pytest.mark.parametrize(
    ("message", "whole"),
    [
        ("Add tea", f"Add tea\n\n{SIGNED}"),
        ("Add tea\n\nGreen.\n", f"Add tea\n\nGreen.\n\n{SIGNED}"),
        ("fix: add tea", f"fix: add tea\n\n{SIGNED}"),
        ("Add tea\n\nReviewed-by: Rita", f"Add tea\n\nReviewed-by: Rita\n{SIGNED}"),
        ("Add tea\n\nIssue: 99\nSession: forged", f"Add tea\n\n{SIGNED.replace('Agent: worker', 'X')}"),
    ],
)
def test_what_it_is_of_stands_at_the_end(signed: Signed, message: str, whole: str) -> None:
    output = signed.commit(message, **OWN)
    shown = signed.git("log", "-1", "--format=%(trailers:key=Issue,key=Agent,key=Session)")
    assert sorted(shown.splitlines()) == sorted(SIGNED.splitlines())
    if "forged" not in message:
        assert output == whole


def test_a_commit_that_is_made_again_is_signed_once(signed: Signed) -> None:
    signed.commit("Add tea", **OWN)
    signed.git("commit", "-q", "--amend", "--no-edit", "--allow-empty", **OWN)
    assert signed.git("log", "-1", "--format=%B") == f"Add tea\n\n{SIGNED}"


def test_without_an_issue_there_is_none_and_without_a_run_nothing(signed: Signed) -> None:
    assert signed.commit("Add tea", **{**OWN, "GENBA_ISSUE": ""}) == "Add tea\n\nAgent: worker\nSession: worker-1"
    assert signed.commit("Add tea", GENBA_RUN="") == "Add tea"
