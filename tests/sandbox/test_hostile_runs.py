import os
from collections.abc import Iterator

import pytest

from genba.domain.sessions.sandbox import SandboxKind
from tests.bubblewrap import needs_bubblewrap
from tests.project import Project
from tests.sandbox.engines import engine_of
from tests.sandbox.hostile_runs import HostileRunSuite, settle


class TestBubblewrap(HostileRunSuite):
    @pytest.fixture
    def sandboxed(self, project: Project) -> Project:
        needs_bubblewrap()
        settle(project, kind="bubblewrap")
        return project


class TestContainers(HostileRunSuite):
    @pytest.fixture(params=[SandboxKind.DOCKER, SandboxKind.PODMAN])
    def sandboxed(
        self, request: pytest.FixtureRequest, project: Project, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[Project]:
        own = tmp_path_factory.getbasetemp()
        shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
        with engine_of(request.param, shared) as engine:
            settle(project, kind=str(request.param))
            project.environment["GENBA_SANDBOX_OPTIONS"] = " ".join(engine.options)
            if engine.host:
                project.environment["DOCKER_HOST"] = engine.host
            yield project
