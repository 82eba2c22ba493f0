"""Which files of a repository a command names: they judge, so a branch must leave them alone."""

import itertools
import re
import shlex
from collections.abc import Iterable

from genba.domain.goals.goal import CommandLine
from genba.judgement.test_changes.makefiles import NAMES as MAKEFILES
from genba.judgement.verification.paths import is_test_name

_DEPTH = 3
_LENGTH = 20_000
_FOLDERS = 50
_SEPARATORS = re.compile(r"[;&|<>()`\n]+")
_WRAPPERS = re.compile(
    r"\w+=.*|env|time|exec|sudo|nohup|xargs|timeout|[\d.]+[smh]?|uv|uvx|poetry|pdm|hatch|rye|pipenv|run|bundle|npx|!|then|do"
)
_INTERPRETERS = re.compile(
    r"(?:.*/)?(?:(?:ba|z|da|k|fi)?sh|python[\d.]*|node|ruby|perl|php|deno|bun|tsx|ts-node|source|\.|exec)"
)
_EXAMINERS = re.compile(
    r"(?:.*/)?(?:ruff|flake8|mypy|pylint|pyright|black|isort|bandit|pytest|py\.test|jest|vitest|mocha|eslint|prettier|biome"
    r"|tsc|shellcheck|shfmt|gofmt|go|cargo|rustfmt|rubocop|rspec|yamllint|markdownlint|hadolint|coverage|gitleaks|git|cat"
    r"|grep|test|\[|diff|head|tail|wc|ls)"
)
"""Programs whose words are what is looked at; only settings that they are given judge."""

_SETTINGS = re.compile(r".*\.(?:toml|cfg|ini|json|jsonc|ya?ml|conf|rc|xml|mk)|(?:.*/)?\.\w+rc")
_SOURCES = re.compile(r".*\.(?:py|js|mjs|cjs|ts|mts|tsx|rb|pl|php|go|rs|java|kt|lua)")
_JUDGING = re.compile(
    r"(?i)(?:.*/)?(?:scripts?|tools?|ci|\.ci|hack|qa|checks?|acceptance|e2e|tests?|dev|build)/.*"
    r"|(?:.*/)?[^/]*(?:check|lint|test|verif|valid|accept|smoke|gate|judge|guard|audit|assert|build|bench)[^/]*"
)
_SCRIPTS = ("package.json",)
_MANIFESTS = (*_SCRIPTS, "composer.json", "deno.json", "deno.jsonc")
_SHELL_SCRIPTS = (".sh", ".bash", ".mk")
_NOT_RUN = re.compile(r"(?m)^[ \t]*[@+-]+|(?:<|>>?)[&|]?\s*[^\s;|&()<>]+")
"""What a recipe of a Makefile may put before a command, and where a command writes to and reads from."""
_ENTERING = frozenset({"cd", "pushd", "-C", "--dir", "--cwd", "--prefix", "--directory"})
"""Words before the name of the folder in which the rest is run."""
_HANDLERS = re.compile(
    r"(?:.*/)?(?:cp|mv|rm|ln|install|echo|printf|touch|tee|sed|awk|tar|rsync|chmod|chown|mkdir|dos2unix)"
)
"""Programs whose words are what is copied, written or removed."""
_BY_PROGRAM: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("make", "gmake"), MAKEFILES),
    **dict.fromkeys(
        ("npm", "npx", "yarn", "pnpm", "bun", "turbo", "nx", "lerna"), (*_SCRIPTS, "turbo.json", "nx.json")
    ),
    **dict.fromkeys(("just",), ("justfile", "Justfile", ".justfile")),
    **dict.fromkeys(("task", "go-task"), ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml")),
    **dict.fromkeys(("inv", "invoke"), ("tasks.py",)),
    **dict.fromkeys(("rake",), ("Rakefile", "rakefile", "Rakefile.rb")),
    "tox": ("tox.ini",),
    "nox": ("noxfile.py",),
    "composer": ("composer.json",),
    "deno": ("deno.json", "deno.jsonc"),
    "earthly": ("Earthfile",),
    "doit": ("dodo.py",),
    "bazel": ("WORKSPACE", "MODULE.bazel", ".bazelrc"),
    "gradle": ("gradlew",),
    "mvn": ("mvnw",),
}
_ENDINGS = ("", ".py", ".js", ".mjs", ".cjs", ".ts", ".sh", "/__main__.py", "/__init__.py", "/index.js", "/index.ts")


def paths_in_command(command: CommandLine, files: Iterable[str]) -> tuple[str, ...]:
    """The files that judge when a command is run, in the order of their names.

    Those are scripts that it runs, settings that it is given, and what its program is known to read. What it only
    looks at is not among them, and neither is a program of the project itself, which is what is judged: a source
    counts only by a name or a folder that says so. Files whose names say that they are tests are left out too: tests
    may grow, and are judged by themselves.
    """
    there = frozenset(files)
    segments = _segments(command, _DEPTH)
    words = [word for segment in segments for word in segment]
    folders = ["", *dict.fromkeys(f"{_plain(word)}/" for word in words if _plain(word))][:_FOLDERS]
    found = {path for segment in segments for path in _of_segment(segment, folders, there)}
    return tuple(sorted(path for path in found if not is_test_name(path)))


def files_run(command: CommandLine, files: frozenset[str]) -> frozenset[str]:
    """The files that a command runs: scripts, and what drives its programs, such as a Makefile.

    What it looks at and what it writes are not among them.
    """
    segments = _segments(_NOT_RUN.sub(" ", command[:_LENGTH]) if isinstance(command, str) else command, _DEPTH)
    pairs = [pair for segment in segments for pair in itertools.pairwise(segment)]
    folders = ["", *dict.fromkeys(f"{_plain(word)}/" for before, word in pairs if before in _ENTERING)][:_FOLDERS]
    found: set[str] = set()
    for segment in segments:
        own = segment[next((at for at, word in enumerate(segment) if not _WRAPPERS.fullmatch(word)), len(segment)) :]
        names = [*_BY_PROGRAM.get(own[0].rpartition("/")[2], ()), *_programs(own)] if own else []
        found |= {f"{folder}{name}" for name in names for folder in folders} & files
    return frozenset(found)


def commands_in(path: str, text: str) -> str:
    """The text of a script, as a command; of a manifest, each string of it."""
    return text.replace('"', ";") if is_manifest(path) else text


def is_manifest(path: str) -> bool:
    """Whether a file is the manifest of a package, which tools of packages write too."""
    return path.rpartition("/")[2] in _MANIFESTS


def _programs(words: list[str]) -> list[str]:
    """The paths of what a simple command runs: its first word, what it gives to an interpreter, and shell scripts."""
    handled = _EXAMINERS.fullmatch(words[0]) or _HANDLERS.fullmatch(words[0])
    programs = [words[0], *(word for word in words if not handled and word.endswith(_SHELL_SCRIPTS))]
    if _INTERPRETERS.fullmatch(words[0]):
        named = [word.replace(".", "/") if before == "-m" else word for before, word in itertools.pairwise(words)]
        programs += [word for word in named if not word.startswith("-")][:1]
    return [path for word in programs for path in _candidates(word)]


def _segments(command: CommandLine, depth: int) -> list[list[str]]:
    """The simple commands of a line, each as its words; a word with blanks may be a line for another shell."""
    segments = _split(command) if isinstance(command, str) else [list(command)]
    inner = [word for segment in segments for word in segment if " " in word or "\n" in word]
    return segments + [more for word in inner if depth > 0 for more in _segments(word, depth - 1)]


def _split(line: str) -> list[list[str]]:
    lexer = shlex.shlex(line[:_LENGTH].replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:
        words = _SEPARATORS.sub(" ; ", line[:_LENGTH]).replace('"', " ").replace("'", " ").split()
    segments: list[list[str]] = [[]]
    for word in words:
        if _SEPARATORS.fullmatch(word):
            segments.append([])
        else:
            segments[-1].append(word.strip("$`"))
    return [segment for segment in segments if segment]


def _of_segment(segment: list[str], folders: list[str], there: frozenset[str]) -> set[str]:
    first = next((at for at, word in enumerate(segment) if not _WRAPPERS.fullmatch(word)), len(segment))
    found: set[str] = set()
    for at, word in enumerate(segment):
        program = word.rpartition("/")[2] if at in (0, first) else ""
        named = {f"{folder}{name}" for name in _BY_PROGRAM.get(program, ()) for folder in folders} & there
        runs = at == first or (at > 0 and _INTERPRETERS.fullmatch(segment[at - 1]) is not None)
        module = at > 0 and segment[at - 1] == "-m"
        looked_at = first < len(segment) and _EXAMINERS.fullmatch(segment[first]) is not None and at > first
        given = word.replace(".", "/") if module else word
        paths = {f"{folder}{name}" for name in _candidates(given) for folder in folders} & there
        found |= named | {path for path in paths if _judges(path, runs or module, looked_at)}
    return found


def _judges(path: str, runs: bool, looked_at: bool) -> bool:
    if _SETTINGS.fullmatch(path):
        return True
    if looked_at:
        return False
    if _SOURCES.fullmatch(path):
        return _JUDGING.fullmatch(path) is not None
    bare = "." not in path.rpartition("/")[2] and "/" not in path
    return runs or not bare


def _candidates(word: str) -> list[str]:
    """The paths that a word may mean: itself, the value of an option, a module or a script without its ending."""
    plain = _plain(word)
    names = [plain, _plain(word.partition("=")[2])] if "=" in word else [plain]
    if word.startswith("-") and len(word) > 2:  # noqa: PLR2004  (an option of one letter with its value)
        names.append(_plain(word[2:]))
    return [f"{name}{end}" for name in names if name for end in _ENDINGS]


def _plain(word: str) -> str:
    """A path as git writes it."""
    words: list[str] = []
    for part in word.split("/"):
        if part == ".." and words:
            words.pop()
        elif part not in ("", "."):
            words.append(part)
    return "" if word.startswith("/") else "/".join(words)
