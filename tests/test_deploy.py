"""What is in `deploy/`: each file is read by what reads it in life, and the image is built and put to work."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from genba.blackboard.tasks.board import Blackboard
from genba.domain.sessions.sandbox import SandboxKind
from genba.domain.tasks.task import TaskStatus
from tests import local_base_image
from tests.blackboard.conftest import Postgres, postgres  # noqa: F401  (a fixture)
from tests.coordination.waiting import until
from tests.fleet.yard import Yard
from tests.project import GENBA, Project
from tests.sandbox.engines import Engine, engine_of

TOP = Path(__file__).parent.parent
DEPLOY = TOP / "deploy"
ASKED_FOR = "GENBA_TEST_IMAGE"
DEADLINE = 180.0


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    file: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    assert set(file["volumes"]) == {"database", "remote", "worker-1", "worker-2", "server"}
    found: dict[str, Any] = file["services"]
    return found


def test_the_database_is_there_before_its_tables_and_these_before_the_workers(services: dict[str, Any]) -> None:
    assert services["database"]["image"] == "postgres:16"
    assert services["database"]["healthcheck"]["test"][0] == "CMD-SHELL"
    assert services["migrate"]["depends_on"]["database"] == {"condition": "service_healthy"}
    workers = {name: service for name, service in services.items() if name.startswith("worker-")}
    assert len(workers) == 2
    for name, worker in workers.items():
        assert worker["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
        assert worker["environment"]["GENBA_EXECUTOR"] == worker["hostname"] == name, "a name that stays"
        assert worker["environment"]["GENBA_DATABASE_URL"].startswith("postgresql://")
        assert f"{name}:/srv/genba" in worker["volumes"], "a clone of its own"
        assert "remote:/remote" in worker["volumes"], "a remote that all share"
        assert worker["init"], "somebody takes in the orphans"


def test_the_server_listens_to_this_machine_alone(services: dict[str, Any]) -> None:
    server = services["server"]
    assert server["ports"] == ["127.0.0.1:8765:8765"]
    assert "genba mcp --http --host 0.0.0.0 --i-accept-the-risk" in server["command"][0]
    assert server["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
    assert "server:/srv/genba" in server["volumes"], "a clone of its own"


def test_no_service_has_a_right_that_it_does_not_need(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges" in service["security_opt"], name
        assert "privileged" not in service, name
        assert not any("docker.sock" in volume for volume in service["volumes"]), name
    unwritten = {name for name, service in services.items() if service.get("read_only")}
    assert unwritten == {"remote", "migrate", "server"}
    assert [name for name, service in services.items() if "cap_add" in service] == ["database"]
    assert [name for name, service in services.items() if service.get("ports")] == ["server"]


def test_no_password_is_in_the_compose_file() -> None:
    text = (DEPLOY / "compose.yaml").read_text("utf-8")
    assert re.findall(r"PASSWORD: (?!\$\{)", text) == []
    assert "genba:${POSTGRES_PASSWORD:?" in text


def test_compose_itself_reads_the_file(tmp_path: Path) -> None:
    result = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode if (
        shutil.which("docker")) else 1  # fmt: skip
    if result != 0:
        pytest.skip("not run: docker compose is not installed")
    environment = {**os.environ, "POSTGRES_PASSWORD": "x", "GENBA_REPOSITORY": str(tmp_path)}
    words = ["docker", "compose", "--file", str(DEPLOY / "compose.yaml"), "config", "--quiet"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("not run: systemd-analyze is not installed")
    text = (DEPLOY / "genba-work.service").read_text("utf-8")
    here = {"/opt/genba/bin/genba": str(GENBA), "User=genba": "User=root", "/srv/genba/project": str(tmp_path)}
    for theirs, ours in here.items():
        assert theirs in text
        text = text.replace(theirs, ours)
    unit = tmp_path / "genba-work.service"
    unit.write_text(text, "utf-8")
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    own = [line for line in done.stderr.splitlines() if "genba-work" in line]
    assert (done.returncode, own) == (0, [])


def test_the_unit_does_not_restrict_supervisors_and_sandboxes() -> None:
    lines = (DEPLOY / "genba-work.service").read_text("utf-8").splitlines()
    settings = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    assert (settings["KillMode"], settings["KillSignal"], settings["Restart"]) == ("process", "SIGINT", "always")
    assert settings["OOMPolicy"] == "continue"
    covers = {"PrivateTmp", "ProtectKernelTunables", "ProtectKernelLogs", "ProtectProc", "RestrictNamespaces"}
    assert not covers & set(settings)


def test_everything_that_the_image_copies_is_there() -> None:
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    copied = [word for line in re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE) for word in line.split()[:-1]]
    sent = {line.lstrip("!") for line in (TOP / ".dockerignore").read_text("utf-8").splitlines() if line[:1] == "!"}
    assert copied
    assert set(copied) == sent
    assert all((TOP / name).exists() for name in copied)
    assert "--no-deps --require-hashes -r requirements.lock" in text
    assert re.search(r"^USER genba$", text, re.MULTILINE)
    assert text.rfind("\nUSER genba\n") > text.rfind("\nFROM "), "nothing that is started is root"


class Deployed:
    """The image, and the services of the compose file as this test starts them: each by its own words."""

    def __init__(self, engine: Engine, services: dict[str, Any], folder: Path, socket: Path) -> None:
        self.engine = engine
        self.services = services
        self.folder = folder
        self.socket = socket
        self.started: list[str] = []

    def words(self, name: str, repository: Path) -> list[str]:
        service = self.services[name]
        values = {**service["environment"], "GENBA_DATABASE_URL": "postgresql://postgres@/postgres?host=/database"}
        mounts = [f"{self.socket}:/database/{self.socket.name}"]
        for volume in service["volumes"]:
            source, target = volume.rsplit(":", 2 if volume.endswith(":ro") else 1)[:2]
            place = repository if "GENBA_REPOSITORY" in source else self._volume(source)
            mounts.append(f"{place}:{target}")
        assert service["entrypoint"] == ["sh", "-eu", "-c"]
        return [
            "--network", "none", "--init", "--entrypoint", "sh",
            *(word for option in service.get("security_opt", ()) for word in ("--security-opt", option)),
            *(word for right in service["cap_drop"] for word in ("--cap-drop", right)),
            *(("--read-only",) if service["read_only"] else ()),
            *(word for place in service["tmpfs"] for word in ("--tmpfs", place)),
            *(word for mount in mounts for word in ("--volume", mount)),
            *(word for pair in values.items() for word in ("--env", "=".join(pair))),
            "genba-test", "-eu", "-c", service["command"][0].replace("$$", "$"),
        ]  # fmt: skip

    def _volume(self, name: str) -> Path:
        path = self.folder / "volumes" / name
        path.mkdir(parents=True, exist_ok=True)
        os.chown(path, 1000, 1000)
        return path

    def once(self, name: str, repository: Path) -> str:
        return self.engine.ask("run", "--rm", *self.words(name, repository))

    def start(self, name: str, repository: Path) -> str:
        made = self.engine.ask("run", "--detach", *self.words(name, repository))
        self.started.append(made)
        return made

    def said(self, container: str) -> str:
        environment = {**os.environ, **({"DOCKER_HOST": self.engine.host} if self.engine.host else {})}
        words = ["docker", "logs", container]
        result = subprocess.run(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return result.stdout.decode("utf-8", "replace")

    def clear(self) -> None:
        for container in self.started:
            with contextlib.suppress(subprocess.CalledProcessError):
                self.engine.ask("rm", "--force", container)
        for image in ("genba-test", "genba-test-base"):
            with contextlib.suppress(subprocess.CalledProcessError):
                self.engine.ask("rmi", "--force", image)


@pytest.fixture
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    if not os.environ.get(ASKED_FOR):
        pytest.skip(f"not run: building the image takes minutes; {ASKED_FOR}=1 asks for it")
    if os.geteuid() != 0 or (why := local_base_image.problem()):
        pytest.skip(f"not run: {'only root can fill the volumes' if os.geteuid() else why}")
    base = tmp_path_factory.getbasetemp()
    with engine_of(SandboxKind.DOCKER, base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) as made:
        yield made


def build(engine: Engine, folder: Path) -> None:
    """The image, on a base of this machine's own, from wheels that are fetched here: the build has no network."""
    wheels, settings = folder / "wheels", folder / "pip.conf"
    for lock in ("requirements.lock", "requirements-build.lock"):
        pinned = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--python-version", "3.11"]
        target = ["--requirement", str(TOP / lock), "--dest", str(wheels)]
        words = [sys.executable, "-m", "pip", "download", "--quiet", *pinned, *target]
        if subprocess.run(words, capture_output=True, check=False).returncode != 0:
            pytest.skip("not run: the wheels of the lock files cannot be fetched here")
    settings.write_text("[global]\nno-index = true\nfind-links = /wheels\n", "utf-8")
    local_base_image.write(folder / "base.tar", (wheels, "/wheels"), (settings, "/etc/pip.conf"))
    environment = {**os.environ, "DOCKER_BUILDKIT": "0", **({"DOCKER_HOST": engine.host} if engine.host else {})}
    for words in (
        ["import", str(folder / "base.tar"), "genba-test-base"],
        ["build", "--quiet", "--network", "none", "--file", str(DEPLOY / "Dockerfile"), "--tag", "genba-test",
         "--build-arg", "BASE=genba-test-base", "--build-arg", "PACKAGES=", str(TOP)],
    ):  # fmt: skip
        done = subprocess.run(["docker", *words], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_the_image_is_built_and_two_workers_of_it_work_off_tasks(
    engine: Engine,
    services: dict[str, Any],
    postgres: Postgres,  # noqa: F811
    project: Project,
    tmp_path: Path,
) -> None:
    with tempfile.TemporaryDirectory(prefix="genba-image-") as folder:
        build(engine, Path(folder))
    socket = next(Path(postgres.address.partition("host=")[2]).glob(".s.PGSQL.*[0-9]"))
    deployed = Deployed(engine, services, tmp_path, socket)
    try:
        assert engine.ask("run", "--rm", "--network", "none", "genba-test", "--version").startswith("genba ")
        yard = Yard(project, postgres.address)
        yard.set(work={"workers": 2}, merge={"remote": "origin", "base_branch": "main"}, project={"name": "project"})
        turns = {
            "turns": [{"do": [{"run": "echo $GENBA_ISSUE > task-$GENBA_ISSUE.txt; git add -A; git commit -qm w"}]}]
        }
        project.agent("worker", script={**turns, "repeat": True}, parameters={"issue": {"type": "number"}})
        deployed.once("remote", project.root)
        assert "the tables " in deployed.once("migrate", project.root)
        for number in (1, 2, 3):
            project.genba("task", "add", f"Task {number}", check=0)
        workers = [deployed.start(name, project.root) for name in ("worker-1", "worker-2")]

        def done() -> bool:
            with Blackboard.open(postgres.address, "project") as board:
                return [task.status for task in board.find()] == [TaskStatus.DONE] * 3

        try:
            until(done, DEADLINE)
        except AssertionError:
            raise AssertionError("\n".join(deployed.said(worker) for worker in workers)) from None
        names = project.git("--git-dir", str(tmp_path / "volumes/remote/project.git"), "ls-tree", "--name-only", "main")
        assert {"task-1.txt", "task-2.txt", "task-3.txt"} <= set(names.split())
        handle = engine.ask("exec", workers[0], "sh", "-c", "cd /srv/genba/project && genba doctor")
        assert re.search(r"✓ bubblewrap +works", handle), "the security options of the compose file are what walls need"
        server = deployed.start("server", project.root)

        def lives() -> bool:
            with contextlib.suppress(subprocess.CalledProcessError):
                engine.ask("exec", server, *services["server"]["healthcheck"]["test"][1:])
                return True
            return False

        until(lives, DEADLINE)
    finally:
        deployed.clear()
