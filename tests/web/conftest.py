"""A dashboard over a project of the test, and a real browser to look at it with."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.project import Project
from tests.web.looking import Looker
from tests.web.serving import Dashboard, dashboard


@pytest.fixture
def served(project: Project) -> Iterator[Dashboard]:
    with dashboard(project) as made:
        yield made


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for the tests of a module. While it is there, no other loop of asyncio can run in this process."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        message = "not run: there is no chromium (Debian: apt-get install chromium)"
        if os.environ.get("GENBA_REQUIRE_BROWSER"):
            pytest.fail(message)
        pytest.skip(message)
    words = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playing:
        browser = playing.chromium.launch(executable_path=found, args=words)
        yield browser
        browser.close()


@pytest.fixture
def looker(chromium: Browser, served: Dashboard) -> Iterator[Looker]:
    with Looker.opened(chromium, served) as made:
        yield made
