import re
import shlex
import signal

from tests.fleet.yard import Yard
from tests.project import Project, until


def test_the_token_is_no_argument_of_the_browser(project: Project) -> None:
    result = project.root.parent / "browser.txt"
    browser = project.root.parent / "browser"
    browser.write_text(
        f'#!/bin/sh\nprintf "%s" "$*" > {shlex.quote(str(result))}.part\nmv {result}.part {result}\n', "utf-8"
    )
    browser.chmod(0o700)
    with Yard(project) as yard:
        yard.task(1, "Add a page")
        process = yard.begin("serve", "--port", "0", "--open", BROWSER=str(browser))
        until(result.exists, 60)
        found = re.search(r"#token=(\S+)", yard.log())
        assert found
        assert found.group(1) not in result.read_text("utf-8")

        page = project.root / ".git" / "genba" / "enter.html"
        assert result.read_text("utf-8") == page.as_uri()
        assert f"#token={found.group(1)}" in page.read_text("utf-8")
        assert page.stat().st_mode & 0o777 == 0o600

        yard.kill(process, signal.SIGINT)
        assert not page.exists()
