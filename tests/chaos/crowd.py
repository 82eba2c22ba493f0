"""Who lives around a round: found among the processes of the machine, by what they were started with."""

import re
from pathlib import Path

from genba.connections.detached.job_dir import questions
from genba.connections.git.repository.layout import RepositoryLayout
from tests.fleet.chaos import parent, processes

_TASK = re.compile(rb"\0GENBA_ISSUE=(\d+)\0")
_RUN = re.compile(r"[a-z]+-(\d+)-\d+-[0-9a-f]+")


class Crowd:
    """Everybody who works on one repository, or for it."""

    def __init__(self, root: Path, home: Path) -> None:
        self.home = home
        self._runs = RepositoryLayout(root, root / ".git", root / ".git").run_folder("any").parent

    def supervisors(self) -> dict[int, int]:
        """Those who hold an agent right now, and the task of each."""
        try:
            folders = list(self._runs.iterdir())
        except OSError:
            return {}
        found = {}
        for folder in folders:
            task = _RUN.fullmatch(folder.name)
            for question in questions(folder):
                holder = question.holder() if question.is_held() else None
                if holder is not None:
                    found[holder.process] = int(task[1]) if task else 0
        return found

    def agents(self) -> dict[int, int]:
        """Processes of agents, the first of each, and their tasks. Commands of goals are none."""
        inside = str(self.home).encode()
        found = {}
        for pid, environment, _ in processes():
            task = _TASK.search(b"\0" + environment)
            if task and inside in environment:
                found[pid] = int(task[1])
        return {pid: task for pid, task in found.items() if parent(pid) not in found}

    def nurseries(self) -> list[int]:
        holders, mark = self.supervisors(), f"HOME={self.home}\0".encode()
        return [
            pid
            for pid, environment, command in processes()
            if mark in environment and b"genba.wiring.sessions.fork_server" in command and pid not in holders
        ]

    def anybody(self) -> list[str]:
        """Everybody who was started for this round and is still there."""
        mark, inside = f"HOME={self.home}\0".encode(), str(self.home).encode()
        return [
            f"{pid} {command.replace(bytes(1), b' ').decode('utf-8', 'replace')}"
            for pid, environment, command in processes()
            if mark in environment or (b"GENBA_RUN=" in environment and inside in environment)
        ]
