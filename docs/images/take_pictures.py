"""Runs the real `genba demo`, serves it, and takes the pictures of the dashboard that the documents show.

Needs chromium and what `make test` installs. `make pictures` runs it; with a folder it takes them of the demo in there.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

HERE = Path(__file__).parent
GENBA = Path(sys.executable).parent / "genba"
LARGEST = 200_000
"""Bytes: a picture is fetched by everybody who reads the page."""
WIDE, PHONE = 1280, 400
PICTURES = (
    ("dashboard-overview-light", "/", "light", WIDE),
    ("dashboard-overview-dark", "/", "dark", WIDE),
    ("dashboard-board", "/board", "light", WIDE),
    ("dashboard-task", "/tasks/3", "dark", WIDE),
    ("dashboard-session", "", "light", WIDE),
    ("dashboard-approvals", "/approvals", "light", WIDE),
    ("dashboard-graph", "/graph?show=all", "dark", WIDE),
    ("dashboard-phone", "/", "light", PHONE),
)
"""The file, the page, the colours and the width. No page: the newest run of the task with the conflict."""
TOKEN = "a-token-of-the-pictures"  # noqa: S105  (it opens the demo, and nothing else)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="genba-pictures-") as folder:
        home = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "demo"
        if not home.exists():
            subprocess.run([str(GENBA), "demo", "--plain", "--folder", str(home)], check=True)
        with served(home) as address, sync_playwright() as playing:
            words = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
            browser = playing.chromium.launch(executable_path=chromium(), args=words)
            for name, page, scheme, width in PICTURES:
                take(browser, address, HERE / f"{name}.png", page, scheme, width)
            browser.close()
    too_large = [f"{name}.png" for name, *_ in PICTURES if (HERE / f"{name}.png").stat().st_size > LARGEST]
    sys.stdout.write(f"took {len(PICTURES)} pictures\n")
    if too_large:
        sys.stderr.write(f"error: larger than {LARGEST} bytes: {', '.join(too_large)}\n")
    return 1 if too_large else 0


def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        sys.exit("error: there is no chromium\nhint: apt-get install chromium")
    return found


@contextmanager
def served(home: Path) -> Iterator[str]:
    """The dashboard of a folder, on a free port, until the block ends."""
    serving = subprocess.Popen(
        [str(GENBA), "serve", "--port", "0"],
        cwd=home,
        env={**os.environ, "GENBA_SERVE_TOKEN": TOKEN},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert serving.stdout is not None  # noqa: S101  (it was asked for)
        link = serving.stdout.readline().strip()
        if not link:
            sys.exit("error: genba serve did not begin")
        yield link.partition("/enter")[0]
    finally:
        serving.terminate()
        serving.wait()


def take(browser: Browser, address: str, target: Path, path: str, scheme: str, width: int) -> None:
    """One picture, when the page stands still and its line to the server stands."""
    dark = scheme == "dark"
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(f"{address}/enter#token={TOKEN}")
    page.wait_for_url(lambda url: "/enter" not in url)
    page.goto(f"{address}{path or newest_run(address)}")
    page.wait_for_selector("#line[data-state=live]")
    page.wait_for_function("document.fonts.status === 'loaded'")
    page.wait_for_load_state("load")
    page.screenshot(path=str(target), animations="disabled")
    context.close()


def newest_run(address: str) -> str:
    """The page of the run that resolved a conflict."""
    asking = urllib.request.Request(f"{address}/tasks/4", headers={"authorization": f"Bearer {TOKEN}"})  # noqa: S310
    with urllib.request.urlopen(asking) as answer:  # noqa: S310  (an address that was just made)
        found = re.search(r'href="(/sessions/[^"#?]+)"', answer.read().decode())
    if found is None:
        sys.exit("error: task 4 of the demo has no session")
    return found[1]


if __name__ == "__main__":
    sys.exit(main())
