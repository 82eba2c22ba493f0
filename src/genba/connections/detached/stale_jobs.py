"""Sweeps that spare the living: a run whose supervisor is at work has not died."""

import asyncio
from pathlib import Path

from genba.connections.detached.job_dir import questions
from genba.domain.ports import Processes
from genba.domain.processes import Command, Exit, OutputListener


def is_supervised(run_folder: Path) -> bool:
    """Whether a supervisor holds a question of this run."""
    return any(question.is_held() for question in questions(run_folder))


class DetachedProcesses:
    """Processes as they are, whose sweeps end nothing of a run that a supervisor holds."""

    def __init__(self, processes: Processes, runs: Path) -> None:
        self.processes = processes
        self.runs = runs
        """The folder with a folder for each run."""

    async def run(self, command: Command, on_output: OutputListener) -> Exit:
        return await self.processes.run(command, on_output)

    async def sweep(self, mark: str) -> int:
        if mark and "/" not in mark and await asyncio.to_thread(is_supervised, self.runs / mark):
            return 0
        return await self.processes.sweep(mark)
