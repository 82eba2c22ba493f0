"""The shape of `tracker` in `.genba/config.yaml`: where the issues of the project live."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

PriorityName = Literal["critical", "high", "medium", "low"]
"""The values of `domain.tasks.Priority`, whose types a run without a task does not load."""


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class AppSettings(_Section, frozen=True):
    """A GitHub App instead of a token. Its key is in a file, or in the variable GENBA_GITHUB_APP_KEY."""

    id: Annotated[str, Meta(min_length=1, description="The id of the app, or its client id.")]
    installation: Annotated[int, Meta(gt=0, description="The id of its installation on the repository's owner.")]
    key_file: Annotated[str, Meta(description="The file with its private key; outside of the repository.")] = ""


class CardStatuses(_Section, frozen=True):
    """What the field of the board is set to when a task comes to a status; empty: it is left as it is."""

    open: str = ""
    in_progress: str = ""
    review: str = ""
    blocked: str = ""
    done: str = ""
    cancelled: str = ""


class BoardSettings(_Section, frozen=True):
    """A board of GitHub (a project). Only issues that are on it become tasks."""

    number: Annotated[int, Meta(gt=0, description="The number in its address.")]
    owner: Annotated[str, Meta(description="The user or organization that owns it; by default the repository's.")] = ""
    field: Annotated[str, Meta(min_length=1, description="The field that holds the status.")] = "Status"
    statuses: CardStatuses = CardStatuses()


class GitHubSettings(_Section, frozen=True):
    """The issues of the project are those of a repository on GitHub."""

    repository: Annotated[
        str, Meta(pattern=r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$", description="owner/name of the repository.")
    ]
    url: Annotated[
        str,
        Meta(
            pattern=r"^https?://[^\s]+$",
            description="The address of the API. GitHub Enterprise: https://HOST/api/v3",
        ),
    ] = "https://api.github.com"
    label: Annotated[str, Meta(description="Only issues with this label become tasks.")] = ""
    board: BoardSettings | None = None
    app: AppSettings | None = None
    comments_from: Annotated[
        Literal["members", "everyone"],
        Meta(description="Whose comments agents get to read: those of people of the repository, or everyone's."),
    ] = "members"
    priorities: Annotated[dict[str, PriorityName], Meta(description="By label, the priority of the task.")] = {}
    types: Annotated[dict[str, str], Meta(description="By label or type of the issue, the type of the task.")] = {}
    sync_seconds: Annotated[float, Meta(gt=0, description="How often `genba work` looks at the tracker.")] = 60
    full_sync_hours: Annotated[
        float, Meta(gt=0, description="How often all issues are read again, to find deleted ones.")
    ] = 24
    send: Annotated[
        bool,
        Meta(description="false: all but pushed branches stays in the outbox until `genba outbox send`."),
    ] = True
    mutations_per_hour: Annotated[int, Meta(ge=1, le=500, description="The most changes to send in an hour.")] = 500
    mutation_pause_seconds: Annotated[float, Meta(ge=0, description="The pause between two changes.")] = 1.0
    timeout_seconds: Annotated[float, Meta(gt=0, description="Patience for one answer.")] = 30


class TrackerSection(_Section, frozen=True):
    github: GitHubSettings | None = None
