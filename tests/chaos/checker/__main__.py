"""`python -m tests.chaos.checker REPOSITORY --database FILE_OR_URL --plan plan.json --home FOLDER [--json]`."""

import argparse
import sys
from pathlib import Path

import msgspec

from tests.chaos.checker import check
from tests.chaos.plan import Plan


def main() -> int:
    """Print what is wrong; 1 when something is."""
    words = argparse.ArgumentParser(prog="python -m tests.chaos.checker", description="Check a field after a round.")
    words.add_argument("repository", type=Path)
    words.add_argument("--database", required=True, help="an SQLite file, or the address of a PostgreSQL database")
    words.add_argument("--plan", type=Path, required=True, help="the plan of the round, as JSON")
    words.add_argument("--home", type=Path, required=True, help="the folder with commits.txt and starts.txt")
    words.add_argument("--json", action="store_true", help="one JSON array, and nothing else")
    result = words.parse_args()
    plan = msgspec.json.decode(result.plan.read_bytes(), type=Plan)
    found = check(result.repository.resolve(), result.database, plan, result.home.resolve())
    if result.json:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    else:
        sys.stdout.writelines(f"{finding.law}: {finding.what}\n" for finding in found)
        sys.stdout.write(f"seed {plan.seed}, {len(plan.parts)} tasks: {len(found)} findings\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
