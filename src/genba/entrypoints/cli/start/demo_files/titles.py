"""Small helpers for the titles of articles."""

LONGEST = 40


def initial(title: str) -> str:
    """The letter under which an index lists a title."""
    return title[0].upper()


def shorten(title: str) -> str:
    """Cut a title at a word, and say so with dots."""
    if len(title) <= LONGEST:
        return title
    return title[:LONGEST].rsplit(" ", 1)[0] + " …"
