"""The words that stand in the place of keys."""

import os


def new_token() -> str:
    """What an instance shows the broker in the place of a key. It opens nothing but this session's broker."""
    return f"genba-{os.urandom(24).hex()}"
