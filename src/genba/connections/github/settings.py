"""What these connections want to know. The settings of a project have it, and anything else that looks the same."""

from typing import Protocol


class AppSettings(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def installation(self) -> int: ...

    @property
    def key_file(self) -> str: ...


class BoardSettings(Protocol):
    @property
    def field(self) -> str: ...


class GitHubSettings(Protocol):
    @property
    def repository(self) -> str:
        """owner/name"""
        ...

    @property
    def url(self) -> str:
        """The address of the API."""
        ...

    @property
    def app(self) -> AppSettings | None: ...

    @property
    def board(self) -> BoardSettings | None: ...

    @property
    def timeout_seconds(self) -> float: ...

    @property
    def mutation_pause_seconds(self) -> float: ...
