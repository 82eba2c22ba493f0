"""Issues that are done, however their work came to the base."""

from genba.domain.facilitation import IssueState
from genba.domain.tracker.remote import PullRequestState, ReviewVerdict
from tests.facilitator.corpus import history
from tests.facilitator.stories import Story, review

DONE = IssueState.DONE
MERGED, CLOSED, OPEN = PullRequestState.MERGED, PullRequestState.CLOSED, PullRequestState.OPEN
TRAILERS = "Add login\n\nIssue: 12\nAgent: iterator\nSession: iterator-12-1\n"


@history(DONE, "is on the base (branch)")
def merge_commit(story: Story) -> None:
    """Its branch was merged by hand, and it was closed."""
    story.git.commit("Work", on="12-login")
    story.git.commit("Merge branch '12-login'", merge="12-login")
    story.issue(state="closed", state_reason="completed")


@history(DONE, "pull request #31 was merged")
def squash_of_a_request(story: Story) -> None:
    """A pull request was squashed, its branch deleted, and the issue closed."""
    story.git.commit("Work", on="12-login")
    sha = story.git.squash("12-login", "Add login (#31)")
    story.git.delete("12-login")
    story.request(state=MERGED, merged_commit=sha)
    story.issue(state="closed", state_reason="completed")


@history(DONE, "is on the base (pull_request)")
def squash_tells_the_request(story: Story) -> None:
    """A pull request was squashed, and the copy of it does not know its commit."""
    story.git.commit("Work", on="12-login")
    story.git.squash("12-login", "Add login (#31)")
    story.request(state=MERGED)
    story.issue()


@history(DONE, "the work of 12-login is on the base")
def squash_without_a_name(story: Story) -> None:
    """Its branch was squashed by a commit that does not name it."""
    story.git.commit("One", on="12-login")
    story.git.commit("Two", on="12-login")
    story.git.squash("12-login", "Add login")
    story.issue()


@history(DONE, "the work of 12-login is on the base")
def squash_and_others_went_on(story: Story) -> None:
    """Its branch was squashed without a name, and others went on."""
    story.git.commit("One", on="12-login")
    story.git.squash("12-login", "Add login")
    story.git.commit("Something else")
    story.issue()


@history(DONE, "the work of 12-login is on the base")
def squash_changed_again(story: Story) -> None:
    """Its branch was squashed without a name, and its lines were changed again."""
    story.git.commit("Text", files={"page.txt": "one\ntwo\nthree\n"})
    story.git.commit("Work", on="12-login", files={"page.txt": "one\n2\nthree\n"})
    story.git.squash("12-login", "Say 2")
    story.git.commit("Say zwei", files={"page.txt": "one\nzwei\nthree\n"})
    story.issue()


@history(DONE, "the work of 12-login is on the base")
def squash_and_brought_up_to_date(story: Story) -> None:
    """Its branch was squashed without a name, and the base was merged into the branch later."""
    story.git.commit("Work", on="12-login")
    story.git.squash("12-login", "Add login")
    story.git.commit("Something else")
    story.git.commit("Bring main in", on="12-login", merge="main", files={})
    story.issue()


@history(DONE, "is on the base (branch)")
def merged_outside(story: Story) -> None:
    """Its verified branch was merged by hand, outside of Genba."""
    sha = story.git.commit(TRAILERS, on="genba/12-add-login")
    story.git.commit("Merge branch 'genba/12-add-login'", merge="genba/12-add-login")
    story.task(status="review")
    story.verdicts[12] = (sha, "done", "")


@history(DONE, "is on the base (trailer)")
def merged_forward(story: Story) -> None:
    """Its branch was merged fast-forward outside of Genba, and deleted."""
    story.git.commit(TRAILERS)
    story.task(status="review")


@history(DONE, "is on the base (trailer), and 1 more")
def trailers_and_still_open(story: Story) -> None:
    """Two commits on the base name it by trailers, and it is open."""
    story.git.commit(TRAILERS)
    story.git.commit(TRAILERS)
    story.issue()


@history(DONE, "is on the base (keyword)")
def closing_keyword(story: Story) -> None:
    """A commit on the base says that it fixes it, and it was closed by that."""
    story.git.commit("Add login\n\nFixes #12")
    story.issue(state="closed", state_reason="completed")


@history(DONE, "closed as not planned")
def not_planned(story: Story) -> None:
    """It was closed as not planned."""
    story.issue(state="closed", state_reason="not_planned")


@history(DONE, "closed as duplicate")
def duplicate_with_a_request(story: Story) -> None:
    """It was closed as a duplicate while a pull request is open."""
    story.git.commit("Work", on="12-login")
    story.request()
    story.issue(state="closed", state_reason="duplicate")


@history(DONE, "closed as not planned")
def given_up_after_a_revert(story: Story) -> None:
    """Its work was reverted, and it was closed as not planned."""
    sha = story.git.commit(TRAILERS)
    story.git.revert(sha)
    story.issue(state="closed", state_reason="not_planned")


@history(DONE, "closed as not planned")
def cancelled_task(story: Story) -> None:
    """Its task was cancelled."""
    story.task(status="cancelled")


@history(DONE, "no commit of it is on the base")
def closed_by_hand(story: Story) -> None:
    """It was closed by hand, and no commit names it."""
    story.issue(state="closed", state_reason="completed")


@history(DONE, "no commit of it is on the base")
def done_with_nothing_to_merge(story: Story) -> None:
    """Its task ended with nothing to merge."""
    story.task(status="done")


@history(DONE, "is on the base (trailer)")
def revert_of_a_revert(story: Story) -> None:
    """Its work was reverted, and the revert was reverted."""
    sha = story.git.commit(TRAILERS)
    back = story.git.revert(sha)
    story.git.revert(back, to=sha)
    story.issue(state="closed", state_reason="completed")


@history(DONE, "is on the base (branch)")
def revert_of_a_reverted_merge(story: Story) -> None:
    """The merge of its branch was reverted, and that revert was reverted."""
    story.git.commit("Work", on="12-login")
    before = story.git.tips["main"]
    merged = story.git.commit("Merge branch '12-login'", merge="12-login")
    back = story.git.revert(merged, to=before)
    story.git.revert(back, to=merged)
    story.issue(state="closed", state_reason="completed")


@history(DONE, "pull request #31 was merged")
def revert_of_a_reverted_request(story: Story) -> None:
    """Its pull request was reverted by another one, and that one by a third."""
    before = story.git.tips["main"]
    sha = story.git.commit("Add login (#31)")
    story.request(state=MERGED, merged_commit=sha)
    back = story.git.revert(sha, to=before, message='Revert "Add login" (#33)\n\nReverts acme/shop#31\n')
    again = 'Revert "Revert "Add login"" (#34)\n\nReverts acme/shop#33\n'
    story.git.revert(back, to=sha, message=again)
    story.issue(state="closed", state_reason="completed")


@history(DONE, "is on the base (trailer)")
def done_again(story: Story) -> None:
    """Its work was reverted, and done again by another commit."""
    sha = story.git.commit(TRAILERS)
    story.git.revert(sha)
    story.git.commit("Add login better\n\nIssue: 12\n")
    story.issue(state="closed", state_reason="completed")


@history(DONE, "pull request #32 was merged")
def several_requests(story: Story) -> None:
    """Two pull requests of it were merged."""
    one = story.git.commit("Half (#31)")
    story.request(state=MERGED, merged_commit=one, branch="12-half")
    two = story.git.commit("The other half (#32)")
    story.request(32, state=MERGED, merged_commit=two, branch="12-rest")
    story.issue()


@history(DONE, "pull request #32 was merged")
def one_closed_one_merged(story: Story) -> None:
    """One pull request was closed without a merge, another one merged."""
    story.request(31, state=CLOSED, branch="12-first")
    sha = story.git.commit("Add login (#32)")
    story.request(32, state=MERGED, merged_commit=sha)
    story.issue()


@history(DONE, "pull request #31 was merged")
def closed_with_a_rest(story: Story) -> None:
    """It was closed by a merged pull request while another one is open."""
    sha = story.git.commit("Add login (#31)")
    story.request(31, state=MERGED, merged_commit=sha)
    story.git.commit("Another way", on="12-other")
    story.request(32, branch="12-other")
    story.issue(state="closed", state_reason="completed")


@history(DONE, "pull request #31 was merged")
def merged_by_rebase(story: Story) -> None:
    """A pull request was merged by rebase, and its old branch is still there."""
    story.git.commit("Work", on="12-login", files={"login.py": "1\n"})
    sha = story.git.commit("Work", files={"login.py": "1\n"})
    story.request(state=MERGED, merged_commit=sha)
    story.issue()


@history(DONE, "is on the base (trailer)")
def landed_after_reopening(story: Story) -> None:
    """It was reopened, and work on it has landed since."""
    story.git.commit(TRAILERS)
    story.reopened[12] = story.git.time
    story.git.commit("Add what was missing\n\nIssue: 12\n")
    story.task(status="review")


@history(DONE, "is on the base")
def landed_after_reopening_on_the_tracker(story: Story) -> None:
    """It was reopened on its tracker, became a task then, and work on it has landed since."""
    story.git.commit(TRAILERS)
    story.issue(state_reason="reopened", reopened_at=story.git.time)
    story.task()
    story.git.commit(TRAILERS)


@history(DONE, "nothing landed since it was reopened")
def closed_again(story: Story) -> None:
    """It was reopened, and closed again without a commit."""
    story.git.commit(TRAILERS)
    story.reopened[12] = story.git.time
    story.task(status="done")


@history(DONE, "is on the base (trailer)")
def backported(story: Story) -> None:
    """Its work is on the base, and was picked to a release branch later."""
    story.git.commit(TRAILERS)
    story.git.commit(TRAILERS, on="release/1.2")
    story.issue()


@history(DONE, "all its parts are done")
def all_parts_closed(story: Story) -> None:
    """All its parts were closed, and it is only a list of them."""
    story.issue(sub_issues=(13, 14))
    story.issue(13, state="closed", state_reason="completed")
    story.issue(14, state="closed", state_reason="not_planned")


@history(DONE, "is on the base (trailer)")
def labelled_in_progress(story: Story) -> None:
    """Its work is on the base, and its label still says in-progress."""
    story.git.commit(TRAILERS)
    story.issue(labels=("in-progress",))


@history(DONE, "is on the base (trailer)")
def dead_after_the_merge(story: Story) -> None:
    """The session died after its work was merged."""
    story.git.commit(TRAILERS)
    story.task(status="review")
    story.session()


@history(DONE, "pull request #31 was merged")
def merged_though_not_approved(story: Story) -> None:
    """A pull request was merged although a reviewer requested changes."""
    sha = story.git.commit("Add login (#31)")
    story.request(state=MERGED, merged_commit=sha, reviews=(review(ReviewVerdict.CHANGES),))
    story.issue()


@history(DONE, "is on the base (trailer)")
def depends_and_done(story: Story) -> None:
    """Its work is on the base although what it waited for is open."""
    story.git.commit(TRAILERS)
    story.issue(blocked_by=(9,))
    story.issue(9)
