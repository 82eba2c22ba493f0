"""`genba work --until-empty` that dies at a boundary: `python -m tests.chaos.mortal BOUNDARY WORKERS [RECORD]`.

The fleet of the product, as in `tests.fleet.dying`, with the door for agents that ask.
"""

import asyncio
import os
import sys
from pathlib import Path

from genba.domain.errors import GenbaError
from genba.entrypoints.cli.failures import show_error
from genba.entrypoints.cli.work.work_command import PlainFleetView, _door, drive
from genba.wiring.project.project_context import ProjectContext
from tests.fleet.dying import Fate, MortalFleet


def main() -> None:
    boundary, workers, *record = sys.argv[1:]
    MortalFleet.fate = Fate(boundary, Path(record[0]) if record else None)
    context = asyncio.run(ProjectContext.find(Path.cwd()))

    def opened(listener):  # type: ignore[no-untyped-def]
        return MortalFleet.open(
            context,
            workers=int(workers),
            executor=os.environ.get("GENBA_EXECUTOR", ""),
            listener=listener,
            door=_door,
        )

    code = 0
    try:
        asyncio.run(drive(opened, PlainFleetView(), until_empty=True))
    except GenbaError as error:
        show_error(error)
        code = error.exit_code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
