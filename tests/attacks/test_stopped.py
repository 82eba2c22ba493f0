"""Every attack is stopped, on every kind of sandbox; the page of attacks says what the data says."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from genba.domain.sessions.sandbox import SandboxKind
from tests.attacks import page
from tests.attacks.catalogue import BUBBLEWRAP, WORKTREE, Scene, succeeded
from tests.attacks.field import Field, clear, made
from tests.attacks.scenes import ALL_SCENES
from tests.attacks.scenes import PLAYED as SCENES
from tests.bubblewrap import needs_bubblewrap
from tests.sandbox.engines import engine_of

PLAYED = [pytest.param(scene, kind, id=f"{scene.name}-{kind}") for scene, kind in SCENES]


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that is gone after the test: pytest cannot delete what some agents leave."""
    folder = tmp_path_factory.mktemp("attack")
    yield folder
    clear(folder)


@pytest.fixture
def field(kind: str, place: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with ExitStack() as stack:
        if kind == BUBBLEWRAP:
            needs_bubblewrap()
        if kind in (BUBBLEWRAP, WORKTREE):
            yield made(place, kind)
            return
        engine = stack.enter_context(engine_of(SandboxKind(kind), shared))
        yield made(place, kind, engine.options, engine.host)


@pytest.mark.parametrize(("scene", "kind"), PLAYED)
def test_every_attack_is_stopped(scene: Scene, field: Field) -> None:
    assert succeeded(scene, field) == {}


def test_every_attack_has_a_name_of_its_own() -> None:
    names = [each.id for scene in ALL_SCENES for each in scene.attacks]
    assert len(names) == len(set(names))
    assert len(names) >= 80


def test_the_page_of_attacks_is_made_from_the_data() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.text(), "make it again: python -m tests.attacks.page"
