"""Makefiles: whether a branch changes what the targets of the base do.

The law: new targets and new variables of their own are ordinary. Targets, variables and directives of the base stay
as they are, and nothing new may reach into them.
"""

import re
from collections import defaultdict

import msgspec

NAMES = ("GNUmakefile", "makefile", "Makefile")
"""In the order in which make takes the first that is there."""

_ASSIGNMENT = re.compile(
    r"\s*((?:(?:export|override|private|unexport)\s+)*)([\w.\-/]+)\s*(\?=|:{1,3}=|\+=|!=|=)\s*(.*)"
)
_REFERENCE = re.compile(r"\$[({]([\w.\-/]+)")
_REACHING = re.compile(
    r"SHELL|\.SHELLFLAGS|MAKE\w*|\.DEFAULT_GOAL|\.RECIPEPREFIX|V?PATH|PYTHON\w*|PYTEST\w*|NODE_\w+|GO\w*|CARGO\w*|RUST\w*"
)


_RUN_WHEN_READ = re.compile(r"!=|[:+?]+= .*\$[({](?:shell|file|eval|guile|call|foreach|load)\b")
"""An assignment that make carries out when it reads the file, whatever target was asked for."""
_HOUSEKEEPING = frozenset({"clean", "distclean", "help", "install", "uninstall", "run", "serve", "dev", "demo", "docs"})
"""Targets that judge nothing, unless another one needs them."""


class _Makefile(msgspec.Struct, frozen=True):
    rules: dict[str, list[tuple[str, tuple[str, ...]]]]
    variables: dict[str, list[str]]
    directives: list[str]
    first: str


def differing_targets(old: str | None, new: str | None) -> tuple[str, ...]:
    """What of a makefile's base differs on the branch, in words such as `target test`."""
    before, after = _read(old or ""), _read(new or "")
    wanted = {word for name in before.rules if name != ".PHONY" for word in _needs(name, before)}
    free = _HOUSEKEEPING - wanted - {before.first}
    found = [f"target {name}" for name in before.rules if name not in free and not _kept(name, before, after)]
    found += [f"variable {name}" for name, values in before.variables.items() if after.variables.get(name) != values]
    referred = set(_REFERENCE.findall(old or ""))
    for name in after.variables:
        runs = any(_RUN_WHEN_READ.match(value) for value in after.variables[name])
        if name not in before.variables and (name in referred or _REACHING.fullmatch(name) or runs):
            found.append(f"variable {name}")
    for name in after.rules:
        if name not in before.rules and (name in wanted or (name.startswith(".") and name != ".PHONY") or "%" in name):
            found.append(f"target {name}")
    if before.first and before.first != after.first:
        found.append("the first target")
    if _differ(before.directives, after.directives):
        found.append("its directives")
    return tuple(dict.fromkeys(found))


def _kept(name: str, before: _Makefile, after: _Makefile) -> bool:
    if name != ".PHONY":
        return after.rules.get(name) == before.rules[name]
    return _needs(name, before) <= _needs(name, after)


def _needs(name: str, file: _Makefile) -> set[str]:
    return {word for needs, _ in file.rules.get(name, []) for word in needs.split()}


def _differ(old: list[str], new: list[str]) -> bool:
    return sorted(old) != sorted(new)


def _read(text: str) -> _Makefile:
    rules: dict[str, list[tuple[str, list[str]]]] = defaultdict(list)
    variables: dict[str, list[str]] = defaultdict(list)
    directives: list[str] = []
    first, recipe = "", [[""]]
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        if line.startswith("\t"):
            for lines in recipe:
                lines.append(line.strip())
            continue
        bare = re.sub(r"(?<!\\)#.*", "", line).strip()
        if not bare:
            continue
        assigned = _ASSIGNMENT.fullmatch(bare)
        head, colon, needs = bare.partition(":")
        if assigned and not assigned[1]:
            variables[assigned[2]].append(f"{assigned[3]} {assigned[4]}")
        elif colon and not assigned and "=" not in head:
            names = head.rstrip("&").split()
            recipe = [[] for _ in names]
            for name, lines in zip(names, recipe, strict=True):
                rules[name].append((needs.strip(), lines))
            first = first or next((name for name in names if not name.startswith(".")), "")
        else:
            directives.append(" ".join(bare.split()))
    frozen = {name: [(before, tuple(lines)) for before, lines in found] for name, found in rules.items()}
    return _Makefile(frozen, dict(variables), directives, first)
