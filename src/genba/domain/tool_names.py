"""Names of tools, as lists of what is allowed have them."""


def is_listed(tool: str, listed: tuple[str, ...]) -> bool:
    """Whether a list lets a tool through.

    `Bash` lets everything through that runs as Bash, also where an entry says what for (`Bash(git *)`): whether that
    part was kept to is for the tool itself to see to. `mcp__server` stands for every tool of that server.
    """
    return any(_lets(entry, tool) for entry in listed)


def _lets(entry: str, tool: str) -> bool:
    known, wanted = bare_name(entry), bare_name(tool)
    return known == wanted or (known.startswith("mcp__") and known.count("__") == 1 and wanted.startswith(f"{known}__"))


def bare_name(tool: str) -> str:
    """A tool without what it may be used on."""
    return tool.partition("(")[0].strip()
