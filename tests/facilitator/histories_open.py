"""Issues that are open, in work, and in review."""

from genba.domain.facilitation import IssueState
from genba.domain.tracker.remote import PullRequestState, ReviewVerdict
from tests.facilitator.corpus import history
from tests.facilitator.stories import Story, check, review

INCOMPLETE, IN_PROGRESS, REVIEW_PENDING = IssueState.INCOMPLETE, IssueState.IN_PROGRESS, IssueState.REVIEW_PENDING
MERGED, CLOSED = PullRequestState.MERGED, PullRequestState.CLOSED
TRAILERS = "Add login\n\nIssue: 12\nAgent: iterator\nSession: iterator-12-1\n"
NOTHING = "no commit, no branch, no pull request, no session"

# ── open ─────────────────────────────────────────────────────────────────────────────────────────────────


@history(INCOMPLETE, NOTHING)
def new_issue(story: Story) -> None:
    """It was opened on the tracker."""
    story.issue()


@history(INCOMPLETE, NOTHING)
def new_task(story: Story) -> None:
    """It was added as a task."""
    story.task()


@history(INCOMPLETE, "only mentions it")
def mention(story: Story) -> None:
    """A commit on the base only mentions it."""
    story.git.commit("Prepare for #12")
    story.issue()


@history(INCOMPLETE, NOTHING)
def issue_of_others(story: Story) -> None:
    """Commits name an issue of another repository, and a word that looks like a trailer."""
    story.git.commit("See other/shop#12")
    story.git.commit("Issue: 12 was hard to think about")
    story.issue()


@history(INCOMPLETE, NOTHING)
def only_a_label(story: Story) -> None:
    """Its label says in-progress, and nothing else does."""
    story.issue(labels=("in-progress",))


@history(INCOMPLETE, NOTHING)
def only_a_phase_label(story: Story) -> None:
    """Its labels tell a phase and a review, and nothing else does."""
    story.issue(labels=("phase:implement", "needs review", "done"))


@history(INCOMPLETE, NOTHING)
def empty_branch(story: Story) -> None:
    """A branch of it was made, and has no commit."""
    story.git.branch("12-login")
    story.issue()


@history(INCOMPLETE, NOTHING)
def branch_of_a_release(story: Story) -> None:
    """A release branch has its number."""
    story.git.commit("Release", on="release/12")
    story.git.commit("Update", on="dependabot/npm/x-12")
    story.issue()


@history(INCOMPLETE, "pull request #31 was closed without a merge")
def closed_request(story: Story) -> None:
    """Its pull request was closed without a merge, and the branch deleted."""
    story.request(state=CLOSED)
    story.issue()


@history(INCOMPLETE, "1 attempt, the last by iterator ended failed: tests are red")
def failed_attempt(story: Story) -> None:
    """An agent tried, and left nothing."""
    story.task()
    story.session(status="ended", outcome="failed", reason="tests are red")


@history(INCOMPLETE, "2 attempts")
def failed_twice(story: Story) -> None:
    """Two agents tried, and their branches were deleted."""
    story.git.commit("Try", on="genba/12-add-login")
    story.git.delete("genba/12-add-login")
    story.task()
    story.session(status="ended", outcome="failed")
    story.session("iterator-12-2", status="ended", outcome="cancelled")


@history(INCOMPLETE, "was reverted by")
def reverted(story: Story) -> None:
    """Its work was reverted, and it is open."""
    sha = story.git.commit(TRAILERS)
    story.git.revert(sha)
    story.issue()


@history(INCOMPLETE, "was reverted by")
def reverted_merge(story: Story) -> None:
    """The merge of its branch was reverted, and the branch deleted."""
    story.git.commit("Work", on="12-login")
    before = story.git.tips["main"]
    merged = story.git.commit("Merge branch '12-login'", merge="12-login")
    story.git.revert(merged, to=before)
    story.git.delete("12-login")
    story.issue()


@history(INCOMPLETE, "was reverted by")
def reverted_merge_of_commits(story: Story) -> None:
    """The merge of commits that name it by trailers was reverted."""
    story.git.commit(TRAILERS, on="topic")
    before = story.git.tips["main"]
    merged = story.git.commit("Merge branch 'topic'", merge="topic")
    story.git.revert(merged, to=before)
    story.git.delete("topic")
    story.issue()


@history(INCOMPLETE, "was reverted by")
def reverted_request(story: Story) -> None:
    """Its pull request was reverted by another one."""
    before = story.git.tips["main"]
    sha = story.git.commit("Add login (#31)")
    story.request(state=MERGED, merged_commit=sha)
    story.git.revert(sha, to=before, message='Revert "Add login" (#33)\n\nReverts acme/shop#31\n')
    story.issue()


@history(INCOMPLETE, "was reverted by")
def reverted_request_of_commits(story: Story) -> None:
    """Its merged pull request had commits with trailers, and was reverted by another one."""
    before = story.git.tips["main"]
    story.git.commit(TRAILERS, on="12-login")
    merged = story.git.commit("Merge pull request #31 from acme/12-login\n\nAdd login", merge="12-login")
    story.request(state=MERGED, merged_commit=merged)
    story.git.delete("12-login")
    story.git.revert(merged, to=before, message='Revert "Add login" (#33)\n\nReverts acme/shop#31\n')
    story.issue()


@history(INCOMPLETE, "was reverted by")
def reverted_three_times(story: Story) -> None:
    """Its work was reverted, the revert was reverted, and that one too."""
    before = story.git.tips["main"]
    sha = story.git.commit(TRAILERS)
    one = story.git.revert(sha, to=before)
    two = story.git.revert(one, to=sha)
    story.git.revert(two, to=before)
    story.issue()


@history(INCOMPLETE, "reopened 2026-01-05: nothing was done since")
def reopened(story: Story) -> None:
    """It was reopened after its work was merged, and nothing was done since."""
    story.git.commit(TRAILERS)
    story.reopened[12] = story.git.time
    story.task()


@history(INCOMPLETE, "reopened 2026-01-05: nothing was done since")
def reopened_after_a_request(story: Story) -> None:
    """It was reopened after its pull request was merged."""
    sha = story.git.commit("Add login (#31)")
    story.request(state=MERGED, merged_commit=sha)
    story.git.hours += 1
    story.reopened[12] = story.git.time
    story.issue()
    story.task()


@history(INCOMPLETE, "reopened 2026-01-05: nothing was done since")
def reopened_on_the_tracker(story: Story) -> None:
    """It was reopened on its tracker after its work was merged, and it is no task."""
    story.git.commit(TRAILERS)
    story.git.hours += 1
    story.issue(state_reason="reopened", reopened_at=story.git.time)


@history(INCOMPLETE, "2 parts, and none is begun")
def parts_not_begun(story: Story) -> None:
    """It has two subtasks, and none has started."""
    story.issue(sub_issues=(13, 14))
    story.issue(13, parent=12)
    story.issue(14, parent=12)


@history(INCOMPLETE, NOTHING)
def dependency_has_landed(story: Story) -> None:
    """What it waits for is on the base, though its issue is open."""
    story.git.commit("Add sessions\n\nIssue: 9\n")
    story.issue(blocked_by=(9,))
    story.issue(9)


@history(INCOMPLETE, NOTHING)
def dependency_was_dropped(story: Story) -> None:
    """What it waits for was closed as not planned."""
    story.issue(blocked_by=(9,))
    story.issue(9, state="closed", state_reason="not_planned")


# ── in work ─────────────────────────────────────────────────────────────────────────────────────────────


@history(IN_PROGRESS, "12-login has 2 commits that are not on the base")
def branch(story: Story) -> None:
    """A branch of it has commits."""
    story.git.commit("One", on="12-login")
    story.git.commit("Two", on="12-login")
    story.issue()


@history(IN_PROGRESS, "12-login has 1 commit that is not on the base")
def empty_commit(story: Story) -> None:
    """A branch of it has one commit, and that one is empty."""
    story.git.commit("Begin", on="12-login", files={})
    story.issue()


@history(IN_PROGRESS, "12-login has 2 commits that are not on the base")
def taken_back_on_its_branch(story: Story) -> None:
    """A branch of it took back what it had done."""
    before = story.git.tips["main"]
    sha = story.git.commit("Try", on="12-login")
    story.git.revert(sha, to=before, on="12-login")
    story.issue()


@history(IN_PROGRESS, "fix/12-login has 1 commit that is not on the base")
def remote_branch(story: Story) -> None:
    """A branch of it is on a remote only."""
    story.git.commit("One", on="fix/12-login", ref="refs/remotes/origin/")
    story.issue()


@history(IN_PROGRESS, "is not on the base (trailer)")
def commit_elsewhere(story: Story) -> None:
    """A commit on a branch of another name is its work by a trailer."""
    story.git.commit(TRAILERS, on="experiment")
    story.issue()


@history(IN_PROGRESS, "is not on the base (trailer)")
def only_on_a_release(story: Story) -> None:
    """Its work is on a release branch, and not on the base."""
    story.git.commit(TRAILERS, on="release/1.2")
    story.issue()


@history(IN_PROGRESS, "iterator works on it (iterator-12-1)")
def session_at_work(story: Story) -> None:
    """A session works on it."""
    story.task(status="in_progress")
    story.session(alive=True)


@history(IN_PROGRESS, "iterator-12-1 waits for resume")
def suspended(story: Story) -> None:
    """Its session is suspended."""
    story.git.commit("Work", on="genba/12-add-login")
    story.task(status="in_progress")
    story.session(status="waiting", waits_for="resume")


@history(IN_PROGRESS, "iterator-12-1 was at work, and its process is gone")
def dead_session(story: Story) -> None:
    """The process of its session died."""
    story.task(status="in_progress")
    story.session()


@history(IN_PROGRESS, "its task is in progress")
def worker_without_a_session(story: Story) -> None:
    """A worker took its task over MCP, and has no session here."""
    story.task(status="in_progress")


@history(IN_PROGRESS, "to be changed: tests_pass failed")
def rejected(story: Story) -> None:
    """Its work was verified and rejected."""
    sha = story.git.commit("Work", on="genba/12-add-login")
    story.task(status="in_progress")
    story.session(status="waiting", waits_for="merge")
    story.verdicts[12] = (sha, "rejected", "tests_pass failed")


@history(IN_PROGRESS, "pull request #31: a draft")
def draft(story: Story) -> None:
    """Its pull request is a draft."""
    story.git.commit("Work", on="12-login")
    story.request(draft=True)
    story.issue()


@history(IN_PROGRESS, "pull request #31: changes requested by kim")
def changes_requested(story: Story) -> None:
    """A reviewer of its pull request wants changes."""
    sha = story.git.commit("Work", on="12-login")
    story.request(decision="changes_requested", reviews=(review(ReviewVerdict.CHANGES, commit=sha),))
    story.issue()


@history(IN_PROGRESS, "pull request #31: changes requested by lee")
def one_of_two_wants_changes(story: Story) -> None:
    """One reviewer approved, another one wants changes."""
    story.git.commit("Work", on="12-login")
    story.request(reviews=(review(ReviewVerdict.APPROVED), review(ReviewVerdict.CHANGES, "lee")))
    story.issue()


@history(IN_PROGRESS, "pull request #31: check tests failed")
def failed_check(story: Story) -> None:
    """A check of its pull request failed."""
    story.git.commit("Work", on="12-login")
    story.request(decision="approved", checks=(check("lint", "passed"), check("tests", "failed")))
    story.issue()


@history(IN_PROGRESS, "pull request #31: in conflict with main")
def conflict(story: Story) -> None:
    """Its pull request is approved, and in conflict with the base."""
    story.git.commit("Work", on="12-login")
    story.request(decision="approved", mergeable="conflicting")
    story.issue()


@history(IN_PROGRESS, "pull request #32: a draft")
def one_merged_one_draft(story: Story) -> None:
    """One pull request was merged, and the next one is a draft."""
    sha = story.git.commit("Half (#31)")
    story.request(state=MERGED, merged_commit=sha, branch="12-half")
    story.git.commit("Rest", on="12-rest")
    story.request(32, draft=True, branch="12-rest")
    story.issue()


@history(IN_PROGRESS, "pull request #32: changes requested by kim")
def one_merged_one_sent_back(story: Story) -> None:
    """One pull request was merged, and of the next one changes are wanted."""
    sha = story.git.commit("Half (#31)")
    story.request(state=MERGED, merged_commit=sha, branch="12-half")
    story.request(32, branch="12-rest", reviews=(review(ReviewVerdict.CHANGES),))
    story.issue()


@history(IN_PROGRESS, "pull request #31 was merged into epic, and not into main")
def merged_into_another_branch(story: Story) -> None:
    """Its pull request was merged into a branch that is not the base."""
    story.git.commit("Epic", on="epic")
    sha = story.git.commit("Add login (#31)", on="epic")
    story.request(state=MERGED, merged_commit=sha, target="epic")
    story.issue()


@history(IN_PROGRESS, "12-login has 1 commit that is not on the base")
def goes_on_after_a_merge(story: Story) -> None:
    """Its branch was merged, and went on."""
    story.git.commit("One", on="12-login")
    story.git.commit("Merge branch '12-login'", merge="12-login")
    story.git.commit("Two", on="12-login")
    story.issue()


@history(IN_PROGRESS, "12-login has 2 commits that are not on the base")
def goes_on_after_a_squash(story: Story) -> None:
    """Its branch was squashed without a name, and went on."""
    story.git.commit("One", on="12-login")
    story.git.squash("12-login", "Add login")
    story.git.commit("Two", on="12-login")
    story.issue()


@history(IN_PROGRESS, "12-login has 1 commit that is not on the base")
def squash_without_a_name_reverted(story: Story) -> None:
    """Its branch was squashed without a name, and that commit was reverted."""
    before = story.git.tips["main"]
    story.git.commit("Work", on="12-login")
    sha = story.git.squash("12-login", "Add login")
    story.git.revert(sha, to=before)
    story.issue()


@history(IN_PROGRESS, "12-login has 1 commit that is not on the base")
def squash_without_a_name_undone(story: Story) -> None:
    """Its branch was squashed without a name, and another commit undid it without a mention."""
    before = story.git.tips["main"]
    story.git.commit("Work", on="12-login")
    story.git.squash("12-login", "Add login")
    story.git.revert("", to=before, message="Back to how it was")
    story.issue()


@history(IN_PROGRESS, "12-login has 1 commit that is not on the base")
def squash_reverted_and_changed(story: Story) -> None:
    """Its branch was squashed without a name, reverted, and the same lines were changed otherwise."""
    before = story.git.commit("Text", files={"page.txt": "one\ntwo\nthree\n"})
    story.git.commit("Work", on="12-login", files={"page.txt": "one\n2\nthree\n"})
    sha = story.git.squash("12-login", "Say 2")
    story.git.revert(sha, to=before)
    story.git.commit("Say zwei", files={"page.txt": "one\nzwei\nthree\n"})
    story.issue()


@history(IN_PROGRESS, "12-again has 1 commit that is not on the base")
def begun_after_reopening(story: Story) -> None:
    """It was reopened, and a new branch was begun."""
    story.git.commit(TRAILERS)
    story.reopened[12] = story.git.time
    story.git.commit("Again", on="12-again")
    story.task()


@history(IN_PROGRESS, "iterator works on it (iterator-12-2)")
def landed_and_worked_on(story: Story) -> None:
    """Work on it has landed, and a session goes on with it."""
    story.git.commit("Half\n\nIssue: 12\n")
    story.task(status="in_progress")
    story.session("iterator-12-2", alive=True)


@history(IN_PROGRESS, "a phase of it has landed in")
def phase(story: Story) -> None:
    """The first phase of it has landed, and its task is still to be worked on."""
    story.git.commit(TRAILERS)
    story.task()
    story.session(status="ended", outcome="completed")


@history(IN_PROGRESS, "its parts are in work; left: #14")
def parts(story: Story) -> None:
    """One of its parts is done, another one is not begun."""
    story.issue(sub_issues=(13, 14))
    story.issue(13, state="closed", state_reason="completed")
    story.issue(14)


@history(IN_PROGRESS, "its parts are in work; left: #13, #14")
def part_in_review(story: Story) -> None:
    """One of its parts is in review."""
    story.issue(sub_issues=(13, 14))
    story.issue(13)
    story.issue(14)
    story.git.commit("Work", on="13-form")
    story.request(branch="13-form", closes=(13,))


@history(IN_PROGRESS, "all its parts are done, and are still to be brought together")
def to_be_brought_together(story: Story) -> None:
    """All parts of its task are done, and are to be merged as one."""
    story.task(status="open")
    story.task(13, status="done", parent=12)
    story.task(14, status="done", parent=12)


# ── it waits for a review ────────────────────────────────────────────────────────────────────────────────────────────


@history(REVIEW_PENDING, "pull request #31: waits for a review")
def request(story: Story) -> None:
    """Its pull request waits for a review."""
    story.git.commit("Work", on="12-login")
    story.request(decision="review_required")
    story.issue()


@history(REVIEW_PENDING, "pull request #31: approved")
def approved(story: Story) -> None:
    """Its pull request is approved, and not merged."""
    story.git.commit("Work", on="12-login")
    story.request(decision="approved", reviews=(review(ReviewVerdict.APPROVED),))
    story.issue()


@history(REVIEW_PENDING, "pull request #31: open, its checks are running")
def running_checks(story: Story) -> None:
    """The checks of its pull request are running."""
    story.git.commit("Work", on="12-login")
    story.request(checks=(check("tests", "pending"),))
    story.issue()


@history(REVIEW_PENDING, "pull request #31: open")
def from_a_fork(story: Story) -> None:
    """Its pull request comes from a fork, and has no branch here."""
    story.request(branch="", commit="a" * 40)
    story.issue()


@history(REVIEW_PENDING, "pull request #31: open")
def commented(story: Story) -> None:
    """A reviewer of its pull request only commented, another review was dismissed."""
    story.git.commit("Work", on="12-login")
    story.request(reviews=(review(ReviewVerdict.COMMENTED), review(ReviewVerdict.DISMISSED, "lee")))
    story.issue()


@history(REVIEW_PENDING, "pull request #31: open")
def changed_since_the_review(story: Story) -> None:
    """Changes were wanted of its pull request, and it was changed since."""
    old = story.git.commit("Work", on="12-login")
    story.git.commit("Do what kim wants", on="12-login")
    story.request(decision="changes_requested", reviews=(review(ReviewVerdict.CHANGES, commit=old),))
    story.issue()


@history(REVIEW_PENDING, "pull request #32: open")
def one_merged_one_open(story: Story) -> None:
    """One pull request was merged, and the next one is open."""
    sha = story.git.commit("Half (#31)")
    story.request(state=MERGED, merged_commit=sha, branch="12-half")
    story.request(32, branch="12-rest")
    story.issue()


@history(REVIEW_PENDING, "pull request #32: approved")
def one_closed_one_open(story: Story) -> None:
    """One pull request was closed, and the next one is approved."""
    story.request(state=CLOSED, branch="12-first")
    story.request(32, branch="12-second", decision="approved")
    story.issue()


@history(REVIEW_PENDING, "pull request #32: open")
def one_draft_one_open(story: Story) -> None:
    """One pull request is a draft, and another one is open."""
    story.request(draft=True, branch="12-first")
    story.request(32, branch="12-second")
    story.issue()


@history(REVIEW_PENDING, "is verified")
def verified(story: Story) -> None:
    """Its work is verified, and waits to be merged."""
    sha = story.git.commit(TRAILERS, on="genba/12-add-login")
    story.task(status="review")
    story.session(status="waiting", waits_for="merge")
    story.verdicts[12] = (sha, "done", "")


@history(REVIEW_PENDING, "waits for a review")
def verified_and_to_be_approved(story: Story) -> None:
    """Its work is verified, and needs an approval."""
    sha = story.git.commit(TRAILERS, on="genba/12-add-login")
    story.task(status="review", requires_review=True)
    story.verdicts[12] = (sha, "done", "")


@history(REVIEW_PENDING, "is verified")
def reviewer_at_work(story: Story) -> None:
    """A reviewer reads its verified work right now."""
    sha = story.git.commit(TRAILERS, on="genba/12-add-login")
    story.task(status="review", requires_review=True)
    story.session("reviewer-12-1", agent="reviewer", alive=True)
    story.verdicts[12] = (sha, "done", "")


@history(REVIEW_PENDING, "pull request #31: open")
def request_that_waits_for_another(story: Story) -> None:
    """Its pull request is open, though what it waits for is not done."""
    story.git.commit("Work", on="12-login")
    story.request()
    story.issue(blocked_by=(9,))
    story.issue(9)


@history(REVIEW_PENDING, "is verified")
def second_work_in_review(story: Story) -> None:
    """Work on it has landed, and newer verified work waits."""
    story.git.commit("Half\n\nIssue: 12\n")
    sha = story.git.commit(TRAILERS, on="genba/12-add-login")
    story.task(status="review")
    story.verdicts[12] = (sha, "done", "")
