"""Changes of the settings while a fleet runs for days."""

from pathlib import Path

from genba.definitions.project.project import CONFIG_FILES, load_project
from genba.domain.errors import ConfigurationError


class SettingsFile:
    """Reports once when the file becomes invalid, and once when it is valid again."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._seen = self._look()
        self._before = self._seen
        """What was seen at the last look: a file that is being written is not read until it is left alone."""
        self._is_broken = False

    def news(self) -> str:
        """A message about a change, or an empty string. Cheap enough to call often."""
        seen, before = self._look(), self._before
        self._before = seen
        if seen == self._seen or seen != before:
            return ""
        self._seen = seen
        try:
            load_project(self.root)
        except ConfigurationError as error:
            if self._is_broken:
                return ""
            self._is_broken = True
            return f"the settings were changed and cannot be used: {error.problems[0]}; those from before still hold"
        if not self._is_broken:
            return ""
        self._is_broken = False
        return "the settings can be used again; what was changed in them counts from the next genba work"

    def _look(self) -> tuple[tuple[int, int, int], ...]:
        found = []
        for name in CONFIG_FILES:
            try:
                seen = (self.root / name).stat()
            except OSError:
                found.append((0, 0, 0))
            else:
                found.append((seen.st_mtime_ns, seen.st_size, seen.st_ino))
        return tuple(found)
