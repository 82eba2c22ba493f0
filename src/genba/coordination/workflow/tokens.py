"""The secrets of the workflow: passkeys, one-time credentials and session tokens.

Only hashes are stored. A check takes the same time whether the secret is right or wrong.
"""

import asyncio
import hashlib
import re
import secrets
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from argon2 import PasswordHasher

_ID, _WORD = 6, 20
"""Bytes; the word alone is more than anybody can guess."""
_LONGEST = 200
_SECRET = re.compile(r"(?<![A-Za-z0-9])gb[kos]_[A-Za-z0-9_]{12,}")
_HIDDEN = "[redacted]"


class SecretKind(StrEnum):
    PASSKEY = "gbk"
    """Of an agent that comes by itself."""
    CREDENTIAL = "gbo"
    """Good for one authentication of one run."""
    TOKEN = "gbs"  # noqa: S105  (a name, not a secret)
    """Of one connection."""


class Secret(msgspec.Struct, frozen=True):
    """A secret with the public name that it is looked up by."""

    id: str
    text: str

    def __repr__(self) -> str:
        return f"Secret(id={self.id!r})"


def new_passkey() -> str:
    return f"{SecretKind.PASSKEY}_{secrets.token_hex(_WORD)}"


def new_secret(kind: SecretKind) -> Secret:
    """A credential or a token, with a name of its own."""
    name = secrets.token_hex(_ID)
    return Secret(name, f"{kind}_{name}_{secrets.token_hex(_WORD)}")


def read_secret(text: str, kind: SecretKind) -> Secret | None:
    """What was shown, if it looks like a secret of this kind at all."""
    words = text.strip().split("_") if len(text) <= _LONGEST else []
    if len(words) != len(("kind", "id", "word")) or words[0] != kind or not all(words):
        return None
    return Secret(words[1], text.strip()) if words[1].isalnum() and words[1].isascii() else None


def without_secrets(value: Any) -> Any:
    """The same plain data, in which no secret of the workflow can be read: what agents write is kept, and shown."""
    if isinstance(value, str):
        return _SECRET.sub(_HIDDEN, value)
    if isinstance(value, dict):
        return {key: without_secrets(inner) for key, inner in value.items()}
    return [without_secrets(each) for each in value] if isinstance(value, list) else value


def digest(text: str) -> bytes:
    """What a verified secret is remembered by, in memory only."""
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


async def hashed(text: str) -> str:
    return await asyncio.get_running_loop().run_in_executor(_one_thread(), _hasher().hash, text)


async def fits(text: str, known: str) -> bool:
    """Whether a secret is the one that was hashed; with nothing to compare it takes as long, and is not."""
    return await asyncio.get_running_loop().run_in_executor(_one_thread(), _fits, text, known)


def _fits(text: str, known: str) -> bool:
    from argon2.exceptions import InvalidHashError, VerificationError  # noqa: PLC0415  (only who authenticates needs it)

    try:
        return _hasher().verify(known or _unknown_token_hash(), text) and bool(known)
    except (VerificationError, InvalidHashError):
        return False


@cache
def _one_thread() -> ThreadPoolExecutor:
    """A hash takes much memory, and a thread that made one keeps it: so one thread makes them all."""
    return ThreadPoolExecutor(1, "genba-hashing")


@cache
def _hasher() -> "PasswordHasher":
    from argon2 import PasswordHasher  # noqa: PLC0415  (only who authenticates needs it)

    # Every secret is long and random, so guessing is hopeless at any price: the least that is advised will do.
    return PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)


@cache
def _unknown_token_hash() -> str:
    return _hasher().hash(secrets.token_hex(_WORD))
