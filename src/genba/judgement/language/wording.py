"""The words that Genba puts into prompts, feedback and decisions, in the language that the project has chosen.

Every text is an entry of both catalogues. What others wrote, and what tools printed, is filled in as it is.
"""

from types import ModuleType
from typing import Any

from genba.judgement.language import wording_en, wording_ja

CATALOGUES: dict[str, ModuleType] = {"en": wording_en, "ja": wording_ja}


def say(language: str, key: str, **values: Any) -> str:
    """The text of a key with its values; in English where the language is not known."""
    text: str = CATALOGUES.get(language, wording_en).TEXTS[key]
    return text.format(**values) if values else text
