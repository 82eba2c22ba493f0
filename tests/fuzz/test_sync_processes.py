"""`genba sync` as it is typed, while GitHub answers whatever it likes: the law of every command, then a whole copy."""

import json
import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.commands import CODES
from tests.fuzz.outside import ODD_TEXTS, spoil, tried
from tests.github import material
from tests.github.shops import SHOP, Shop, settled
from tests.project import Project
from tests.standins.github.faults import Fault
from tests.standins.github.server import GitHub

TITLES = ["Add green tea", "Add black tea", "Add a pot"]
BODIES = (b"", b"null", b"[]", b"{}", b"0", b'"', b"\xff\xfe", b"<html>", b"[" * 100_000, b'{"data": null}', b"\0" * 10)
STATUSES = (0, 200, 204, 301, 304, 400, 401, 403, 404, 409, 410, 418, 422, 451, 502, 503)
NAMES = ("retry-after", "x-ratelimit-reset", "x-ratelimit-remaining", "link", "location", "etag", "content-type")
VALUES = [text for text in ODD_TEXTS if text.isascii() and text.isprintable() and len(text) < 100]


@pytest.fixture
def shop(project: Project) -> Iterator[Shop]:
    with GitHub(schema=material.sdl()) as hub:
        made = settled(project, hub)
        settings = project.read(".genba/config.yaml").replace(
            "    sync_seconds", "    timeout_seconds: 5\n    sync_seconds"
        )
        project.write(".genba/config.yaml", settings)
        one, two, three = (made.issue(title) for title in TITLES)
        hub.block(SHOP, one, two)
        hub.add_sub_issue(SHOP, two, three)
        hub.comment(SHOP, one, "as soon as you can", by="rita")
        yield made


def another(seed: int) -> Fault:
    """Something that is wrong with one answer."""
    dice = random.Random(seed)

    def body(result: bytes) -> bytes:
        return json.dumps(spoil(json.loads(result), dice)).encode() if result else result

    skip = dice.randrange(5)
    match dice.choice(("spoilt", "spoilt", "spoilt", "body", "status", "header", "cut", "cut inside")):
        case "spoilt":
            return Fault(skip=skip, spoil=body)
        case "body":
            return Fault(skip=skip, body=dice.choice(BODIES))
        case "status":
            return Fault(skip=skip, status=dice.choice(STATUSES), body=dice.choice(BODIES))
        case "header":
            return Fault(skip=skip, status=dice.choice(STATUSES), headers={dice.choice(NAMES): dice.choice(VALUES)})
        case "cut":
            return Fault(skip=skip, cut=True)
        case _:
            return Fault(skip=skip, cut_inside=True)


def test_whatever_is_answered_the_process_keeps_its_law_and_the_next_one_has_everything(shop: Shop) -> None:
    @given(seed=st.integers(0, 2**32))
    @tried(4, 0.2)
    def look(seed: int) -> None:
        shop.hub.faults.clear()
        shop.hub.faults.add(another(seed))

        done = shop.project.genba("sync", "--full")

        message = f"exit {done.code}\n{done.out}\n{done.err}"
        assert done.code in CODES, message
        assert "Traceback" not in done.out + done.err, message
        assert "GENBA_DEBUG" not in done.out + done.err, f"nobody foresaw this: {message}"
        assert "\x1b" not in done.out + done.err, message
        assert done.code == 0 or "hint: " in done.err, message
        shop.hub.faults.clear()
        shop.project.genba("sync", "--full", check=0)
        with shop.project.board() as board:
            assert [task.title for task in board.find()] == TITLES

    look()
