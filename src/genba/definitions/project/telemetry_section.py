"""The shape of `telemetry` in `.genba/config.yaml`: what is sent to an OpenTelemetry collector."""

from typing import Annotated

import msgspec
from msgspec import Meta


class TelemetrySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether traces and metrics are sent. Where to is in the variables of OpenTelemetry."""

    enabled: Annotated[bool, Meta(description="Send traces and metrics; takes genba[telemetry].")] = False
    content: Annotated[bool, Meta(description="Also send prompts, replies, tool arguments and titles.")] = False
