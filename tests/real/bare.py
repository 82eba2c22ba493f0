"""The real agents started bare, as a user would from a shell: no Genba between them and the model."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clis import cli, path_with_clis
from tests.standins.model_server import ModelServer

LONGEST = 120


@dataclass(frozen=True)
class Ended:
    code: int
    events: list[dict[str, Any]]
    err: str

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event.get("type") == kind]


@dataclass(frozen=True)
class Bare:
    """A place for one agent: an empty repository and a private HOME."""

    root: Path
    server: ModelServer

    @property
    def tree(self) -> Path:
        return self.root / "tree"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def files(self) -> set[str]:
        """What lies in the tree, by its path, without the repository itself."""
        found = {str(path.relative_to(self.tree)) for path in self.tree.rglob("*") if path.is_file()}
        return {path for path in found if not path.startswith(".git/")}

    def prepare(self) -> None:
        for folder in (self.tree, self.home / "tmp", self.home / ".codex", self.home / ".gemini"):
            folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "init", "-q", str(self.tree)], check=True)
        settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
        (self.home / ".gemini/settings.json").write_text(json.dumps(settings))

    def run(self, name: str, scenario: str, *more: str, prompt: str = "Do it.", **environment: str) -> Ended:
        """Run an agent to its end; `more` comes behind its other words."""
        self.prepare()
        words, variables = _COMMANDS[name](self, self.server.url(scenario))
        done = subprocess.run(
            [str(cli(name)), *words, *more],
            cwd=self.tree,
            env={**self._environment(), **variables, **environment},
            input=prompt,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        return Ended(done.returncode, [json.loads(line) for line in lines], done.stderr)

    def _environment(self) -> dict[str, str]:
        return {"PATH": path_with_clis(), "HOME": str(self.home), "TMPDIR": str(self.home / "tmp")}


Started = tuple[list[str], Mapping[str, str]]


def _claude(place: Bare, url: str) -> Started:
    words = ["-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits"]
    variables = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-of-the-tests",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
    }
    return [*words, "--model", "claude-sonnet-4-5"], variables


def _codex(place: Bare, url: str) -> Started:
    provider = (
        f'{{name="loopback",base_url="{url}/v1",env_key="LOOPBACK_KEY",wire_api="responses",'
        "request_max_retries=0,stream_max_retries=0}"
    )
    words = ["exec", "--json", "-C", str(place.tree), "-m", "gpt-5.5", "-s", "workspace-write"]
    words += ["-c", "model_provider=loopback", "-c", f"model_providers.loopback={provider}"]
    words += ["--disable", "plugins", "--disable", "apps", "-c", "analytics.enabled=false"]
    words += ["-c", "check_for_update_on_startup=false"]
    return words, {"CODEX_HOME": str(place.home / ".codex"), "LOOPBACK_KEY": "sk-of-the-tests"}


def _opencode(place: Bare, url: str) -> Started:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "{env:LOOPBACK_KEY}"},
        "models": {"stub-model": {}},
    }
    variables = {
        "OPENCODE_CONFIG_CONTENT": json.dumps({"provider": {"loopback": provider}}),
        "LOOPBACK_KEY": "sk-of-the-tests",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    }
    return ["run", "--format", "json", "-m", "loopback/stub-model", "--title", "a test"], variables


def _gemini(place: Bare, url: str) -> Started:
    variables = {
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_API_KEY": "sk-of-the-tests",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_CLI_NO_RELAUNCH": "true",
    }
    return ["-o", "stream-json", "--approval-mode", "yolo", "-m", "gemini-2.5-flash"], variables


_COMMANDS = {"claude": _claude, "codex": _codex, "opencode": _opencode, "gemini": _gemini}
