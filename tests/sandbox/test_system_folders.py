"""What of the host is shown: the tools, and never what lies beside them."""

import os
from pathlib import Path

import pytest

from genba.connections.sandbox.system_folders import system_places, toolchain_folders, toolchain_variables


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "people" / "somebody"
    for secret in (".ssh/id_ed25519", ".aws/credentials", ".config/gh/hosts.yml", ".cargo/credentials.toml", ".npmrc",
                   ".local/share/keyrings/login.keyring", ".claude/.credentials.json", ".netrc"):  # fmt: skip
        (home / secret).parent.mkdir(parents=True, exist_ok=True)
        (home / secret).write_text("secret")
    return home


def shown(home: Path, *path: Path) -> tuple[str, ...]:
    found = toolchain_folders({"HOME": str(home), "PATH": os.pathsep.join(map(str, path))})
    secrets = [
        file for file in home.rglob("*") if file.is_file() and not file.is_symlink() and file.read_text() == "secret"
    ]
    assert [(file, place) for file in secrets for place in found if file.is_relative_to(place)] == []
    assert str(home) not in found
    return tuple(place for place in found if place.startswith(str(home.parent.parent)))


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_tool_with_its_libraries_is_shown_whole(home: Path) -> None:
    program(home / ".nvm/versions/node/v20/bin/node")
    (home / ".nvm/versions/node/v20/lib").mkdir()
    (home / ".nvm/token").write_text("secret")
    assert shown(home, home / ".nvm/versions/node/v20/bin") == (str(home / ".nvm/versions"),)


def test_beside_credentials_only_the_programs_are_shown(home: Path) -> None:
    program(home / ".cargo/bin/cargo")
    (home / ".cargo/lib").mkdir()
    program(home / ".local/bin/tool")
    (home / ".local/lib").mkdir()
    found = shown(home, home / ".cargo/bin", home / ".local/bin")
    assert set(found) == {str(home / ".cargo/bin"), str(home / ".local/bin"), str(home / ".local/lib")}


def test_of_what_a_tool_keeps_only_the_folders_that_it_runs_from_are_shown(home: Path) -> None:
    program(home / ".local/share/claude/versions/1.0")
    program(home / ".local/bin/other")
    (home / ".local/bin/claude").symlink_to(home / ".local/share/claude/versions/1.0")
    program(home / ".local/share/pnpm/pnpm")
    program(home / ".local/share/pnpm/global/5/node_modules/tool/run")
    program(home / ".bun/install/global/node_modules/tool/run")
    program(home / "miniconda3/bin/conda")
    (home / "miniconda3/lib").mkdir()
    (home / "miniconda3/conda-meta").mkdir()
    for secret in (".local/share/claude/history", ".local/share/pnpm/state.json", ".bun/install/global/history",
                   "miniconda3/.condarc", ".condarc"):  # fmt: skip
        (home / secret).write_text("secret")

    found = shown(home, home / ".local/bin", home / ".local/share/pnpm", home / "miniconda3/bin")

    assert {str(Path(place).relative_to(home)) for place in found} == {
        ".local/bin", ".local/share/claude/versions", ".local/share/pnpm/pnpm", ".local/share/pnpm/global",
        ".bun/install/global/node_modules", "miniconda3/bin", "miniconda3/lib", "miniconda3/conda-meta",
    }  # fmt: skip


def test_the_home_itself_and_its_secret_folders_are_never_shown(home: Path) -> None:
    program(home / "bin/tool")
    (home / "lib").mkdir()
    program(home / ".ssh/bin/tool")
    assert shown(home, home, home.parent, home / "bin", home / ".ssh", home / ".ssh/bin", home / ".config") == (
        str(home / "bin"),
    )


def test_a_project_on_the_path_shows_its_programs_and_not_its_history(home: Path, tmp_path: Path) -> None:
    program(tmp_path / "project/bin/tool")
    (tmp_path / "project/lib").mkdir()
    (tmp_path / "project/.git").mkdir()
    assert shown(home, tmp_path / "project/bin") == (str(tmp_path / "project/bin"),)


def test_a_manager_of_tools_is_shown_whole_wherever_it_is(home: Path, tmp_path: Path) -> None:
    program(tmp_path / "else/.pyenv/shims/python3")
    (tmp_path / "else/.pyenv/.git").mkdir()
    assert shown(home, tmp_path / "else/.pyenv/shims") == (str(tmp_path / "else/.pyenv"),)


def test_links_are_followed_to_what_they_lead_to(home: Path, tmp_path: Path) -> None:
    cli = program(tmp_path / "npm/node_modules/agent/cli.js")
    binary = program(home / ".local/share/agent/versions/2.1")
    folder = home / ".local/bin"
    folder.mkdir(parents=True)
    (folder / "agent").symlink_to(cli)
    (folder / "first").symlink_to("second")
    (folder / "second").symlink_to(binary)
    (folder / "key").symlink_to(home / ".ssh/id_ed25519")
    (folder / "gone").symlink_to(tmp_path / "nowhere")
    (folder / "round").symlink_to("round")
    found = shown(home, folder)
    assert set(found) == {str(tmp_path / "npm/node_modules"), str(binary), str(folder)}


def test_folders_of_node_are_shown_from_their_outermost(home: Path, tmp_path: Path) -> None:
    program(tmp_path / "app/node_modules/.bin/tool")
    (tmp_path / "app/.env").write_text("secret")
    assert shown(home, tmp_path / "app/node_modules/.bin") == (str(tmp_path / "app/node_modules"),)


def test_what_is_no_folder_or_no_whole_path_is_passed_over(home: Path, tmp_path: Path) -> None:
    file = program(tmp_path / "file")
    assert shown(home, file, tmp_path / "nowhere", Path("relative"), Path()) == ()


def test_of_the_system_no_key_and_no_password_is_shown() -> None:
    places = system_places()
    assert "/usr" in places
    assert "/etc/passwd" in places
    for secret in ("/etc", "/etc/shadow", "/etc/ssh", "/etc/ssl", "/etc/ssl/private", "/etc/sudoers", "/root", "/home"):
        assert secret not in places


def test_tools_that_look_for_themselves_at_home_get_their_location(home: Path) -> None:
    for folder in (".rustup", ".pyenv"):
        (home / folder).mkdir()
    known = {"HOME": str(home), "PYENV_ROOT": "/opt/pyenv"}
    assert toolchain_variables(known) == {"RUSTUP_HOME": str(home / ".rustup")}
    assert toolchain_variables({}) == {}
