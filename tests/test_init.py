"""`genba init`: the first settings of a project, made of what is found there."""

import os
from pathlib import Path

import pytest
import yaml

from tests.project import Project


def settings(project: Project) -> dict[str, object]:
    loaded: dict[str, object] = yaml.safe_load(project.read(".genba/config.yaml"))
    return loaded


def with_tools(folder: Path, *names: str) -> str:
    """A PATH on which these tools are installed, before everything else."""
    folder.mkdir()
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def test_what_is_found_in_the_repository_is_written_down(project: Project, tmp_path: Path) -> None:
    project.write("Makefile", "test:\n\ttrue\nlint:\n\ttrue\n")
    done = project.genba("init", PATH=with_tools(tmp_path / "bin", "codex"), check=0)
    assert "wrote .genba/config.yaml" in done.out
    assert settings(project) == {
        "project": {"name": project.root.name},
        "agents": {"default": {"adapter": "codex"}},
        "dod": ["lint_passes", "tests_pass", "no_secrets"],
    }
    assert "tests_pass (make test)" in done.err
    project.genba("agent", "list", check=0)


def test_a_repository_with_nothing_in_it_gets_settings_that_can_be_used(project: Project, tmp_path: Path) -> None:
    done = project.genba("init", "--name", 'Tea: "green" # shop', "--adapter", "scripted", check=0)
    assert settings(project) == {
        "project": {"name": 'Tea: "green" # shop'},
        "agents": {"default": {"adapter": "scripted"}},
        "dod": ["no_secrets"],
    }
    assert "No test command was found" in project.read(".genba/config.yaml")
    assert "genba task add" in done.err


@pytest.mark.parametrize("name", ["1.0", "yes", "null", "- x", "", "a/b"])
def test_any_name_is_read_again_as_it_was_given(project: Project, name: str) -> None:
    project.genba("init", "--name", name, "--adapter", "scripted", check=0)
    assert settings(project)["project"] == {"name": name or project.root.name}


def test_settings_that_are_there_are_left_alone(project: Project) -> None:
    project.write(".genba/config.yaml", "project: {name: tea}\n")
    done = project.genba("init", check=5)
    assert "this project has settings: .genba/config.yaml" in done.err
    assert project.read(".genba/config.yaml") == "project: {name: tea}\n"


@pytest.mark.parametrize(
    ("address", "repository", "url"),
    [
        ("git@github.com:acme/shop.git", "acme/shop", None),
        ("https://github.com/acme/shop", "acme/shop", None),
        ("https://user@github.com/acme/shop.git", "acme/shop", None),
        ("ssh://git@ssh.github.com:443/acme/shop.git", "acme/shop", None),
        ("https://code.example:8443/acme/shop.git", "acme/shop", "https://code.example:8443/api/v3"),
        ("ssh://git@code.example:2222/acme/shop.git", "acme/shop", "https://code.example/api/v3"),
        ("http://code.example/acme/shop.git", "acme/shop", "https://code.example/api/v3"),
        ("http://127.0.0.1:1/acme/shop.git", "acme/shop", "http://127.0.0.1:1/api/v3"),
        ("https://git.example.com/acme/shop.git", "acme/shop", "https://git.example.com/api/v3"),
    ],
)
def test_the_remote_names_the_repository(project: Project, address: str, repository: str, url: str | None) -> None:
    project.git("remote", "add", "origin", address)
    project.genba("init", "--github", "--json", check=0, GENBA_GITHUB_TOKEN="", GITHUB_TOKEN="", GH_TOKEN="")
    wanted = {"repository": repository} | ({"url": url} if url else {})
    assert settings(project)["tracker"] == {"github": wanted}


def test_a_name_is_that_of_the_remote_where_both_are_the_same(project: Project) -> None:
    project.git("remote", "add", "origin", "http://127.0.0.1:1/Acme/shop.git")
    project.genba("init", "--github", "acme/shop", check=0, GENBA_GITHUB_TOKEN="token")
    assert settings(project)["tracker"] == {"github": {"repository": "Acme/shop", "url": "http://127.0.0.1:1/api/v3"}}


def test_a_remote_that_is_a_folder_is_no_repository_on_github(project: Project, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    project.git("remote", "add", "origin", str(tmp_path / "a"))
    assert "name it: genba init --github owner/name" in project.genba("init", "--github", check=4).err
    assert not (project.root / ".genba").exists()


def test_what_is_no_repository_is_refused(project: Project) -> None:
    assert "--github owner/name" in project.genba("init", "--github", "no repository at all", check=2).err
    assert not (project.root / ".genba").exists()


def test_the_tracker_is_added_to_settings_that_name_none(project: Project) -> None:
    before = "# mine\nproject: {name: tea}   # the shop"
    project.write(".genba/config.yaml", before)
    done = project.genba("init", "--github", "acme/shop", GENBA_GITHUB_TOKEN="", GITHUB_TOKEN="", GH_TOKEN="", check=0)
    assert project.read(".genba/config.yaml").startswith(before)
    assert settings(project)["tracker"] == {"github": {"repository": "acme/shop"}}
    assert "added the tracker to .genba/config.yaml" in done.out
    again = project.genba("init", "--github", "acme/shop", check=5)
    assert "has a tracker: acme/shop" in again.err


def test_settings_to_which_nothing_can_be_added_stay_as_they_are(project: Project) -> None:
    before = "{project: {name: tea}}\n"
    project.write(".genba/config.yaml", before)
    assert "add it yourself" in project.genba("init", "--github", "acme/shop", check=5).err
    assert project.read(".genba/config.yaml") == before


def test_without_a_token_the_ways_to_give_one_are_named(project: Project) -> None:
    done = project.genba("init", "--github", "acme/shop", GENBA_GITHUB_TOKEN="", GITHUB_TOKEN="", GH_TOKEN="", check=0)
    assert "GENBA_GITHUB_TOKEN" in done.err
    assert "genba doctor" in done.err


def test_another_forge_gets_no_token(project: Project) -> None:
    project.git("remote", "add", "origin", "git@gitlab.com:acme/shop.git")
    refused = project.genba("init", "--github", GENBA_GITHUB_TOKEN="token", check=2)
    assert "gitlab.com is no GitHub" in refused.err
    assert "`forge`" in refused.err
    assert not (project.root / ".genba").exists()


@pytest.mark.parametrize("word", ["acme/shop/extra", "../../etc", "acme:8/shop/extra"])
def test_a_path_is_no_address(project: Project, word: str) -> None:
    assert "is no repository" in project.genba("init", "--github", word, check=2).err
    assert not (project.root / ".genba").exists()
