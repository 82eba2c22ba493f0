"""Texts that are too long to be kept whole."""


def shortened(text: str, longest: int) -> str:
    """A text with its beginning and its end, and between them how much was left out."""
    if len(text) <= longest:
        return text
    kept = longest // 2
    return f"{text[:kept]}\n… {len(text) - 2 * kept:,} characters left out …\n{text[-kept:]}"
