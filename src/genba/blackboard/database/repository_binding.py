"""Which repository a database belongs to.

Rule: an SQLite file belongs to one repository, the first that opened it; another one that names the same file is
refused, and changes nothing. A repository is known by an id in its own `.git/genba/`, so that it may be moved and
renamed. On PostgreSQL a project is known by its name: its clones on several hosts work on the same one.
"""

import secrets
from collections.abc import Callable

import msgspec

from genba.blackboard.database.sanitize import now
from genba.blackboard.database.store import Row, Statement, Store, Transaction
from genba.domain.errors import GenbaError, StateConflictError

_BY_NAME = Statement("SELECT id FROM projects WHERE name = :name")
_ALL = Statement("SELECT id, name, repository, repository_path FROM projects ORDER BY created_at, id")
_ADD = Statement("""
INSERT INTO projects (id, name, created_at, repository, repository_path)
VALUES (:id, :name, :at, :repository, :path) ON CONFLICT (name) DO NOTHING
""")
_BIND = Statement("UPDATE projects SET name = :name, repository = :repository, repository_path = :path WHERE id = :id")


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """The repository that opens a database."""

    id: str = ""
    """From its own git folder; empty where that cannot be written."""
    path: str = ""
    """Its git folder."""
    fresh: bool = False
    """The id was made just now: it has opened no database yet."""
    inside: bool = False
    """The file lies in its own checkout."""
    elsewhere: frozenset[str] = frozenset()
    """Other places where a repository with the same id lives: this one, or that one, is a copy."""


FindOwner = Callable[[str, str], Owner]
"""The repository that opens a file, by the path of the file and the git folder that it was last opened from."""


def project_of(store: Store, name: str, find_owner: FindOwner | None = None, adopt: bool = False) -> str:
    """The id of the project that a repository works on. Raises StateConflictError where the file is another's.

    Without an owner, as in a test of the blackboard alone, nothing is bound, and nothing is asked.
    """
    if store.on_postgres or find_owner is None:
        found = store.read(lambda tx: tx.one(_BY_NAME, name=name))
        return str(found[0]) if found else store.write(lambda tx: _added(tx, name, Owner()))
    rows = store.read(lambda tx: tx.all(_ALL))
    owner = find_owner(store.place, str(rows[0][3]) if rows else "")
    if [row[1:] for row in rows] == [(name, owner.id, owner.path)] and not adopt:
        return str(rows[0][0])
    if rows and not adopt:
        _refuse_another(rows[0], name, owner, store.place)
    try:
        return store.write(lambda tx: _bound(tx, name, owner, store.place, adopt))
    except GenbaError:
        if not adopt and rows and rows[0][1] == name and not rows[0][2]:
            return str(rows[0][0])  # an older file, which cannot be written here, can be read
        raise


def _bound(tx: Transaction, name: str, owner: Owner, place: str, adopt: bool) -> str:
    rows = tx.all(_ALL)
    if not rows:
        return _added(tx, name, owner)
    if not adopt:
        _refuse_another(rows[0], name, owner, place)
    tx.do(_BIND, id=rows[0][0], name=name, repository=owner.id, path=owner.path)
    return str(rows[0][0])


def _added(tx: Transaction, name: str, owner: Owner) -> str:
    """A new project; without an owner a file keeps the one project that it has, under its new name."""
    there = [] if tx.on_postgres else tx.all(_ALL)
    if len(there) == 1:
        tx.do(_BIND, id=there[0][0], name=name, repository=there[0][2], path=there[0][3])
        return str(there[0][0])
    tx.do(_ADD, id=f"prj_{secrets.token_hex(8)}", name=name, at=now(), repository=owner.id, path=owner.path)
    row = tx.one(_BY_NAME, name=name)
    return str(row[0]) if row else ""


def _refuse_another(row: Row, name: str, owner: Owner, place: str) -> None:
    _, named, repository, path = row
    if not repository:  # an older file: it belongs to whom it lies with, or to whom it names
        refused = not owner.inside and named != name
    elif repository == owner.id:
        refused = path in owner.elsewhere and not owner.inside
    else:
        refused = not (owner.fresh and owner.inside and path == owner.path)
    if refused:
        whose = f"the repository at {path}" if path else f'the project "{named}"'
        raise StateConflictError(
            f"{place} belongs to {whose}, and not to this repository",
            unchanged="nothing was changed.",
            hint="name another file in database.url or GENBA_DATABASE_URL; to take it over with its tasks: "
            "genba migrate --adopt",
        )
