"""What people do on GitHub: they get keys, open and close issues, push, review, merge, move cards."""

from collections.abc import Iterable, Sequence
from typing import Any

from tests.standins.github import access, issue_rules, project_rules, pull_rules, push_rules
from tests.standins.github.hub import Hub
from tests.standins.github.state import (
    App,
    Installation,
    Issue,
    Project,
    Protection,
    PullRequest,
    Repository,
    Token,
    User,
)

_SCOPES = ("repo", "read:org", "project")


class People:
    def __init__(self, state: Hub) -> None:
        self.state = state

    # people and their keys

    def add_user(self, login: str, *, name: str = "", email: str = "") -> User:
        with self.state.lock:
            return self.state.add_user(login, name=name, email=email)

    def add_organization(self, login: str, members: Iterable[str] = (), admins: Iterable[str] = ()) -> User:
        with self.state.lock:
            made = self.state.add_user(login, kind="Organization")
            made.members |= {self.state.add_user(one).login.casefold(): "member" for one in members}
            made.members |= {self.state.add_user(one).login.casefold(): "admin" for one in admins}
            return made

    def add_token(
        self,
        value: str,
        login: str,
        *,
        scopes: Sequence[str] = _SCOPES,
        expires_in: float | None = None,
        limit: int = 5000,
    ) -> Token:
        with self.state.lock:
            user = self.state.add_user(login)
            expires = "" if expires_in is None else self.state.moment(self.state.seconds() + expires_in)
            token = Token(value=value, user=user, scopes=frozenset(scopes), expires_at=expires, limit=limit)
            self.state.tokens[value] = token
            return token

    def expire(self, token: str) -> None:
        """From now on a token is good for nothing."""
        with self.state.lock:
            self.state.tokens[token].revoked = True

    def expire_all(self) -> None:
        with self.state.lock:
            for token in self.state.tokens.values():
                token.revoked = True

    def limit_changes(self, per_minute: int = 80, per_hour: int = 500) -> None:
        """From now on too many changes in a minute, or in an hour, meet the secondary limit, as on GitHub."""
        with self.state.lock:
            self.state.changes_allowed = (per_minute, per_hour)

    def spend(self, token: str, *, rest: int = 0, graphql: int = 0) -> None:
        """As if this token had made so many requests, or spent so many points, in this hour."""
        with self.state.lock:
            one = self.state.tokens[token]
            access.new_window(self.state, one)
            one.used += rest
            one.graphql_used += graphql

    def add_app(
        self,
        slug: str,
        public_key: str,
        account: str,
        *,
        app_id: int = 12345,
        installation_id: int = 100,
        permissions: dict[str, str] | None = None,
    ) -> Installation:
        """An app and its installation. `public_key` is a PEM."""
        with self.state.lock:
            bot = self.state.add_user(f"{slug}[bot]", kind="Bot")
            app = App(id=app_id, slug=slug, bot=bot, public_key=public_key, client_id=f"Iv1.{slug}")
            self.state.apps[app_id] = app
            names = ("issues", "pull_requests", "contents", "checks", "statuses", "organization_projects")
            installation = Installation(
                id=installation_id,
                app=app,
                account=self.state.user(account),
                permissions=permissions or {"metadata": "read"} | dict.fromkeys(names, "write"),
                created_at=self.state.now(),
            )
            self.state.installations[installation_id] = installation
            return installation

    # repositories

    def add_repository(
        self,
        full_name: str,
        *,
        private: bool = False,
        collaborators: dict[str, str] | None = None,
        files: dict[str, str | None] | None = None,
    ) -> Repository:
        with self.state.lock:
            made = self.state.add_repository(full_name, private=private)
            if collaborators is None:
                logins = {token.user.login for token in self.state.tokens.values()} - {made.owner.login}
                collaborators = dict.fromkeys(logins, "write")
            for login, rank in collaborators.items():
                made.collaborators[self.state.add_user(login).login.casefold()] = rank
            if files:
                made.git.commit("main", files, "Add the project")
                made.refs = made.git.refs()
            return made

    def repository(self, full_name: str) -> Repository:
        with self.state.lock:
            return self.state.repository(full_name)

    def rename_repository(self, full_name: str, name: str) -> None:
        """The old name leads to the new one: 301."""
        with self.state.lock:
            found = self.state.repositories.pop(full_name.casefold())
            found.name = name
            self.state.repositories[found.full_name.casefold()] = found
            self.state.moved[full_name.casefold()] = found.full_name

    def protect(self, repository: str, branch: str = "main", *, approvals: int = 0, checks: Sequence[str] = ()) -> None:
        """From now on a branch takes only what was approved and checked; only admins push to it."""
        with self.state.lock:
            found = self.state.repository(repository)
            found.protection[branch] = Protection(approvals=approvals, checks=tuple(checks))
            hook = found.git.path / "hooks" / "update"
            hook.parent.mkdir(exist_ok=True)
            hook.write_text(
                '#!/bin/sh\ncase " $GITHUB_PROTECTED " in *" $1 "*)\n'
                '  echo "error: GH006: Protected branch update failed for $1." >&2; exit 1;;\nesac\n'
            )
            hook.chmod(0o755)

    def commit(
        self,
        repository: str,
        branch: str,
        files: dict[str, str | None],
        message: str = "Change",
        *,
        start: str = "main",
    ) -> str:
        with self.state.lock:
            found = self.state.repository(repository)
            sha = found.git.commit(branch, files, message, start=start)
            push_rules.look(self.state, found)
            return sha

    def delete_branch(self, repository: str, branch: str) -> None:
        with self.state.lock:
            found = self.state.repository(repository)
            found.git.drop_ref(f"refs/heads/{branch}")
            push_rules.look(self.state, found)

    # issues

    def add_issue(
        self,
        repository: str,
        *,
        title: str,
        body: str = "",
        labels: Iterable[str] = (),
        author: str = "octocat",
        assignees: Iterable[str] = (),
        type: str = "",  # noqa: A002  (GitHub's word)
    ) -> int:
        with self.state.lock:
            found = self.state.repository(repository)
            who = self.state.add_user(author)
            made = issue_rules.create(
                self.state, who, found, title, body, labels=labels, assignees=assignees, type_name=type
            )
            return made.number

    def add_issues(
        self, repository: str, count: int, *, labels: Iterable[str] = (), author: str = "octocat", spread: float = 1.0
    ) -> list[int]:
        """Many at once, each `spread` seconds after the one before, the last one now."""
        with self.state.lock:
            found = self.state.repository(repository)
            who = self.state.add_user(author)
            names = tuple(labels)
            begin = self.state.seconds() - count * spread
            numbers = []
            for index in range(count):
                at = self.state.moment(begin + (index + 1) * spread)
                title = f"Issue {found.next_number}"
                made = issue_rules.create(self.state, who, found, title, f"Do thing {index}", labels=names, at=at)
                numbers.append(made.number)
            return numbers

    def issue(self, repository: str, number: int) -> Issue:
        with self.state.lock:
            return self.state.issue(self.state.repository(repository), number)

    def edit(
        self, repository: str, number: int, *, by: str = "octocat", title: str | None = None, body: str | None = None
    ) -> None:
        with self.state.lock:
            issue_rules.edit(
                self.state, self.state.add_user(by), self.issue(repository, number), title=title, body=body
            )

    def comment(self, repository: str, number: int, body: str, *, by: str = "octocat") -> int:
        with self.state.lock:
            return issue_rules.comment(self.state, self.state.add_user(by), self.issue(repository, number), body).id

    def label(self, repository: str, number: int, *names: str, by: str = "octocat") -> None:
        with self.state.lock:
            issue_rules.add_labels(self.state, self.state.add_user(by), self.issue(repository, number), names)

    def plan(self, repository: str, number: int, title: str, due_on: str = "", *, by: str = "octocat") -> None:
        """Put an issue into a new milestone."""
        with self.state.lock:
            who, issue = self.state.add_user(by), self.issue(repository, number)
            home = self.state.repository(repository)
            issue.milestone = issue_rules.add_milestone(self.state, who, home, title, due_on)
            issue_rules.happened(self.state, issue, who, "milestoned", milestone=title)

    def unlabel(self, repository: str, number: int, *names: str, by: str = "octocat") -> None:
        with self.state.lock:
            for name in names:
                issue_rules.remove_label(self.state, self.state.add_user(by), self.issue(repository, number), name)

    def labels(self, repository: str, number: int) -> list[str]:
        """The names of the labels of an issue, sorted."""
        return sorted(label.name for label in self.issue(repository, number).labels)

    def close(self, repository: str, number: int, reason: str = "completed", *, by: str = "octocat") -> None:
        """Close an issue, or a pull request without merging it."""
        with self.state.lock:
            issue_rules.close(self.state, self.state.add_user(by), self.issue(repository, number), reason)

    def reopen(self, repository: str, number: int, *, by: str = "octocat") -> None:
        with self.state.lock:
            issue_rules.reopen(self.state, self.state.add_user(by), self.issue(repository, number))

    def delete(self, repository: str, number: int) -> None:
        with self.state.lock:
            issue_rules.delete(self.state, self.issue(repository, number))

    def transfer(self, repository: str, number: int, to: str, *, by: str = "octocat") -> int:
        with self.state.lock:
            target = self.state.repository(to)
            moved = issue_rules.transfer(self.state, self.state.add_user(by), self.issue(repository, number), target)
            return moved.number

    def block(self, repository: str, number: int, by_number: int, *, by: str = "octocat", elsewhere: str = "") -> None:
        """Issue `by_number` (of the repository `elsewhere`) stands in the way of issue `number`."""
        with self.state.lock:
            other = self.issue(elsewhere or repository, by_number)
            issue_rules.block(self.state, self.state.add_user(by), self.issue(repository, number), other)

    def unblock(self, repository: str, number: int, by_number: int, *, by: str = "octocat") -> None:
        with self.state.lock:
            other = self.issue(repository, by_number)
            issue_rules.unblock(self.state, self.state.add_user(by), self.issue(repository, number), other)

    def add_sub_issue(self, repository: str, parent: int, child: int, *, by: str = "octocat") -> None:
        with self.state.lock:
            who = self.state.add_user(by)
            issue_rules.add_sub_issue(self.state, who, self.issue(repository, parent), self.issue(repository, child))

    # pull requests

    def open_pull_request(
        self,
        repository: str,
        head: str,
        *,
        title: str = "A change",
        body: str = "",
        base: str = "main",
        draft: bool = False,
        by: str = "octocat",
    ) -> int:
        with self.state.lock:
            who = self.state.add_user(by)
            found = self.state.repository(repository)
            made = pull_rules.create(self.state, who, found, title=title, head=head, base=base, body=body, draft=draft)
            return made.number

    def pull_request(self, repository: str, number: int) -> PullRequest:
        with self.state.lock:
            return self.state.pull(self.state.repository(repository), number)

    def review(
        self,
        repository: str,
        number: int,
        state: str = "APPROVED",
        body: str = "",
        *,
        by: str,
        comments: Sequence[dict[str, Any]] = (),
    ) -> int:
        """APPROVED, CHANGES_REQUESTED or COMMENTED; each of `comments` has path, line and body."""
        with self.state.lock:
            who, pull = self.state.add_user(by), self.pull_request(repository, number)
            return pull_rules.review(self.state, who, pull, state, body, comments=comments).id

    def merge(self, repository: str, number: int, *, method: str = "merge", by: str = "octocat") -> str:
        with self.state.lock:
            who = self.state.add_user(by)
            return pull_rules.merge(self.state, who, self.pull_request(repository, number), method=method)

    def link(self, repository: str, number: int, pull_request: int) -> None:
        """Link a pull request to an issue by hand."""
        with self.state.lock:
            self.issue(repository, number).linked.append(self.pull_request(repository, pull_request))

    def check(
        self,
        repository: str,
        sha: str,
        name: str,
        conclusion: str | None = "success",
        *,
        title: str = "",
        summary: str = "",
        details_url: str = "",
    ) -> None:
        """A check run on a commit; `conclusion` None: it is still running."""
        with self.state.lock:
            found = self.state.repository(repository)
            pull_rules.check(
                self.state,
                found,
                sha,
                name,
                conclusion=conclusion,
                title=title,
                summary=summary,
                details_url=details_url,
            )

    def status(
        self,
        repository: str,
        sha: str,
        context: str,
        state: str = "success",
        description: str = "",
        *,
        by: str = "octocat",
    ) -> None:
        """A commit status: error, failure, pending or success."""
        with self.state.lock:
            found, who = self.state.repository(repository), self.state.add_user(by)
            pull_rules.set_status(self.state, who, found, sha, state, context=context, description=description)

    # boards

    def add_project(
        self,
        owner: str,
        title: str = "Board",
        *,
        statuses: Sequence[str] = project_rules.STATUSES,
        by: str = "octocat",
        public: bool = True,
    ) -> int:
        with self.state.lock:
            who = self.state.add_user(by)
            made = project_rules.create(
                self.state, who, self.state.user(owner), title, statuses=tuple(statuses), public=public
            )
            if made.owner.kind == "Organization":
                made.owner.members.setdefault(who.login.casefold(), "member")
            return made.number

    def project(self, owner: str, number: int) -> Project:
        with self.state.lock:
            return project_rules.find(self.state, owner, number)

    def set_card(
        self,
        owner: str,
        project: int,
        repository: str,
        number: int,
        status: str | None = None,
        *,
        field: str = "Status",
    ) -> None:
        """Put an issue on a board, and its card in a column."""
        with self.state.lock:
            board = self.project(owner, project)
            item = project_rules.add_item(self.state, board.creator, board, self.issue(repository, number))
            if status is None:
                return
            column = board.field_named(field)
            option = column.option(status) if column else None
            if column is None or option is None:
                raise KeyError(f"the board has no {field} {status}")
            project_rules.set_value(self.state, item, column, option.id)

    def remove_card(self, owner: str, project: int, repository: str, number: int) -> None:
        with self.state.lock:
            issue = self.issue(repository, number)
            for item in [item for item in self.project(owner, project).items if item.content is issue]:
                project_rules.remove_item(self.state, item)

    def card_status(
        self, owner: str, project: int, repository: str, number: int, *, field: str = "Status"
    ) -> str | None:
        """The column of the card of an issue; None where it has no card, empty where it is in no column."""
        with self.state.lock:
            issue, board = self.issue(repository, number), self.project(owner, project)
            column = board.field_named(field)
            for item in board.items:
                if item.content is issue and column is not None:
                    option = item.values.get(column.id)
                    return str(option.name) if option is not None else ""
            return None
