"""Blocked issues, and issues with an unknown status."""

from genba.domain.facilitation import IssueState
from genba.domain.tracker.remote import PullRequestState
from tests.facilitator.corpus import history
from tests.facilitator.stories import Story

BLOCKED, UNKNOWN = IssueState.BLOCKED, IssueState.UNKNOWN
TRAILERS = "Add login\n\nIssue: 12\nAgent: iterator\nSession: iterator-12-1\n"

# ── blocked ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@history(BLOCKED, "waits for #9")
def dependency(story: Story) -> None:
    """It waits for an issue that has not started."""
    story.issue(blocked_by=(9,))
    story.issue(9)


@history(BLOCKED, "12-login has 1 commit that is not on the base")
def dependency_while_in_progress(story: Story) -> None:
    """It waits for another issue while its branch has commits."""
    story.git.commit("Work", on="12-login")
    story.issue(blocked_by=(9,))
    story.issue(9)


@history(BLOCKED, "iterator works on it (iterator-12-1)")
def dependency_while_worked_on(story: Story) -> None:
    """It waits for another task while a session works on it."""
    story.task(status="in_progress", after=(9,))
    story.task(9)
    story.session(alive=True)


@history(BLOCKED, "pull request #31: a draft")
def dependency_and_a_draft(story: Story) -> None:
    """It waits for another issue while its pull request is a draft."""
    story.git.commit("Work", on="12-login")
    story.request(draft=True)
    story.issue(blocked_by=(9,))
    story.issue(9)


@history(BLOCKED, "waits for #9, which waits for #7")
def chain(story: Story) -> None:
    """It waits for an issue that waits for two others, one after the other."""
    story.issue(blocked_by=(9,))
    story.issue(9, blocked_by=(8,))
    story.issue(8, blocked_by=(7,))
    story.issue(7)


@history(BLOCKED, "waits for #9")
def one_of_two(story: Story) -> None:
    """It waits for two issues, and one of them is done."""
    story.issue(blocked_by=(8, 9))
    story.issue(8, state="closed", state_reason="completed")
    story.issue(9)


@history(BLOCKED, "waits for itself: #12 → #9 → #12")
def cycle(story: Story) -> None:
    """It waits for an issue that waits for it."""
    story.issue(blocked_by=(9,))
    story.issue(9, blocked_by=(12,))


@history(BLOCKED, "waits for itself: #12 → #12")
def waits_for_itself(story: Story) -> None:
    """It depends on itself."""
    story.issue(blocked_by=(12,))


@history(BLOCKED, "waits for #9, which waits for #7")
def waits_for_a_cycle(story: Story) -> None:
    """It waits for an issue of a circle that it is not in."""
    story.issue(blocked_by=(9,))
    story.issue(9, blocked_by=(7,))
    story.issue(7, blocked_by=(9,))


@history(BLOCKED, "waits for #99, of which nothing is known")
def unknown_dependency(story: Story) -> None:
    """It waits for an issue that is not in the field."""
    story.issue(blocked_by=(99,))


@history(BLOCKED, "waits for #9")
def dependency_in_review(story: Story) -> None:
    """What it waits for is approved, and not merged."""
    story.issue(blocked_by=(9,))
    story.issue(9)
    story.git.commit("Work", on="9-sessions")
    story.request(branch="9-sessions", closes=(9,), decision="approved")


@history(BLOCKED, "waits for #9")
def dependency_was_reverted(story: Story) -> None:
    """What it waits for was closed, and then reverted."""
    sha = story.git.commit("Add sessions\n\nIssue: 9\n")
    story.git.revert(sha)
    story.issue(blocked_by=(9,))
    story.issue(9, state="closed", state_reason="completed")


@history(BLOCKED, "waits for #9")
def dependency_was_reopened(story: Story) -> None:
    """What it waits for was done, and reopened."""
    story.git.commit("Add sessions\n\nIssue: 9\n")
    story.reopened[9] = story.git.time
    story.task(after=(9,))
    story.task(9)


@history(BLOCKED, 'asks: "which region?"')
def question(story: Story) -> None:
    """Its session asks something."""
    story.git.commit("Work", on="genba/12-add-login")
    story.task(status="blocked", blocker_kind="needs_input", blocker_reason="which region?")
    story.session(status="waiting", waits_for="answer")
    story.questions[12] = ("which region?", "question")


@history(BLOCKED, "three attempts failed")
def attempts(story: Story) -> None:
    """All attempts at it failed."""
    story.task(status="blocked", blocker_kind="failed", blocker_reason="three attempts failed")


@history(BLOCKED, "src/login.py is changed by two")
def conflict_of_branches(story: Story) -> None:
    """Its work is in conflict, and its agent could not resolve it."""
    story.git.commit("Work", on="genba/12-add-login")
    story.task(status="blocked", blocker_kind="conflict", blocker_reason="src/login.py is changed by two")


@history(BLOCKED, "waits for https://github.com/acme/other/issues/3")
def elsewhere(story: Story) -> None:
    """It waits for an issue of another repository."""
    story.issue(blocked_elsewhere=("https://github.com/acme/other/issues/3",))


@history(BLOCKED, "labelled blocked, and nothing says by what")
def label(story: Story) -> None:
    """It is labelled blocked."""
    story.issue(labels=("Blocked",))


@history(BLOCKED, "the licence is not bought")
def blocked_with_a_request(story: Story) -> None:
    """A person blocked it while its pull request is open."""
    story.git.commit("Work", on="12-login")
    story.request()
    story.issue()
    story.task(status="blocked", blocker_kind="resource", blocker_reason="the licence is not bought")


# ── unknown ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@history(UNKNOWN, "it is closed, and pull request #31 is open and not merged")
def closed_with_a_request(story: Story) -> None:
    """It was closed as completed while its pull request is open."""
    story.git.commit("Work", on="12-login")
    story.request()
    story.issue(state="closed", state_reason="completed")


@history(UNKNOWN, "it is closed, and its work")
def closed_and_reverted(story: Story) -> None:
    """It was closed, and its work was reverted."""
    sha = story.git.commit(TRAILERS)
    story.git.revert(sha)
    story.issue(state="closed", state_reason="completed")


@history(UNKNOWN, "it is closed, and its work")
def closed_and_reverted_merge(story: Story) -> None:
    """It was closed, and the merge of its pull request was reverted."""
    story.git.commit("Work", on="12-login")
    before = story.git.tips["main"]
    merged = story.git.commit("Merge pull request #31 from acme/12-login\n\nAdd login", merge="12-login")
    story.request(state=PullRequestState.MERGED, merged_commit=merged)
    story.git.revert(merged, to=before)
    story.git.delete("12-login")
    story.issue(state="closed", state_reason="completed")


@history(UNKNOWN, "2 sessions work on it at once: iterator-12-1, iterator-12-2")
def two_sessions(story: Story) -> None:
    """Two sessions work on it at once, on branches of their own."""
    story.task(status="in_progress")
    story.session(alive=True)
    story.session("iterator-12-2", alive=True, branch="genba/12-again")


@history(UNKNOWN, "it is closed, and iterator-12-1 works on it")
def closed_while_worked_on(story: Story) -> None:
    """It was closed while a session works on it."""
    story.issue(state="closed", state_reason="completed")
    story.task(status="in_progress")
    story.session(alive=True)


@history(UNKNOWN, "its task is done, and no work of it is on the base")
def done_and_reverted(story: Story) -> None:
    """Its task is done, its work was reverted, and its issue is open."""
    sha = story.git.commit(TRAILERS)
    story.git.revert(sha)
    story.issue()
    story.task(status="done")


@history(UNKNOWN, "its task was given up, and its issue is open")
def given_up_here(story: Story) -> None:
    """Its task was cancelled, and its issue is open on the tracker."""
    story.issue()
    story.task(status="cancelled")


@history(UNKNOWN, "not known: its comments, dependencies and pull requests were not read yet")
def not_read(story: Story) -> None:
    """Its details were never read from the tracker."""
    story.issue(detailed=False)
    story.task()


@history(UNKNOWN, "not known: the clone is shallow")
def shallow(story: Story) -> None:
    """The clone is shallow, and it is older than what the clone knows."""
    story.issue()
    story.horizon = "2026-02-01T00:00:00.000000Z"


@history(UNKNOWN, "it was reopened, and nothing says whether that was before")
def reopened_some_time(story: Story) -> None:
    """Work on it has landed, and it was reopened at an unknown time."""
    story.git.commit(TRAILERS)
    story.issue(state_reason="reopened")
