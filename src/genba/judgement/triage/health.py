"""Whether the field is ready: four conditions, each true or false, with the issues that offend."""

from collections.abc import Mapping, Sequence

from genba.domain.facilitation import HealthCondition, IssueAssessment, IssueBlockerKind, IssueState, RecommendAction

_NAMES = ("states_clear", "next_clear", "blockers_visible", "startable")
_CAN_GO_ON = (IssueState.INCOMPLETE, IssueState.IN_PROGRESS, IssueState.REVIEW_PENDING)


def health_of(
    assessments: Mapping[int, IssueAssessment],
    recommendation: RecommendAction,
    unread: Sequence[str] = (),
    *,
    in_work: bool = False,
) -> tuple[HealthCondition, ...]:
    """The four conditions, always in the same order. None holds of a field of which something was never read.

    `in_work`: everything that can continue is in work.
    """
    if unread:
        detail = f"not known: {unread[0]}"
        return tuple(HealthCondition(name=name, holds=False, detail=detail) for name in _NAMES)
    all_of_them = assessments.values()
    unknown = tuple(each.issue for each in all_of_them if each.state is IssueState.UNKNOWN)
    hidden = tuple(each.issue for each in all_of_them if each.state is IssueState.BLOCKED and not _names_blocker(each))
    left = tuple(each.issue for each in all_of_them if each.state is not IssueState.DONE)
    clear = bool(recommendation.suggestions) or not left or in_work
    startable = not left or any(each.state in _CAN_GO_ON for each in all_of_them)
    return (
        _condition("states_clear", unknown, "the state is not known"),
        _condition("next_clear", () if clear else left, recommendation.reason),
        _condition("blockers_visible", hidden, "no blocker is named"),
        _condition("startable", () if startable else left, "nothing can be started"),
    )


def _names_blocker(assessment: IssueAssessment) -> bool:
    return any(blocker.detail and blocker.kind != IssueBlockerKind.LABEL for blocker in assessment.blockers)


def _condition(name: str, offenders: tuple[int, ...], detail: str) -> HealthCondition:
    return HealthCondition(
        name=name, holds=not offenders, offenders=tuple(sorted(offenders)), detail=detail if offenders else ""
    )
