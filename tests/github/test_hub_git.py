"""The GitHub of the tests, its git: real git clones from it and pushes to it, and pull requests follow."""

import subprocess
from pathlib import Path

import pytest

from tests.github.conftest import Hubs
from tests.standins.github import pull_rules
from tests.standins.github.server import GitHub

QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
PERSON = {
    f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "A"), ("EMAIL", "a@x"))
}


@pytest.fixture
def hub(hubs: Hubs) -> GitHub:
    made = hubs(graphql=False)
    made.add_token("tok", login="octocat")
    made.add_repository("acme/shop")
    return made


def git(folder: Path, *arguments: str, fails: bool = False) -> str:
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(folder)} | QUIET | PERSON,
        check=False,
    )
    assert (done.returncode != 0) is fails, done.stderr
    return done.stderr if fails else done.stdout.strip()


def clone(hub: GitHub, folder: Path, token: str = "tok") -> Path:
    git(folder, "clone", "-q", hub.git_url("acme/shop", token), "shop")
    return folder / "shop"


def commit(folder: Path, path: str, text: str, message: str = "Change") -> str:
    (folder / path).write_text(text)
    git(folder, "add", path)
    git(folder, "commit", "-q", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def test_what_is_pushed_is_what_the_api_shows_and_what_others_clone(hub: GitHub, tmp_path: Path) -> None:
    mine = clone(hub, tmp_path)
    git(mine, "switch", "-q", "-c", "topic/one")
    (mine / "large.bin").write_bytes(bytes(range(256)) * 8192)
    sha = commit(mine, "large.bin", "x" * 3_000_000)
    git(mine, "push", "-q", "origin", "topic/one")
    assert hub.repository("acme/shop").refs["refs/heads/topic/one"] == sha
    (tmp_path / "other").mkdir()
    git(tmp_path / "other", "clone", "-q", "--branch", "topic/one", hub.git_url("acme/shop"))
    assert len((tmp_path / "other" / "shop" / "large.bin").read_text()) == 3_000_000
    pushes = [one for one in hub.requests if one.mutation]
    assert [(one.path, one.login, one.status) for one in pushes] == [
        ("/acme/shop.git/git-receive-pack", "octocat", 200)
    ]


def test_nobody_pushes_without_a_good_token_and_the_right_to(hub: GitHub, tmp_path: Path) -> None:
    hub.add_token("reader", login="reader")
    mine = clone(hub, tmp_path)
    commit(mine, "a.txt", "a")
    for url in (hub.git_url("acme/shop"), hub.git_url("acme/shop", "wrong")):
        output = git(mine, "push", url, "main", fails=True)
        assert "could not read Username" in output or "Authentication failed" in output
    assert "denied to reader" in git(mine, "push", hub.git_url("acme/shop", "reader"), "main", fails=True)
    hub.expire("tok")
    assert "Authentication failed" in git(mine, "push", "origin", "main", fails=True)


def test_a_private_repository_is_cloned_only_by_who_may_see_it(hub: GitHub, tmp_path: Path) -> None:
    hub.add_repository("acme/secret", private=True)
    hub.add_token("stranger", login="stranger")
    git(tmp_path, "clone", "-q", hub.git_url("acme/secret", "tok"), "mine")
    git(tmp_path, "clone", "-q", hub.git_url("acme/secret", "stranger"), "theirs", fails=True)
    git(tmp_path, "clone", "-q", hub.git_url("acme/secret"), "nobodys", fails=True)


def test_a_pull_request_follows_what_is_pushed(hub: GitHub, tmp_path: Path) -> None:
    mine = clone(hub, tmp_path)
    git(mine, "switch", "-q", "-c", "work")
    commit(mine, "a.txt", "a")
    git(mine, "push", "-q", "origin", "work")
    number = hub.open_pull_request("acme/shop", "work")
    before = hub.pull_request("acme/shop", number).updated_at
    hub.advance(5)
    sha = commit(mine, "a.txt", "b")
    git(mine, "push", "-q", "origin", "work")
    pull = hub.pull_request("acme/shop", number)
    assert pull.head_sha == sha
    assert pull.updated_at > before
    git(mine, "commit", "-q", "--amend", "-m", "Otherwise")
    git(mine, "push", "-q", "--force", "origin", "work")
    assert pull.events[-1].event == "head_ref_force_pushed"
    git(mine, "fetch", "-q", "origin", f"refs/pull/{number}/head")
    assert git(mine, "rev-parse", "FETCH_HEAD") == hub.pull_request("acme/shop", number).head_sha
    git(mine, "push", "-q", "origin", "--delete", "work")
    assert (hub.pull_request("acme/shop", number).state, pull.merged) == ("closed", False)


def test_a_merge_that_is_pushed_merges_the_pull_request_and_closes_the_issue(hub: GitHub, tmp_path: Path) -> None:
    hub.add_issue("acme/shop", title="One")
    hub.add_issue("acme/shop", title="Two")
    mine = clone(hub, tmp_path)
    git(mine, "switch", "-q", "-c", "work")
    commit(mine, "a.txt", "a")
    git(mine, "push", "-q", "origin", "work")
    number = hub.open_pull_request("acme/shop", "work", body="Closes #1")
    git(mine, "switch", "-q", "main")
    git(mine, "merge", "-q", "--no-ff", "-m", "Merge the work\n\nFixes #2", "work")
    git(mine, "push", "-q", "origin", "main")
    pull = hub.pull_request("acme/shop", number)
    assert (pull.merged, pull.merge_sha) == (True, git(mine, "rev-parse", "main"))
    assert [hub.issue("acme/shop", one).state for one in (1, 2)] == ["closed", "closed"]


def test_two_branches_that_write_the_same_line_conflict(hub: GitHub, tmp_path: Path) -> None:
    hub.state.lazy_mergeable = False
    for name in ("left", "right"):
        hub.commit("acme/shop", name, {"README.md": f"# {name}\n"})
    left, right = (hub.open_pull_request("acme/shop", name, title=name) for name in ("left", "right"))
    hub.merge("acme/shop", left)
    assert pull_rules.merge_state(hub.state, hub.pull_request("acme/shop", right)) == "dirty"


def test_a_push_to_a_protected_branch_is_refused(hub: GitHub, tmp_path: Path) -> None:
    hub.protect("acme/shop", approvals=1)
    mine = clone(hub, tmp_path)
    commit(mine, "a.txt", "a")
    assert "GH006" in git(mine, "push", "origin", "main", fails=True)
    git(mine, "push", "-q", "origin", "main:other")


def test_a_push_to_the_folder_itself_is_noticed_at_the_next_look(hub: GitHub, tmp_path: Path) -> None:
    mine = clone(hub, tmp_path)
    git(mine, "switch", "-q", "-c", "work")
    commit(mine, "a.txt", "a")
    git(mine, "push", "-q", str(hub.git_dir("acme/shop")), "work")
    number = hub.open_pull_request("acme/shop", "work")
    sha = commit(mine, "a.txt", "b")
    git(mine, "push", "-q", str(hub.git_dir("acme/shop")), "work")
    assert hub.pull_request("acme/shop", number).head_sha == sha


def test_a_branch_goes_with_its_merge_where_the_repository_says_so(hub: GitHub) -> None:
    hub.repository("acme/shop").delete_branch_on_merge = True
    hub.commit("acme/shop", "work", {"a.txt": "a"})
    number = hub.open_pull_request("acme/shop", "work")
    hub.merge("acme/shop", number, method="squash")
    assert "refs/heads/work" not in hub.repository("acme/shop").refs
    assert hub.pull_request("acme/shop", number).merged


def test_a_push_can_be_cut_before_and_after_it_took_effect(hub: GitHub, tmp_path: Path) -> None:
    mine = clone(hub, tmp_path)
    git(mine, "switch", "-q", "-c", "work")
    sha = commit(mine, "a.txt", "a")
    again = 9  # git sends once more by itself where a connection that it had used before is cut
    hub.faults.cut("POST", "*/git-receive-pack", times=again)
    git(mine, "push", "-q", "origin", "work", fails=True)
    assert "refs/heads/work" not in hub.repository("acme/shop").refs
    hub.faults.clear()
    hub.faults.cut("POST", "*/git-receive-pack", effect=True, times=again)
    git(mine, "push", "-q", "origin", "work", fails=True)
    assert hub.repository("acme/shop").refs["refs/heads/work"] == sha
    hub.faults.clear()
    git(mine, "push", "-q", "origin", "work")
