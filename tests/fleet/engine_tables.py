"""The tables of the engine, beside those of a blackboard: `python -m tests.fleet.engine_tables ADDRESS`.

A process of its own, so that others need not load the engine.
"""

import sys

from tests import preloaded


def make(address: str) -> None:
    """Have a process make them that has the engine loaded already."""
    done = preloaded.run(
        [sys.executable, "-m", "tests.fleet.engine_tables", address],
        cwd=preloaded.ROOT,
        env=preloaded.ordinary_environment(),
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    from dbos import DBOS

    from genba.coordination.engine.engine_database import EngineDatabase

    DBOS.migrate(EngineDatabase(sys.argv[1]).url.render_as_string(hide_password=False))
