"""The database of a project: where it is, and opening it for the repository that it belongs to."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from genba.domain.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from genba.application.ports import Layout, Locations
    from genba.blackboard.database.repository_binding import Owner
    from genba.blackboard.tasks.board import Blackboard
    from genba.definitions.project.project import Project

DATABASE_VARIABLE = "GENBA_DATABASE_URL"


class ProjectDatabase:
    """Opens the blackboard of one project when it is first needed."""

    def __init__(self, layout: Layout, project: Project, locations: Locations) -> None:
        self.layout = layout
        self.project = project
        self.locations = locations
        self._board: Blackboard | None = None

    def address(self) -> str:
        """The environment names it, then the settings, then the file in the repository."""
        named = os.environ.get(DATABASE_VARIABLE, "")
        if not named and "://" in (named := self.project.file.database.url):
            from genba.blackboard.database.connect import address_of_repository  # noqa: PLC0415  (SQLAlchemy is slow to import)

            named = address_of_repository(named, os.environ)
        return named if "://" in named else str(self.layout.main / named)

    def exists(self) -> bool:
        """True for a database that is there; asking makes none."""
        address = self.address()
        return "://" in address or os.path.lexists(address)

    def board(self, make: bool) -> Blackboard:
        """The blackboard. Raises NotFoundError where there is none and none may be made."""
        if self._board is None and not make and not self.exists():
            raise NotFoundError("this project has no tasks yet", hint='genba task add "what is to be done"')
        if self._board is None:
            address = self.address()
            if "://" not in address and Path(address).is_relative_to(self.layout.main):
                relative = Path(address).relative_to(self.layout.main).as_posix()
                beside = ("-wal", "-shm", ".executor.lock")
                with contextlib.suppress(OSError):  # a read-only checkout can still be read
                    self.layout.exclude(f"/{relative}", *(f"/{relative}{end}" for end in beside))
            self._board = self._open(address)
        return self._board

    def adopt(self) -> None:
        """Bind the database to this repository, whichever it belonged to."""
        from genba.blackboard.database.connect import without_executor  # noqa: PLC0415  (see address)

        address = self.address()
        if address.startswith("postgres"):
            raise UsageError(
                "on PostgreSQL a project is known by its name, and belongs to no single repository",
                unchanged="nothing was changed.",
                hint="write its name under project.name in .genba/config.yaml",
            )
        with without_executor(_file_of(address), "is in use by `genba work` of the repository that it belongs to"):
            self._board = self._open(address, adopt=True)

    def close(self) -> None:
        """Close the database. All of it is then in its file, which can be copied."""
        if self._board is not None:
            self._board.close()
            self._board = None

    def _open(self, address: str, adopt: bool = False) -> Blackboard:
        from genba.blackboard.tasks.board import Blackboard  # noqa: PLC0415  (see address)

        if not address.startswith("postgres"):
            self.locations.refuse_links(Path(_file_of(address)).absolute())
        name = self.project.name or self.layout.main.name
        return Blackboard.open(address, name, self.project.file.database.busy_seconds, self._owner, adopt)

    def _owner(self, place: str, recorded: str) -> Owner:
        """This repository. `place`: the file of the database. `recorded`: the git folder that opened it last."""
        from genba.blackboard.database.repository_binding import Owner  # noqa: PLC0415  (see address)

        own, fresh = self.locations.identity()
        path = str(self.layout.common.resolve())
        copied = bool(own) and recorded not in ("", path) and self.locations.identity_at(Path(recorded)) == own
        inside = Path(place).resolve().is_relative_to(self.layout.main.resolve())
        elsewhere = frozenset({recorded}) if copied else frozenset()
        return Owner(id=own, path=path, fresh=fresh, inside=inside, elsewhere=elsewhere)


def _file_of(address: str) -> str:
    """The file of a database that is named by its path or by a `sqlite://` address."""
    return address.partition("://")[2].removeprefix("/") if "://" in address else address
