"""Commands of goals and checks behind walls: they run what an agent wrote."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from genba.connections.git.cells import borrowed_objects
from genba.connections.git.layout import RepositoryLayout
from genba.domain.ports import Processes, Sandbox, Walls
from genba.domain.processes import Command, Exit, Heard, service_mark
from genba.domain.walls import Cell, Gate, Network, WallLimits, proxy_variables
from genba.wiring.quarters import PROXY, PROXY_PORT, loopback_address, walled_environment
from genba.wiring.surroundings import readable_folders

CellFor = Callable[[Command], Cell | None]


class EnclosedCommands:
    """Runs each command behind walls of its own; one that needs none, as it is."""

    def __init__(self, sandbox: Sandbox, processes: Processes, cell_for: CellFor) -> None:
        self.sandbox = sandbox
        self.processes = processes
        self.cell_for = cell_for
        self._open: set[Walls] = set()

    async def run(self, command: Command, heard: Heard) -> Exit:
        cell = self.cell_for(command)
        if cell is None:
            return await self.processes.run(command, heard)
        walls = await self.sandbox.open(cell)
        self._open.add(walls)
        try:
            environment = inside(command.environment, cell.home, walls.ports)
            return await walls.run(msgspec.structs.replace(command, environment=environment), heard)
        finally:
            self._open.discard(walls)
            await asyncio.shield(walls.close())

    async def sweep(self, mark: str) -> int:
        ended = [await walls.sweep(mark) for walls in tuple(self._open)]
        return sum(ended) + await self.processes.sweep(mark)


class EnclosedSweeps:
    """Processes as they are, whose sweeps reach behind walls too: containers are nobody's children."""

    def __init__(self, sandbox: Sandbox, processes: Processes, folder: Path) -> None:
        self.sandbox = sandbox
        self.processes = processes
        self.folder = folder

    async def run(self, command: Command, heard: Heard) -> Exit:
        return await self.processes.run(command, heard)

    async def sweep(self, mark: str) -> int:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        place = str(self.folder)
        walls = await self.sandbox.open(Cell(run=mark, folder=place, tree=place, home=place))
        try:
            return await walls.sweep(mark)
        finally:
            await walls.close()


class Checkouts:
    """The cells of clean checkouts: each is a folder of its own, with a HOME that goes away with it."""

    def __init__(
        self,
        layout: RepositoryLayout,
        limits: WallLimits,
        read: tuple[str, ...],
        image: str,
        network: Network,
        allow: tuple[str, ...],
        environment: Mapping[str, str],
    ) -> None:
        self.layout = layout
        self.limits = limits
        self.image = image
        self.network = network
        self.allow = allow
        self.root = layout.own / "checkouts"
        self.readable = (*readable_folders(None, read, environment), *borrowed_objects(layout))

    def cell(self, command: Command) -> Cell | None:
        """The cell around a command in a checkout; None for what Genba runs elsewhere for itself."""
        workdir = Path(command.workdir)
        if not workdir.is_relative_to(self.root) or workdir == self.root:
            return None
        place = self.root / workdir.relative_to(self.root).parts[0]
        for name in ("home", "walls"):
            (place / name).mkdir(mode=0o700, exist_ok=True)
        asked_from_outside = command.mark.endswith(service_mark(""))
        return Cell(
            run=command.mark,
            folder=str(place / "walls"),
            tree=str(place / "tree"),
            home=str(place / "home"),
            readable=self.readable,
            gates=() if asked_from_outside else self._gates(),
            limits=self.limits,
            image=self.image,
            host_loopback=asked_from_outside,
        )

    def _gates(self) -> tuple[Gate, ...]:
        if self.network is Network.NONE:
            return ()
        from genba.connections.gates.proxy import AllowListProxy  # noqa: PLC0415  (only walls with a way out need it)

        proxy = AllowListProxy(self.network, self.allow, lambda _event: None, environment=os.environ)
        return (Gate(name=PROXY, port=PROXY_PORT, serve=proxy.serve),)


def inside(environment: Mapping[str, str], home: str, ports: Mapping[str, int]) -> dict[str, str]:
    """An environment as it is behind walls, with the way out of them."""
    way = proxy_variables(loopback_address(ports[PROXY])) if PROXY in ports else {}
    return {**walled_environment(environment, home), **way}
