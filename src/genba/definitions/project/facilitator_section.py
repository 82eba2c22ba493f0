"""The shape of `facilitator` in `.genba/config.yaml`: how the field is looked at and kept."""

from typing import Annotated

import msgspec
from msgspec import Meta


class StateLabels(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """By state, the label that shows it on an issue; empty: none does."""

    done: str = ""
    review_pending: str = ""
    in_progress: str = ""
    incomplete: str = ""
    blocked: str = "blocked"
    unknown: str = ""

    def by_state(self) -> dict[str, str]:
        return {state: label for state, label in msgspec.structs.asdict(self).items() if label}


class FacilitatorSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the facilitator looks at the field."""

    active_hours: Annotated[float, Meta(gt=0, description="An issue is active for so long after it was touched.")] = 24
    stale_days: Annotated[float, Meta(gt=0, description="An issue is stale when it was left alone for so long.")] = 7
    labels: StateLabels = StateLabels()
    check_interval: Annotated[
        float, Meta(gt=0, description="Minutes between two looks of `genba facilitate --watch`.")
    ] = 30
    iterate_max: Annotated[int, Meta(ge=1, description="The most looks of one `genba facilitate --watch`.")] = 50
