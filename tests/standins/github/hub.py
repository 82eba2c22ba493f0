"""The state as a whole: who is there, who may do what, what time it is, and how things are found."""

import base64
import itertools
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.standins.github.bare import BareRepository
from tests.standins.github.state import (
    App,
    Installation,
    Issue,
    IssueType,
    Label,
    PullRequest,
    Repository,
    Team,
    Token,
    User,
)

_RANKS = ("none", "read", "triage", "write", "admin")
_DEFAULT_LABELS = {"bug": "d73a4a", "documentation": "0075ca", "duplicate": "cfd3d7", "enhancement": "a2eeef"}
ISSUE_TYPES = ("Task", "Bug", "Feature")


class Refused(Exception):
    """What GitHub says no to. `kind` is the type that its GraphQL names; `errors` the list of its REST answers."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "UNPROCESSABLE",
        errors: tuple[Any, ...] = (),
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind
        self.errors = errors
        self.headers = headers or {}


def not_found(what: str = "Not Found") -> Refused:
    return Refused(404, what, kind="NOT_FOUND")


def forbidden(message: str = "Resource not accessible by personal access token") -> Refused:
    return Refused(403, message, kind="FORBIDDEN")


def invalid(resource: str, field: str, code: str = "invalid", message: str = "") -> Refused:
    """The 422 of a request whose fields are wrong."""
    error = {"resource": resource, "field": field, "code": code}
    if message:
        error["message"] = message
    return Refused(422, "Validation Failed", errors=(error,))


class Hub:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = threading.RLock()
        self.url = ""
        """The base of the API, without a slash at its end."""
        self.web = ""
        """The base of the pages and of git."""
        self.users: dict[str, User] = {}
        self.tokens: dict[str, Token] = {}
        self.apps: dict[int, App] = {}
        self.installations: dict[int, Installation] = {}
        self.repositories: dict[str, Repository] = {}
        self.moved: dict[str, str] = {}
        """Old names of repositories (lower case) and their names now."""
        self.nodes: dict[str, Any] = {}
        self.types: dict[str, IssueType] = {}
        self.lazy_mergeable = True
        """Whether the first look at a pull request finds its mergeability unknown, as on GitHub."""
        self.changes_allowed: tuple[int, int] | None = None
        """How many changes GitHub takes in a minute and in an hour; None: as many as come."""
        self.changes: list[float] = []
        self.skew = 0.0
        self.frozen: float | None = None
        self._ids = itertools.count(1001)
        self.pushed: Callable[[Repository], None] = lambda _: None
        for name in ISSUE_TYPES:
            number = self.next_id()
            kind = IssueType(id=number, node="", name=name)
            kind.node = self.enter("IT", number, kind)
            self.types[name.casefold()] = kind

    # time and names

    def seconds(self) -> float:
        return (time.time() if self.frozen is None else self.frozen) + self.skew

    def now(self) -> str:
        return self.moment(self.seconds())

    @staticmethod
    def moment(seconds: float) -> str:
        return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def next_id(self) -> int:
        return next(self._ids)

    def enter(self, prefix: str, number: int, thing: Any) -> str:
        """Give a thing its node id, by which it is found for good."""
        node = f"{prefix}_{base64.urlsafe_b64encode(number.to_bytes(6, 'big')).decode()}"
        self.nodes[node] = thing
        return node

    # people

    def add_user(self, login: str, *, kind: str = "User", name: str = "", email: str = "") -> User:
        found = self.users.get(login.casefold())
        if found is not None:
            return found
        number = self.next_id()
        address = email or f"{number}+{login}@users.noreply.github.com"
        user = User(id=number, node="", login=login, kind=kind, name=name, email=address, created_at=self.now())
        user.node = self.enter({"Organization": "O", "Bot": "BOT"}.get(kind, "U"), number, user)
        self.users[login.casefold()] = user
        return user

    def add_team(self, organization: str, slug: str, members: tuple[str, ...] = ()) -> Team:
        owner = self.add_user(organization, kind="Organization")
        number = self.next_id()
        team = Team(id=number, node="", slug=slug, organization=owner, members=[self.add_user(one) for one in members])
        team.node = self.enter("T", number, team)
        owner.teams[slug] = team
        return team

    def user(self, login: str) -> User:
        found = self.users.get(login.casefold())
        if found is None:
            raise not_found()
        return found

    # repositories

    def add_repository(self, full_name: str, *, private: bool = False, organization: bool | None = None) -> Repository:
        owner_login, _, name = full_name.partition("/")
        known = self.users.get(owner_login.casefold())
        kind = "Organization" if (organization if organization is not None else known is None) else "User"
        owner = known or self.add_user(owner_login, kind=kind)
        now = self.now()
        number = self.next_id()
        git = BareRepository.make(self.folder / "git" / f"{full_name}.git")
        repository = Repository(
            id=number,
            node="",
            owner=owner,
            name=name,
            git=git,
            created_at=now,
            updated_at=now,
            pushed_at=now,
            private=private,
            refs=git.refs(),
        )
        repository.node = self.enter("R", number, repository)
        self.repositories[full_name.casefold()] = repository
        for label, color in _DEFAULT_LABELS.items():
            self.label(repository, label, color=color)
        return repository

    def repository(self, full_name: str) -> Repository:
        """A repository by its name now, or by one that it had; what was pushed to it meanwhile is taken in."""
        name = full_name.casefold()
        while name in self.moved and name not in self.repositories:
            name = self.moved[name].casefold()
        found = self.repositories.get(name)
        if found is None:
            raise not_found()
        self.pushed(found)
        return found

    def visible(self, viewer: Token | None, full_name: str) -> Repository:
        """The repository, if this viewer may know of it."""
        repository = self.repository(full_name)
        if repository.private:
            if viewer is None or self.rank(viewer.user, repository) < 1:
                raise not_found()
            if viewer.installation is None and "repo" not in viewer.scopes:
                raise not_found()
        return repository

    def label(self, repository: Repository, name: str, *, color: str = "ededed", description: str = "") -> Label:
        """The label of this name, made where there is none."""
        found = repository.labels.get(name.casefold())
        if found is None:
            number = self.next_id()
            found = Label(id=number, node="", name=name, color=color, description=description or None)
            found.node = self.enter("LA", number, found)
            repository.labels[name.casefold()] = found
        return found

    def issue(self, repository: Repository, number: int) -> Issue:
        """An issue or a pull request; 410 for a deleted one, 301 for one that moved away."""
        found = repository.issues.get(number)
        if found is not None:
            return found
        if number not in repository.gone:
            raise not_found()
        moved = repository.gone[number]
        if moved is None:
            raise Refused(410, "This issue was deleted", kind="NOT_FOUND")
        place = f"{self.url}/repositories/{moved.repository.id}/issues/{moved.number}"
        raise Refused(301, "Moved Permanently", kind="NOT_FOUND", headers={"location": place})

    def pull(self, repository: Repository, number: int) -> PullRequest:
        found = repository.issues.get(number)
        if not isinstance(found, PullRequest):
            raise not_found()
        return found

    def issue_by_id(self, number: int) -> Issue:
        """By its database id."""
        for repository in self.repositories.values():
            for issue in repository.issues.values():
                if issue.id == number:
                    return issue
        raise not_found()

    # who may do what

    def rank(self, user: User, repository: Repository) -> int:
        """0 none, 1 read, 2 triage, 3 write, 4 admin."""
        owner = repository.owner
        if user is owner or owner.members.get(user.login.casefold()) == "admin":
            return 4
        given = repository.collaborators.get(user.login.casefold())
        if given is not None:
            return _RANKS.index(given)
        if user.kind == "Bot" and any(
            one.app.bot is user and one.account is owner for one in self.installations.values()
        ):
            return 3
        if user.login.casefold() in owner.members:
            return 3
        return 0 if repository.private else 1

    def association(self, user: User, repository: Repository) -> str:
        if user is repository.owner:
            return "OWNER"
        if user.login.casefold() in repository.owner.members:
            return "MEMBER"
        if user.login.casefold() in repository.collaborators:
            return "COLLABORATOR"
        return "NONE"

    def need(self, viewer: Token, repository: Repository, rank: str, permission: str = "issues") -> None:
        """Refuse what this viewer may not do: by his rank in the repository, or by what his token is good for."""
        if repository.archived:
            raise forbidden("Repository was archived so is read-only.")
        if viewer.installation is not None:
            if viewer.installation.permissions.get(permission) != "write":
                raise forbidden("Resource not accessible by integration")
        elif "repo" not in viewer.scopes and (repository.private or "public_repo" not in viewer.scopes):
            raise forbidden()
        if self.rank(viewer.user, repository) < _RANKS.index(rank):
            raise forbidden("Must have write access to the repository.")
