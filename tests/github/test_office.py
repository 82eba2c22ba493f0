"""All that a project has to do with GitHub, through one door."""

import os
import stat
from pathlib import Path

import pytest

from genba.connections.clock import SystemClock
from genba.connections.github.connection import GitHubConnection
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.domain.errors import AccessRefusedError
from tests.github.offices import SHOP, TOKEN, settings, settle
from tests.standins.github.server import GitHub


async def test_a_new_login_works_without_a_restart(
    hub: GitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = settle(hub).add_issue(SHOP, title="One")
    for name in ("GENBA_GITHUB_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "GH_ENTERPRISE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    gh = tmp_path / "gh"
    gh.write_text(f"#!/bin/sh\ncat {tmp_path}/token\n")
    gh.chmod(gh.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("GENBA_GITHUB_HOST", hub.url)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "token").write_text("expired")
    office = GitHubConnection(settings(hub.url), ProcessSupervisor(), tmp_path, SystemClock())
    try:
        with pytest.raises(AccessRefusedError):
            await office.issues.page()
        (tmp_path / "token").write_text(TOKEN)
        assert [issue.number for issue in (await office.issues.page()).issues] == [number]
        assert await office.token(hub.url) == TOKEN
    finally:
        await office.close()
