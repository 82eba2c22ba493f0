"""The texts of the facilitator's comments, in each language of `workflow.language`."""

from collections.abc import Mapping

import msgspec

from genba.domain.facilitation import IssueState


class CommentTexts(msgspec.Struct, frozen=True, kw_only=True):
    """What a comment says, without what was seen."""

    state: str
    """With `state` and its `name`."""
    names: Mapping[IssueState, str]
    says: Mapping[IssueState, str]
    closed: str
    owners: str
    """With `owners`."""
    a_person: str
    conditions: str
    unchecked: str
    no_goal: str
    """With `number`: how a goal is set where none is."""
    following: str
    """With `command`."""


ENGLISH = CommentTexts(
    state="**State: {state}**",
    names={state: str(state) for state in IssueState},
    says={
        IssueState.IN_PROGRESS: "Work on this issue has begun and is not finished. Please go on with it.",
        IssueState.INCOMPLETE: "Nothing stands in the way of this issue: it can be started.",
        IssueState.BLOCKED: "This issue cannot go on before what stands in its way is cleared.",
        IssueState.REVIEW_PENDING: "The work on this issue is finished and waits for a review or a merge."
        " Please review or merge it.",
        IssueState.DONE: "The work on this issue is on the base branch. Please decide whether to close the issue.",
        IssueState.UNKNOWN: "The facts about this issue are missing or contradict each other."
        " Please say how it stands.",
    },
    closed="This issue is closed, and nothing is left to do.",
    owners="in the hands of {owners}",
    a_person="a person",
    conditions="Completion conditions:",
    unchecked="not checked",
    no_goal="No goal checks this work. To set one: `genba task edit {number} --goal tests_pass`",
    following="Next: `{command}`",
)
JAPANESE = CommentTexts(
    state="**状態: {name} ({state})**",
    names={
        IssueState.DONE: "完了",
        IssueState.REVIEW_PENDING: "レビュー待ち",
        IssueState.IN_PROGRESS: "作業中",
        IssueState.INCOMPLETE: "未着手",
        IssueState.BLOCKED: "ブロック",
        IssueState.UNKNOWN: "不明",
    },
    says={
        IssueState.IN_PROGRESS: "この Issue の作業は始まっていますが、まだ完了していません。作業の継続をお願いします。",
        IssueState.INCOMPLETE: "この Issue を妨げるものはありません。着手できます。",
        IssueState.BLOCKED: "この Issue は、妨げになっていることが解消されるまで進められません。",
        IssueState.REVIEW_PENDING: "この Issue の作業は終わり、レビューまたはマージを待っています。"
        "レビューまたはマージをお願いします。",
        IssueState.DONE: "この Issue の作業はベースブランチにあります。Issue を閉じるかどうかの判断をお願いします。",
        IssueState.UNKNOWN: "この Issue は、情報が不足しているか、互いに矛盾しています。"
        "現在の状況を書き込んでください。",
    },
    closed="この Issue は閉じられていて、残っている作業はありません。",
    owners="担当: {owners}",
    a_person="人",
    conditions="完了条件:",
    unchecked="未確認",
    no_goal="この作業を確認するゴールがありません。設定するには: `genba task edit {number} --goal tests_pass`",
    following="次のコマンド: `{command}`",
)
TEXTS: Mapping[str, CommentTexts] = {"en": ENGLISH, "ja": JAPANESE}
