"""REST: pull requests, reviews, merging."""

from typing import Any

from tests.standins.github import code_shapes, issue_rules, pull_rules, shapes
from tests.standins.github.asking import Answer, Ask, route
from tests.standins.github.hub import Refused, invalid
from tests.standins.github.state import PullRequest

_PULLS = "/repos/{owner}/{repo}/pulls"
_ONE = _PULLS + "/{number}"
_EVENTS = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}


@route("GET", _PULLS)
def _list(ask: Ask) -> Answer:
    state, head, base = ask.query.get("state", "open"), ask.query.get("head", ""), ask.query.get("base", "")
    rows = [pull for pull in ask.repository.pulls if state in ("all", pull.state)]
    if ":" in head:
        rows = [pull for pull in rows if _place(pull).casefold() == head.casefold()]
    if base:
        rows = [pull for pull in rows if pull.base == base]
    order = "updated_at" if ask.query.get("sort") == "updated" else "number"
    down = ask.query.get("direction", "asc" if order == "updated_at" else "desc") == "desc"
    rows.sort(key=lambda pull: (getattr(pull, order), pull.number), reverse=down)
    return ask.paged(rows, lambda pull: code_shapes.simple_pull(ask.hub, pull))


def _place(pull: PullRequest) -> str:
    return f"{pull.head_repository.owner.login}:{pull.head}" if pull.head_repository else pull.head


@route("POST", _PULLS)
def _create(ask: Ask) -> Answer:
    ask.need("read", "pull_requests")
    if ":" not in ask.text("head", "PullRequest"):
        ask.need("write", "pull_requests")
    made = pull_rules.create(
        ask.hub,
        ask.actor,
        ask.repository,
        title=ask.text("title", "PullRequest"),
        head=ask.text("head", "PullRequest"),
        base=ask.text("base", "PullRequest"),
        body=ask.body.get("body") or "",
        draft=bool(ask.body.get("draft")),
    )
    made.maintainer_can_modify = bool(ask.body.get("maintainer_can_modify"))
    return Answer(201, code_shapes.pull(ask.hub, made), {"location": code_shapes.pull_url(ask.hub, made)})


@route("GET", _ONE)
def _get(ask: Ask) -> Answer:
    return Answer(data=code_shapes.pull(ask.hub, ask.pull))


@route("PATCH", _ONE)
def _patch(ask: Ask) -> Answer:
    pull = ask.pull
    ask.need("read" if pull.author is ask.actor else "write", "pull_requests")
    state = ask.body.get("state")
    if state not in (None, "open", "closed"):
        raise invalid("PullRequest", "state")
    base = ask.body.get("base") or ""
    pull_rules.edit(ask.hub, ask.actor, pull, title=ask.body.get("title"), body=ask.body.get("body"), base=base)
    if state == "closed":
        issue_rules.close(ask.hub, ask.actor, pull)
    elif state == "open":
        issue_rules.reopen(ask.hub, ask.actor, pull)
    return Answer(data=code_shapes.pull(ask.hub, pull))


@route("GET", _ONE + "/merge")
def _is_merged(ask: Ask) -> Answer:
    if not ask.pull.merged:
        raise Refused(404, "Not Found", kind="NOT_FOUND")
    return Answer(204)


@route("PUT", _ONE + "/merge")
def _merge(ask: Ask) -> Answer:
    pull = ask.pull
    ask.need("write", "contents")
    sha = pull_rules.merge(
        ask.hub,
        ask.actor,
        pull,
        method=ask.body.get("merge_method") or "merge",
        sha=ask.body.get("sha") or "",
        title=ask.body.get("commit_title") or "",
        message=ask.body.get("commit_message"),
    )
    return Answer(data={"sha": sha, "merged": True, "message": "Pull Request successfully merged"})


@route("GET", _ONE + "/commits")
def _commits(ask: Ask) -> Answer:
    pull = ask.pull
    pull_rules.fetch(pull)
    rows = pull.repository.git.commits(pull.base_sha, pull.head_sha)
    return ask.paged(rows, lambda one: code_shapes.commit(ask.hub, ask.repository, one))


@route("GET", _ONE + "/files")
def _files(ask: Ask) -> Answer:
    pull = ask.pull
    pull_rules.fetch(pull)
    rows = pull.repository.git.changed(pull.base_sha, pull.head_sha)
    return ask.paged(
        rows,
        lambda one: code_shapes.changed_file(ask.hub, ask.repository, pull.head_sha, one) | {"sha": pull.head_sha},
    )


@route("PUT", _ONE + "/update-branch")
def _update_branch(ask: Ask) -> Answer:
    pull = ask.pull
    ask.need("write", "contents")
    if ask.body.get("expected_head_sha", pull.head_sha) != pull.head_sha:
        raise Refused(422, "expected head sha didn’t match current head ref.")
    git = pull.repository.git
    merged = git.merge(pull.head_sha, pull.base_sha)
    if merged.conflicts:
        raise Refused(422, "merge conflict between base and head")
    text = f"Merge branch '{pull.base}' into {pull.head}\n"
    made = git.commit_tree(merged.tree, (pull.head_sha, pull.base_sha), text)
    git.set_ref(f"refs/heads/{pull.head}", made, pull.head_sha)
    ask.hub.pushed(pull.repository)
    return Answer(202, {"message": "Updating pull request branch.", "url": code_shapes.pull_url(ask.hub, pull)})


# reviewers


@route("GET", _ONE + "/requested_reviewers")
def _requested(ask: Ask) -> Answer:
    people = [shapes.user(ask.hub, user) for user in ask.pull.requested_reviewers]
    return Answer(data={"users": people, "teams": [shapes.team(ask.hub, team) for team in ask.pull.requested_teams]})


@route("POST", _ONE + "/requested_reviewers")
def _request(ask: Ask) -> Answer:
    pull = ask.pull
    ask.need("read" if pull.author is ask.actor else "triage", "pull_requests")
    pull_rules.request_reviews(ask.hub, ask.actor, pull, ask.texts("reviewers"), ask.texts("team_reviewers"))
    return Answer(201, code_shapes.simple_pull(ask.hub, pull))


@route("DELETE", _ONE + "/requested_reviewers")
def _withdraw(ask: Ask) -> Answer:
    pull = ask.pull
    ask.need("triage", "pull_requests")
    pull_rules.withdraw_reviews(ask.hub, ask.actor, pull, ask.texts("reviewers"))
    return Answer(data=code_shapes.simple_pull(ask.hub, pull))


# reviews


@route("GET", _ONE + "/reviews")
def _reviews(ask: Ask) -> Answer:
    mine = ask.viewer.user if ask.viewer else None
    rows = [made for made in ask.pull.reviews if made.state != "PENDING" or made.author is mine]
    return ask.paged(rows, lambda made: code_shapes.review(ask.hub, made))


@route("POST", _ONE + "/reviews")
def _review(ask: Ask) -> Answer:
    pull = ask.pull
    ask.need("read", "pull_requests")
    event = ask.body.get("event")
    if event is not None and event not in _EVENTS:
        raise invalid("PullRequestReview", "event")
    made = pull_rules.review(
        ask.hub,
        ask.actor,
        pull,
        _EVENTS[event] if event else "PENDING",
        ask.body.get("body") or "",
        comments=ask.body.get("comments") or (),
        commit=ask.body.get("commit_id") or "",
    )
    return Answer(data=code_shapes.review(ask.hub, made))


@route("GET", _ONE + "/reviews/{review_id}")
def _get_review(ask: Ask) -> Answer:
    return Answer(data=code_shapes.review(ask.hub, pull_rules.find_review(ask.pull, ask.hole("review_id"))))


@route("POST", _ONE + "/reviews/{review_id}/events")
def _submit(ask: Ask) -> Answer:
    made = pull_rules.find_review(ask.pull, ask.hole("review_id"))
    event = ask.text("event", "PullRequestReview")
    if event not in _EVENTS:
        raise invalid("PullRequestReview", "event")
    pull_rules.submit(ask.hub, made, _EVENTS[event], ask.body.get("body") or "")
    return Answer(data=code_shapes.review(ask.hub, made))


@route("PUT", _ONE + "/reviews/{review_id}/dismissals")
def _dismiss(ask: Ask) -> Answer:
    ask.need("write", "pull_requests")
    made = pull_rules.find_review(ask.pull, ask.hole("review_id"))
    pull_rules.dismiss(ask.hub, ask.actor, made, ask.text("message", "PullRequestReview"))
    return Answer(data=code_shapes.review(ask.hub, made))


@route("GET", _ONE + "/reviews/{review_id}/comments")
def _review_comments(ask: Ask) -> Answer:
    made = pull_rules.find_review(ask.pull, ask.hole("review_id"))
    return ask.paged(made.comments, lambda reply: code_shapes.review_comment(ask.hub, ask.pull, reply))


@route("GET", _ONE + "/comments")
def _comments(ask: Ask) -> Answer:
    return ask.paged(ask.pull.review_comments, lambda reply: code_shapes.review_comment(ask.hub, ask.pull, reply))


@route("POST", _ONE + "/comments")
def _comment(ask: Ask) -> Answer:
    pull = ask.pull
    ask.need("read", "pull_requests")
    remark: dict[str, Any] = ask.body
    output = pull_rules.remark(ask.hub, ask.actor, pull, remark)
    shape = code_shapes.review_comment(ask.hub, pull, output)
    return Answer(201, shape, {"location": shape["url"]})
