"""Which repository opens a database: what its git folder says of itself, and of the place where it was before."""

from pathlib import Path

from genba.blackboard.database.repository_binding import Owner
from genba.connections.git.repository.layout import RepositoryLayout, identity_at


def owner_of(layout: RepositoryLayout, place: str, recorded: str) -> Owner:
    """`place`: the file of the database. `recorded`: the git folder that it was last opened from."""
    own, fresh = layout.identity()
    path = str(layout.common.resolve())
    copied = bool(own) and recorded not in ("", path) and identity_at(Path(recorded)) == own
    inside = Path(place).resolve().is_relative_to(layout.main.resolve())
    elsewhere = frozenset({recorded}) if copied else frozenset()
    return Owner(id=own, path=path, fresh=fresh, inside=inside, elsewhere=elsewhere)
