"""The three parsers under a fuzzer that sees which lines are reached: what adapters print, steps_registry, settings.

    python -m tests.fuzz.atheris_inputs NAME CORPUS [options of libFuzzer]

Atheris is no part of the locked development environment: it has no wheel for every Python. `make fuzz` installs it
beside, with hashes, where it has one, and says so where it has none.
"""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.mutation import as_json

TOOLS = ("claude", "codex", "opencode")


def seeds(name: str) -> list[bytes]:
    """What is valid, to begin with."""
    from tests.fuzz import corpus

    if name == "adapter-streams":
        return [
            bytes([at]) + b"\n".join(as_json(event) for event in events)
            for at, tool in enumerate(TOOLS)
            for events in corpus.transcripts(tool)
        ]
    if name == "steps-registry":
        return [as_json(files["steps_registry.json"]) for files in corpus.agents() if "steps_registry.json" in files]
    return [corpus.config_text().encode(), as_json(corpus.CONFIG)]


def feeds() -> dict[str, Callable[[bytes], None]]:
    from tests.fuzz import corpus, targets

    streams = {
        target.name: target.feed for target in targets.TARGETS if target.name in ("claude-code", "codex", "opencode")
    }
    in_order = [streams["claude-code"], streams["codex"], streams["opencode"]]
    whole = next(files for files in corpus.agents() if files["agent.json"]["name"] == "steps")
    valid = {
        name: as_json(message) if name.endswith(".json") else str(message).encode() for name, message in whole.items()
    }

    def stream(data: bytes) -> None:
        if data:
            in_order[data[0] % len(in_order)]((data[1:].split(b"\n"), b"", 0))

    def registry(data: bytes) -> None:
        targets.feed_agent({**valid, "steps_registry.json": data})

    return {"adapter-streams": stream, "steps-registry": registry, "settings": targets.feed_settings}


def main() -> None:
    atheris = importlib.import_module("atheris")
    name, folder = sys.argv[1:3]
    with atheris.instrument_imports(include=["genba.connections.agents", "genba.definitions", "genba.domain", "yaml"]):
        feed = feeds()[name]
    for number, seed in enumerate(seeds(name)):
        (Path(folder) / f"seed{number}").write_bytes(seed)
    atheris.Setup([sys.argv[0], folder, "-timeout=60", "-rss_limit_mb=2048", *sys.argv[3:]], feed)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
