"""What a command in a definition must look like before anybody tries to start it."""

LONGEST = 100_000
"""Bytes of one command. Every system takes that many, and a prompt never travels here."""


def command_problem(command: str | tuple[str, ...]) -> str:
    """Why a command cannot be started, or an empty string."""
    words = (command,) if isinstance(command, str) else command
    if not words or not words[0].strip():
        return "expected a command, got nothing"
    if sum(len(word.encode("utf-8", "replace")) + 1 for word in words) > LONGEST:
        return f"is longer than {LONGEST} bytes"
    return ""
