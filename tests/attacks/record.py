"""Play attacks against a `genba`, and write down which succeeded: `python -m tests.attacks.record --help`."""

import argparse
import json
import sys
import tempfile
import time
import traceback
from contextlib import ExitStack
from pathlib import Path

from genba.domain.sessions.sandbox import SandboxKind
from tests.attacks import field as fields
from tests.attacks.catalogue import SANDBOXES, Scene, succeeded
from tests.attacks.scenes import ALL_SCENES
from tests.sandbox.engines import Engine, engine_of


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", action="append", help="only this kind")
    parser.add_argument("--scene", action="append", help="only this scene")
    parser.add_argument("--into", type=Path, help="a JSON file to add the results to")
    parser.add_argument("--keep", action="store_true", help="keep the folders")
    parser.add_argument("-v", action="store_true", help="print why attacks were stopped")
    words = parser.parse_args()
    scenes = [scene for scene in ALL_SCENES if not words.scene or scene.name in words.scene]
    with tempfile.TemporaryDirectory(prefix="attack-engines-") as shared, ExitStack() as stack:
        engines: dict[str, Engine] = {}
        for scene, kind in ((each, kind) for each in scenes for kind in each.kinds):
            if words.kind and kind not in words.kind:
                continue
            if kind in SANDBOXES[1:] and kind not in engines:
                engines[kind] = stack.enter_context(engine_of(SandboxKind(kind), Path(shared)))
            try:
                played(scene, kind, engines.get(kind), words)
            except Exception:  # noqa: BLE001  (the other scenes are still wanted)
                say(f"{scene.name} {kind}: not played")
                traceback.print_exc()


def played(scene: Scene, kind: str, engine: Engine | None, words: argparse.Namespace) -> None:
    """Play one scene, print what succeeded, and add it to the file."""
    place = Path(tempfile.mkdtemp(prefix=f"attack-{scene.name}-{kind}-"))
    made = fields.made(place, kind, engine.options if engine else (), engine.host if engine else "")
    begun = time.monotonic()
    evidence = succeeded(scene, made)
    say(f"{scene.name} {kind} {time.monotonic() - begun:.1f} s: {len(evidence)} of {len(scene.attacks)} succeeded")
    for name, text in evidence.items():
        say(f"  ! {name}: {text[:160]!r}")
    if words.v:
        for name, message in made.reported().items():
            say(f"  . {name}: {message['error'][-160:]!r}")
    if words.into:
        known = json.loads(words.into.read_text()) if words.into.exists() else {}
        for each in scene.attacks:
            known.setdefault(each.id, {})[kind] = "succeeded" if each.id in evidence else "stopped"
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(kinds)}" for name, kinds in sorted(known.items()))
        words.into.write_text(f"{{\n{lines}\n}}\n")
    if words.keep:
        say(f"  kept {place}")
    else:
        fields.clear(place)


if __name__ == "__main__":
    main()
