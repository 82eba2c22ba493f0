"""REST: repositories, their labels and branches, commits, refs, checks and statuses."""

import base64
from typing import Any
from urllib.parse import unquote

from tests.standins.github import code_shapes, issue_rules, pull_rules, shapes
from tests.standins.github.asking import Answer, Ask, route
from tests.standins.github.bare import CommitFacts, GitFailed
from tests.standins.github.hub import Refused, forbidden, invalid, not_found
from tests.standins.github.state import Label, Protection

_REPO = "/repos/{owner}/{repo}"
_RANKS = ("none", "read", "triage", "write", "admin")


@route("GET", _REPO)
def _repository(ask: Ask) -> Answer:
    viewer = ask.viewer.user if ask.viewer else None
    return Answer(data=code_shapes.full_repository(ask.hub, ask.repository, viewer))


@route("GET", _REPO + "/collaborators/{login}/permission")
def _permission(ask: Ask) -> Answer:
    user = ask.hub.user(ask.holes["login"])
    name = _RANKS[ask.hub.rank(user, ask.repository)]
    role = shapes.user(ask.hub, user) | {"role_name": name}
    plain = {"triage": "read"}.get(name, name)
    return Answer(data={"permission": plain, "role_name": name, "user": role})


@route("GET", _REPO + "/collaborators/{login}")
def _collaborator(ask: Ask) -> Answer:
    user = ask.hub.user(ask.holes["login"])
    if ask.hub.association(user, ask.repository) == "NONE":
        raise not_found()
    return Answer(204)


# labels of the repository


def _label(ask: Ask) -> Label:
    found = ask.repository.labels.get(ask.holes["name"].casefold())
    if found is None:
        raise not_found()
    return found


@route("GET", _REPO + "/labels")
def _labels(ask: Ask) -> Answer:
    rows = sorted(ask.repository.labels.values(), key=lambda label: label.name)
    return ask.paged(rows, lambda label: shapes.label(ask.hub, ask.repository, label))


@route("POST", _REPO + "/labels")
def _create_label(ask: Ask) -> Answer:
    ask.need("write")
    name = ask.text("name", "Label")
    if name.casefold() in ask.repository.labels:
        raise invalid("Label", "name", "already_exists")
    color = ask.body.get("color") or "ededed"
    made = ask.hub.label(ask.repository, name, color=color, description=ask.body.get("description") or "")
    return Answer(201, shapes.label(ask.hub, ask.repository, made))


@route("GET", _REPO + "/labels/{name*}")
def _get_label(ask: Ask) -> Answer:
    return Answer(data=shapes.label(ask.hub, ask.repository, _label(ask)))


@route("DELETE", _REPO + "/labels/{name*}")
def _delete_label(ask: Ask) -> Answer:
    ask.need("write")
    issue_rules.delete_label(ask.hub, ask.repository, _label(ask))
    return Answer(204)


# branches


@route("GET", _REPO + "/branches")
def _branches(ask: Ask) -> Answer:
    place = ask.repository
    rows = [
        (name.removeprefix("refs/heads/"), sha) for name, sha in place.refs.items() if name.startswith("refs/heads/")
    ]

    def shape(row: tuple[str, str]) -> dict[str, Any]:
        url = f"{shapes.repository_url(ask.hub, place)}/commits/{row[1]}"
        return {"name": row[0], "commit": {"sha": row[1], "url": url}, "protected": row[0] in place.protection}

    return ask.paged(sorted(rows), shape)


@route("GET", _REPO + "/branches/{branch*}/protection")
def _protection(ask: Ask) -> Answer:
    ask.need("admin", "administration")
    rules = ask.repository.protection.get(ask.holes["branch"])
    if rules is None:
        raise not_found("Branch not protected")
    return Answer(data=_rules(ask, rules))


def _rules(ask: Ask, rules: Protection) -> dict[str, Any]:
    url = f"{shapes.repository_url(ask.hub, ask.repository)}/branches/{ask.holes['branch']}/protection"
    shape: dict[str, Any] = {"url": url, "enabled": True}
    if rules.checks:
        shape["required_status_checks"] = {
            "url": f"{url}/required_status_checks",
            "strict": False,
            "contexts": list(rules.checks),
            "contexts_url": f"{url}/required_status_checks/contexts",
            "checks": [{"context": name, "app_id": None} for name in rules.checks],
        }
    if rules.approvals:
        shape["required_pull_request_reviews"] = {
            "url": f"{url}/required_pull_request_reviews",
            "dismiss_stale_reviews": rules.dismiss_stale,
            "require_code_owner_reviews": False,
            "required_approving_review_count": rules.approvals,
        }
    return shape


@route("GET", _REPO + "/branches/{branch*}")
def _branch(ask: Ask) -> Answer:
    place, name = ask.repository, ask.holes["branch"]
    sha = place.refs.get(f"refs/heads/{name}")
    if sha is None:
        raise not_found("Branch not found")
    url = f"{shapes.repository_url(ask.hub, place)}/branches/{name}"
    rules = place.protection.get(name)
    return Answer(
        data={
            "name": name,
            "commit": code_shapes.commit(ask.hub, place, place.git.facts(sha)),
            "_links": {"self": url, "html": f"{ask.hub.web}/{place.full_name}/tree/{name}"},
            "protected": rules is not None,
            "protection": {
                "enabled": rules is not None,
                "required_status_checks": {
                    "enforcement_level": "non_admins" if rules and rules.checks else "off",
                    "contexts": list(rules.checks) if rules else [],
                    "checks": [{"context": one, "app_id": None} for one in rules.checks] if rules else [],
                },
            },
            "protection_url": f"{url}/protection",
        }
    )


# refs and commits


@route("GET", _REPO + "/git/ref/{ref*}")
def _ref(ask: Ask) -> Answer:
    name = f"refs/{ask.holes['ref']}"
    sha = ask.repository.refs.get(name)
    if sha is None:
        raise not_found()
    return Answer(data=code_shapes.ref(ask.hub, ask.repository, name, sha))


@route("GET", _REPO + "/git/matching-refs/{ref*}")
def _matching_refs(ask: Ask) -> Answer:
    start = f"refs/{ask.holes['ref']}"
    rows = sorted((name, sha) for name, sha in ask.repository.refs.items() if name.startswith(start))
    return ask.paged(rows, lambda row: code_shapes.ref(ask.hub, ask.repository, *row))


@route("POST", _REPO + "/git/refs")
def _create_ref(ask: Ask) -> Answer:
    ask.need("write", "contents")
    name, sha = ask.text("ref", "Reference"), ask.text("sha", "Reference")
    if name in ask.repository.refs:
        raise Refused(422, "Reference already exists")
    if not ask.repository.git.resolve(sha):
        raise Refused(422, "Object does not exist")
    ask.repository.git.set_ref(name, sha)
    ask.hub.pushed(ask.repository)
    return Answer(201, code_shapes.ref(ask.hub, ask.repository, name, sha))


@route("PATCH", _REPO + "/git/refs/{ref*}")
def _move_ref(ask: Ask) -> Answer:
    ask.need("write", "contents")
    name, sha = f"refs/{ask.holes['ref']}", ask.text("sha", "Reference")
    old = ask.repository.refs.get(name)
    if old is None:
        raise Refused(422, "Reference does not exist")
    if not ask.repository.git.resolve(sha):
        raise Refused(422, "Object does not exist")
    if not ask.body.get("force") and not ask.repository.git.is_ancestor(old, sha):
        raise Refused(422, "Update is not a fast forward")
    ask.repository.git.set_ref(name, sha, old)
    ask.hub.pushed(ask.repository)
    return Answer(data=code_shapes.ref(ask.hub, ask.repository, name, sha))


@route("DELETE", _REPO + "/git/refs/{ref*}")
def _delete_ref(ask: Ask) -> Answer:
    ask.need("write", "contents")
    name = f"refs/{ask.holes['ref']}"
    if name not in ask.repository.refs:
        raise Refused(422, "Reference does not exist")
    if name == f"refs/heads/{ask.repository.default_branch}":
        raise forbidden("Cannot delete the default branch")
    ask.repository.git.drop_ref(name)
    ask.hub.pushed(ask.repository)
    return Answer(204)


def _commit_of(ask: Ask, name: str) -> CommitFacts:
    sha = ask.repository.git.resolve(unquote(name))
    if not sha:
        raise Refused(422, f"No commit found for SHA: {name}")
    try:
        return ask.repository.git.facts(sha)
    except GitFailed:
        raise Refused(422, f"No commit found for SHA: {name}") from None


@route("GET", _REPO + "/git/commits/{sha}")
def _git_commit(ask: Ask) -> Answer:
    try:
        facts = ask.repository.git.facts(ask.holes["sha"])
    except GitFailed:
        raise not_found() from None
    return Answer(data=code_shapes.git_commit(ask.hub, ask.repository, facts))


@route("GET", _REPO + "/commits")
def _commits(ask: Ask) -> Answer:
    start = _commit_of(ask, ask.query.get("sha") or ask.repository.default_branch)
    rows = ask.repository.git.history(start.sha)
    return ask.paged(rows, lambda one: code_shapes.commit(ask.hub, ask.repository, one))


@route("GET", _REPO + "/commits/{ref*}/pulls")
def _pulls_of(ask: Ask) -> Answer:
    sha = _commit_of(ask, ask.holes["ref"]).sha
    git = ask.repository.git
    rows = [
        pull
        for pull in ask.repository.pulls
        if sha in (pull.head_sha, pull.merge_sha)
        or (pull.state == "open" and any(one.sha == sha for one in git.commits(pull.base_sha, pull.head_sha)))
    ]
    return ask.paged(rows, lambda pull: code_shapes.simple_pull(ask.hub, pull))


@route("GET", _REPO + "/commits/{ref*}/check-runs")
def _check_runs(ask: Ask) -> Answer:
    sha = _commit_of(ask, ask.holes["ref"]).sha
    every = ask.query.get("filter", "latest") == "all"
    rows = ask.repository.check_runs.get(sha, []) if every else pull_rules.latest_checks(ask.repository, sha)
    wanted = ask.query.get("check_name")
    kept = [run for run in rows if wanted in (None, run.name)]
    return ask.paged(kept, lambda run: code_shapes.check_run(ask.hub, ask.repository, run), wrap="check_runs")


@route("GET", _REPO + "/commits/{ref*}/status")
def _combined(ask: Ask) -> Answer:
    sha = _commit_of(ask, ask.holes["ref"]).sha
    place = ask.repository
    rows = pull_rules.latest_statuses(place, sha)
    states = {row.state for row in rows}
    state = "failure" if states & {"error", "failure"} else "success" if states == {"success"} else "pending"
    url = f"{shapes.repository_url(ask.hub, place)}/commits/{sha}"
    answer = ask.paged(rows, lambda row: code_shapes.status(ask.hub, place, row), wrap="statuses")
    answer.data |= {
        "state": state,
        "sha": sha,
        "repository": code_shapes.minimal_repository(ask.hub, place),
        "commit_url": url,
        "url": f"{url}/status",
    }
    return answer


@route("GET", _REPO + "/commits/{ref*}/statuses")
def _statuses(ask: Ask) -> Answer:
    rows = ask.repository.statuses.get(_commit_of(ask, ask.holes["ref"]).sha, [])
    return ask.paged(
        rows,
        lambda row: code_shapes.status(ask.hub, ask.repository, row) | {"creator": shapes.user(ask.hub, row.creator)},
    )


@route("POST", _REPO + "/statuses/{sha}")
def _set_status(ask: Ask) -> Answer:
    ask.need("write", "statuses")
    sha = _commit_of(ask, ask.holes["sha"]).sha
    made = pull_rules.set_status(
        ask.hub,
        ask.actor,
        ask.repository,
        sha,
        ask.text("state", "Status"),
        context=ask.body.get("context") or "default",
        description=ask.body.get("description") or "",
        target_url=ask.body.get("target_url") or "",
    )
    shape = code_shapes.status(ask.hub, ask.repository, made) | {"creator": shapes.user(ask.hub, made.creator)}
    return Answer(201, shape)


@route("POST", _REPO + "/check-runs")
def _create_check(ask: Ask) -> Answer:
    ask.need("write", "checks")
    output = ask.body.get("output") or {}
    made = pull_rules.check(
        ask.hub,
        ask.repository,
        _commit_of(ask, ask.text("head_sha", "CheckRun")).sha,
        ask.text("name", "CheckRun"),
        conclusion=ask.body.get("conclusion"),
        status=ask.body.get("status") or "",
        title=output.get("title") or "",
        summary=output.get("summary") or "",
        details_url=ask.body.get("details_url") or "",
    )
    return Answer(201, code_shapes.check_run(ask.hub, ask.repository, made))


@route("GET", _REPO + "/commits/{ref*}")
def _commit(ask: Ask) -> Answer:
    facts = _commit_of(ask, ask.holes["ref"])
    return Answer(data=code_shapes.commit(ask.hub, ask.repository, facts))


@route("GET", _REPO + "/compare/{basehead*}")
def _compare(ask: Ask) -> Answer:
    place, git = ask.repository, ask.repository.git
    base_name, _, head_name = unquote(ask.holes["basehead"]).partition("...")
    base, head = git.resolve(base_name), git.resolve(head_name)
    if not base or not head:
        raise not_found()
    ahead, behind = git.commits(base, head), git.commits(head, base)
    status = "diverged" if ahead and behind else "ahead" if ahead else "behind" if behind else "identical"
    root = f"{ask.hub.web}/{place.full_name}/compare/{base_name}...{head_name}"
    return Answer(
        data={
            "url": f"{shapes.repository_url(ask.hub, place)}/compare/{base_name}...{head_name}",
            "html_url": root,
            "permalink_url": root,
            "diff_url": root + ".diff",
            "patch_url": root + ".patch",
            "base_commit": code_shapes.commit(ask.hub, place, git.facts(base)),
            "merge_base_commit": code_shapes.commit(ask.hub, place, git.facts(git.merge_base(base, head) or base)),
            "status": status,
            "ahead_by": len(ahead),
            "behind_by": len(behind),
            "total_commits": len(ahead),
            "commits": [code_shapes.commit(ask.hub, place, one) for one in ahead],
            "files": [
                code_shapes.changed_file(ask.hub, place, head, one) | {"sha": head} for one in git.changed(base, head)
            ],
        }
    )


@route("GET", _REPO + "/contents/{path*}")
def _contents(ask: Ask) -> Answer:
    place, path = ask.repository, ask.holes["path"]
    ref = ask.query.get("ref") or place.default_branch
    sha = place.git.resolve(ref)
    text = place.git.show(sha, path) if sha else None
    if text is None:
        raise not_found()
    blob = place.git.run("rev-parse", f"{sha}:{path}").strip()
    url = f"{shapes.repository_url(ask.hub, place)}/contents/{path}?ref={ref}"
    page = f"{ask.hub.web}/{place.full_name}/blob/{ref}/{path}"
    return Answer(
        data={
            "type": "file",
            "encoding": "base64",
            "size": len(text.encode()),
            "name": path.rpartition("/")[2],
            "path": path,
            "content": base64.encodebytes(text.encode()).decode(),
            "sha": blob,
            "url": url,
            "git_url": f"{shapes.repository_url(ask.hub, place)}/git/blobs/{blob}",
            "html_url": page,
            "download_url": page,
            "_links": {"self": url, "git": url, "html": page},
        }
    )
