"""Small helpers for the titles of articles."""


def shorten(title: str, longest: int = 40) -> str:
    """Cut a title at a word, and say so with dots."""
    if len(title) <= longest:
        return title
    return title[:longest].rsplit(" ", 1)[0] + " …"
