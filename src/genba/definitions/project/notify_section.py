"""The shape of `notify` in `.genba/config.yaml`: the channels for notifications."""

from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

Variable = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]

Kind = Literal["question", "attempts", "conflict", "failed", "review", "budget", "plan", "stopped"]
"""The kinds of escalations. They are words here: a run of one agent loads nothing of a fleet."""


class WebhookSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a notice is sent as JSON."""

    url_env: Annotated[
        Variable, Meta(description="The variable that holds the address. The address of many services is a secret.")
    ] = "GENBA_WEBHOOK_URL"
    url: Annotated[str, Meta(min_length=1, description="The address itself, where it is no secret.")] | None = None
    secret_env: (
        Annotated[Variable, Meta(description="The variable that holds the secret each notice is signed with.")] | None
    ) = None
    timeout_seconds: Annotated[float, Meta(gt=0, le=30, description="How long an answer may take.")] = 10
    plain_http: Annotated[bool, Meta(description="Allow http to another host, unencrypted.")] = False


class NotifySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The channels for notifications, and when they are used."""

    webhook: WebhookSettings | None = None
    desktop: Annotated[
        bool, Meta(description="Show a notification on the desktop of the user who started the process.")
    ] = False
    kinds: Annotated[tuple[Kind, ...], Meta(min_length=1, description="Kinds of notifications; by default all.")] = (
        get_args(Kind)
    )
    reminder_hours: Annotated[
        float, Meta(ge=0, description="Repeat it after so long while the decision is open; 0: once.")
    ] = 0
