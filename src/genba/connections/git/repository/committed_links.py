"""Links that a repository commits, on the way to a folder that Genba writes to.

Law: Genba writes through no link that came with the repository. A link that the user made, and that git does not track,
is the user's word.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from genba.connections.git.repository.layout import RepositoryLayout
from genba.domain.errors import StateConflictError

_MOST_LINKS = 40
_LINK, _REPOSITORY = "120000", "160000"


def refuse_committed_links(layout: RepositoryLayout, *places: str | Path) -> None:
    """Raise StateConflictError where a place is reached through a link that is tracked in the user's checkout.

    A place is a path in the checkout, or an absolute one. Git is asked only where there is a link at all.
    """
    for top, git_dir in {layout.top: layout.git_dir, layout.main: layout.common}.items():
        real = Path(os.path.realpath(top))
        links = {link: str(place) for place in places for link in _links_on_the_way(real, real / place)}
        for link in _tracked(layout, git_dir, tuple(links)) if links else ():
            raise StateConflictError(
                f"{link} is a link that the repository commits, and Genba writes nothing through it: {links[link]}",
                unchanged="nothing was started, nothing was changed.",
                hint=f"git rm --cached -- {link}   keeps it as a link of your own",
            )


def _links_on_the_way(top: Path, place: Path) -> Iterator[str]:
    """The links in a checkout that a path leads through, each as git names it."""
    path, rest, hops = Path("/"), list(reversed(place.parts[1:])), 0
    while rest:
        part = rest.pop()
        if part == "..":
            path = path.parent
            continue
        path /= part
        if not os.path.islink(path):  # noqa: PTH114  (what cannot be looked at is no link)
            continue
        if path.is_relative_to(top):
            yield path.relative_to(top).as_posix()
        hops += 1
        if hops > _MOST_LINKS:
            return
        target = path.readlink()
        path = Path("/") if target.is_absolute() else path.parent
        rest += reversed(target.parts[1:] if target.is_absolute() else target.parts)


def _tracked(layout: RepositoryLayout, git_dir: Path, links: tuple[str, ...]) -> Iterator[str]:
    """The links that git tracks, itself or as a part of a nested repository."""
    names = {name for link in links for name in (link, *map(str, Path(link).parents))} - {"."}
    args = ("--literal-pathspecs", "ls-files", "--stage", "-z", "--", *sorted(names))
    modes = {}
    for entry in layout.git.aside(git_dir, *args).decode("utf-8", "surrogateescape").split("\0"):
        mode, _, rest = entry.partition(" ")
        modes[rest.partition("\t")[2]] = mode
    for link in links:
        nested = any(modes.get(str(parent)) == _REPOSITORY for parent in Path(link).parents)
        if nested or modes.get(link) == _LINK:
            yield link
