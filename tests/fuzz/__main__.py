"""`make fuzz`: every target in turns, from a seed that is printed, until the time is over.

    python -m tests.fuzz [--minutes 10] [--seed N] [--only NAME …] [--rounds N]

A finding is reported with its smallest input, its seed and the command that plays it again. The exit code is 1 then.
"""

import argparse
import random
import sys
import time
import traceback

from tests.fuzz.budget import memory, play
from tests.fuzz.commands import COMMAND_TARGETS
from tests.fuzz.git_targets import GIT_TARGETS
from tests.fuzz.guided import NAMES, play_guided
from tests.fuzz.run_targets import RUN_TARGETS
from tests.fuzz.targets import TARGETS, Target

GUIDED = 0.25
"""The part of the time that a fuzzer has which sees what it reaches."""
ALL = (*TARGETS, *RUN_TARGETS, *GIT_TARGETS, *COMMAND_TARGETS)


def main() -> int:
    options = _options()
    chosen = [target for target in ALL if not options.only or target.name in options.only]
    if not chosen:
        sys.exit(f"no target is named so; known: {', '.join(target.name for target in ALL)}")
    first = options.seed if options.seed is not None else random.SystemRandom().randrange(2**32)
    guided = 0.0 if options.only or options.rounds else GUIDED * options.minutes * 60
    until = time.monotonic() + options.minutes * 60 - guided
    _say(f"seed {first}; {len(chosen)} targets; {options.minutes:g} minutes")
    found: set[str] = set()
    played = dict.fromkeys((target.name for target in chosen), 0)
    number = 0
    while time.monotonic() < until and (options.rounds is None or number < options.rounds):
        for target in chosen:
            if target.name not in found and time.monotonic() < until:
                found |= _round(target, first + number)
                played[target.name] += 2 * target.share
        number += 1
        _say(f"  round {number}: {sum(played.values())} inputs, {memory()} MB, {len(found)} findings")
    for name, inputs in played.items():
        _say(f"{'FOUND' if name in found else 'ok':>6}  {name:<14} {inputs} inputs")
    if guided:
        found |= play_guided(max(1, round(guided / len(NAMES))), first % 2**31, _say)
    return 1 if found else 0


def _round(target: Target, seed: int) -> set[str]:
    try:
        play(target, seed, 2 * target.share)
    except Exception:  # noqa: BLE001  (whatever was found is reported)
        traceback.print_exc()
        _say(f"again: make fuzz SEED={seed} ONLY={target.name} ROUNDS=1")
        return {target.name}
    return set()


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Feed what nobody meant.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--only", nargs="*", default=[])
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
