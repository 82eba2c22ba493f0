"""Patterns of .gitignore and .gitattributes that an agent wrote, before git matches names with them.

Each `**` of a pattern doubles what git tries: eight of them take minutes for one deep name.
"""

LARGEST = 1024 * 1024
"""The longest file of patterns that is read."""
MOST_STARS = 5
"""The most `**` in one pattern."""
PATTERN_FILES = (b".gitignore", b".gitattributes")


def problem_of(content: bytes) -> str:
    """Why git would take too long with the patterns of a file; empty where it would not."""
    if len(content) > LARGEST:
        return f"is longer than {LARGEST // 1024} KB"
    return f"has a pattern with more than {MOST_STARS} **" if has_many_stars(content) else ""


def has_many_stars(content: bytes) -> bool:
    return any(line.count(b"**") > MOST_STARS for line in content.split(b"\n") if b"**" in line)
