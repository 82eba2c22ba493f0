"""A real agent in the demo, in place of the one that plays a script."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec

from genba.application.project.doctor import TOOLS, Health, agent_readiness
from genba.domain.errors import NotFoundError, StateConflictError, UsageError
from genba.entrypoints.cli.project_lookup import run_async
from genba.wiring.project.machine import this_machine

REAL = tuple(TOOLS)
CUSTOM = "custom"
_NOTHING = "nothing was started, nothing was changed."


class Cast(msgspec.Struct, frozen=True):
    """Who works, in the words of `runner.adapter`."""

    adapter: dict[str, Any]


def real_cast(adapter: str, command: str) -> Cast:
    """The agent that was asked for; refused where it is not installed, or nothing would let it in."""
    if adapter == CUSTOM:
        if not command.strip():
            raise UsageError(
                "--agent custom needs a command",
                unchanged=_NOTHING,
                hint="genba demo --agent custom --command 'my-agent < {prompt_file}'",
            )
        return Cast({"type": CUSTOM, "command": command, "commit": True})
    if command:
        raise UsageError("--command goes with --agent custom", unchanged=_NOTHING, hint="genba demo --help")
    ready = run_async(agent_readiness(adapter, os.environ, this_machine()))
    if ready.finding.health is not Health.FINE:
        raise NotFoundError(
            f"{ready.finding.name}: {ready.finding.detail}",
            unchanged=_NOTHING,
            hint=f"{ready.finding.install or 'genba doctor'}   or, without any: genba demo",
        )
    if not ready.can_log_in:
        raise StateConflictError(
            f"{ready.finding.name} is here, and has neither a key nor a login",
            unchanged=_NOTHING,
            hint=f"export {ready.key}=…   then  genba demo --agent {adapter}",
        )
    return Cast({"type": adapter, **({"homeFiles": [ready.login]} if ready.login else {})})


def recast(home: Path, cast: Cast) -> None:
    """Let a real agent play the builder of a demo that is not committed yet."""
    shutil.rmtree(home / ".agent" / "liar")
    (home / ".agent" / "builder" / "script.yaml").unlink()
    path = home / ".agent" / "builder" / "agent.json"
    agent = json.loads(path.read_text("utf-8"))
    agent["runner"]["adapter"] = cast.adapter
    path.write_text(json.dumps(agent, indent=2) + "\n", encoding="utf-8")
