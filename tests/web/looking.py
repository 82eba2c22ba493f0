"""A user at a real browser: what the page shows, and what the browser complains about."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from playwright.sync_api import Browser, ConsoleMessage, Error, Page, expect
from playwright.sync_api import TimeoutError as TookTooLong

from tests.web.serving import OPERATOR, Dashboard

PATIENCE_MS = 60_000
_LEFT_BEHIND = ("htmx:sendAbort", "htmx:afterRequest")
expect.set_options(timeout=PATIENCE_MS)


@dataclass
class Looker:
    page: Page
    dashboard: Dashboard
    complaints: list[str] = field(default_factory=list)
    """Errors on the console, broken scripts, dialogs that a script opened."""

    @classmethod
    @contextlib.contextmanager
    def opened(
        cls,
        browser: Browser,
        dashboard: Dashboard,
        *,
        token: str = OPERATOR,
        width: int = 1280,
        height: int = 800,
        may_complain: bool = False,
    ) -> "Iterator[Looker]":
        context = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce")
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        made = cls(page, dashboard)
        page.on("console", made._received)
        page.on("pageerror", made._broke)
        try:
            page.goto(f"{dashboard.url}/enter#token={token}")
            page.wait_for_url(lambda url: "/enter" not in url)
            yield made
        finally:
            context.close()
        assert may_complain or not made.complaints, made.complaints

    def go(self, path: str) -> Page:
        """Open a page, and wait until its line to the server stands."""
        self.page.goto(f"{self.dashboard.url}{path}")
        expect(self.page.locator("#line[data-state=live]")).to_be_visible()
        return self.page

    def keys(self, first: str, second: str, url: str) -> None:
        """Press two keys that belong together until they lead there: a busy machine may let too long pass between."""
        for _ in range(5):
            self.page.keyboard.press(first)
            self.page.keyboard.press(second)
            with contextlib.suppress(TookTooLong):
                return self.page.wait_for_url(url, timeout=PATIENCE_MS / 5)
        raise AssertionError(f"{first} {second} does not lead to {url}")

    def _received(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(_LEFT_BEHIND):
            self.complaints.append(f"{message.type}: {message.text}")

    def _broke(self, error: Error) -> None:
        self.complaints.append(f"script: {error}")
