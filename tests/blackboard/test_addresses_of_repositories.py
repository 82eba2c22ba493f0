"""A file of the repository may name a database server, but no secret of the user goes there."""

import pytest

from tests.project import Project

_ADDRESS = "postgresql://victim@127.0.0.1:9/x"


@pytest.mark.parametrize("command", [("status",), ("task", "list"), ("queue",), ("work", "--until-empty")])
def test_the_password_of_the_user_does_not_go_to_a_server_that_the_repository_names(
    project: Project, command: tuple[str, ...]
) -> None:
    project.write(".genba/config.yaml", f"database: {{url: '{_ADDRESS}'}}\n")
    done = project.genba(*command, PGPASSWORD="not-for-them")
    assert done.code == 3
    assert "database.url: names the database server 127.0.0.1, which would get your PGPASSWORD" in done.err
    assert "export GENBA_DATABASE_URL=" in done.err


@pytest.mark.parametrize("option", ["passfile=/etc/passwd", "service=other", "sslkey=/etc/ssl/key"])
def test_a_repository_sets_no_option_that_opens_a_file_of_the_user(project: Project, option: str) -> None:
    project.write(".genba/config.yaml", f"database: {{url: '{_ADDRESS}?{option}'}}\n")
    done = project.genba("status")
    assert done.code == 3
    assert f"the option {option.partition('=')[0]} may not stand in a file of the repository" in done.err


def test_a_server_that_the_user_names_is_asked_with_their_password(project: Project) -> None:
    done = project.genba("status", GENBA_DATABASE_URL=_ADDRESS, PGPASSWORD="for-them")
    assert "PGPASSWORD" not in done.err
    assert done.code != 3
