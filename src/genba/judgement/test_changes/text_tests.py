"""Tests of languages that Genba does not parse, by the words that they are written with.

The law: lines count without comments, indentation and the comma at their end. A test is a line that begins one; what
is not certain is taken as a real test.
"""

import re
from collections import Counter

import msgspec

from genba.judgement.test_changes.test_regressions import Loss

_SHOWN = 3
_WIDTH = 60
_FIRST_LINES = 5


class Case(msgspec.Struct, frozen=True):
    name: str
    hollow: bool
    """It is skipped, or has nothing that could fail."""


class TextChange(msgspec.Struct, frozen=True):
    """A file among the tests that is not Python, before and after. None where it is not there, or is no text."""

    path: str
    old: str | None
    new: str | None
    judged: bool = True
    """False where the task may change it."""


_QUOTED = r"""\s*\(?\s*(?P<quote>['"`])(?P<name>(?:\\.|(?!(?P=quote))[^\\\n])*)(?P=quote)"""
_JAVASCRIPT = re.compile(r"(?<![\w.$])(?P<word>[xf]?(?:it|test|specify))(?P<more>(?:\.\w+)*)\s*[(`]")
_FUNCTION = r"[^{};@\n]{0,300}?\b(?P<name>\w+)\s*(?:<[^<>()]*>\s*)?\([^{};]{0,2000}?\)[^{};\n]{0,200}\{?"
_MARKS = r"(?P<marks>(?:\s*(?:@\w[\w.]{0,100}(?:\([^()\n]{0,300}\))?|#?\[[^\]\n]{0,300}\])){0,10}+)\s*"
_JAVA = re.compile(rf"@(?:Test|ParameterizedTest|RepeatedTest|TestFactory)\b(?:\([^()\n]*\))?{_MARKS}{_FUNCTION}")
_SHARP = re.compile(rf"\[(?:Fact|Theory|Test|TestCase|TestMethod)\b[^\]\n]*\]{_MARKS}{_FUNCTION}")
_RUST = re.compile(
    rf"#\[(?:\w+::)*(?:test|rstest|test_case|quickcheck)\b[^\]\n]*\]{_MARKS}(?:pub\s+)?(?:async\s+)?fn\s+(?P<name>\w+)[^{{;]{{0,2000}}\{{"
)
_GO = re.compile(r"^func\s+(?P<name>(?:Test|Fuzz|Example)\w*)\s*\([^)\n]*\)\s*\{", re.MULTILINE)
_RUBY = re.compile(
    rf"^\s*(?:(?P<word>x?it|xspecify|x?scenario|test|specify|example){_QUOTED}|def\s+(?P<method>test_\w+))",
    re.MULTILINE,
)
_ELIXIR = re.compile(rf"^\s*(?:test|property){_QUOTED}", re.MULTILINE)
_PHP = re.compile(r"\bfunction\s+(?P<name>test\w+)\s*\([^)\n]*\)[^{;\n]*\{?")
_SWIFT = re.compile(r"\bfunc\s+(?P<name>test\w*)\s*\([^)\n]*\)[^{;\n]*\{")
_C = re.compile(r"^\s*(?:TYPED_)?TEST(?:_F|_P|_CASE|_METHOD)?\s*\((?P<name>[^)\n]*)\)?", re.MULTILINE)
_BATS = re.compile(rf"^\s*@test{_QUOTED}", re.MULTILINE)
_SHELL = re.compile(r"^\s*(?:function\s+)?(?P<name>test_?\w+)\s*\(\)", re.MULTILINE)
_GHERKIN = re.compile(r"^\s*(?:Scenario|Scenario Outline|Example):\s*(?P<name>.+)$", re.MULTILINE)
_DART = re.compile(rf"(?<![\w.])(?:test|testWidgets|it){_QUOTED}")
_PERL = re.compile(rf"^\s*subtest{_QUOTED}", re.MULTILINE)

_BY_ENDING: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(("js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "coffee", "vue", "svelte"), _JAVASCRIPT),
    **dict.fromkeys(("java", "kt", "kts", "groovy", "scala"), _JAVA),
    **dict.fromkeys(("cs", "fs", "vb"), _SHARP),
    **dict.fromkeys(("c", "cc", "cpp", "cxx", "h", "hpp"), _C),
    **dict.fromkeys(("ex", "exs"), _ELIXIR),
    **dict.fromkeys(("sh", "bash"), _SHELL),
    **dict.fromkeys(("dart", "lua", "hs"), _DART),
    **dict.fromkeys(("t", "pl"), _PERL),
    "rs": _RUST,
    "go": _GO,
    "rb": _RUBY,
    "cr": _RUBY,
    "php": _PHP,
    "swift": _SWIFT,
    "bats": _BATS,
    "feature": _GHERKIN,
}
_HASH_COMMENTS = frozenset(
    {"rb", "sh", "bash", "bats", "ex", "exs", "coffee", "feature", "yml", "yaml", "toml", "cr", "t"}
)
_PLAIN_TEXT = frozenset(
    {"json", "txt", "csv", "snap", "xml", "html", "out", "golden", "expected", "yml", "yaml", "toml", "sql"}
)
_IMPORT = re.compile(
    r"import\b.*|(?:export\s+)?(?:const|let|var)\s+[\w{},\s*]+=\s*require\(.*|}\s*from\s.*|use\s+[\w:{},\s*]+;?|using\s.*"
    r"|require(?:_relative)?\b.*|package\s.*|#include.*|alias\s.*|\"[\w./@-]+\"|from\s.*"
)
_SKIP = re.compile(
    r"""(?x)
    \b(?:it|test|describe|context|suite|specify)(?:\.\w+)*\.(?:skip|todo|fails|failing|skipIf|runIf|fixme)\b
    | \b(?:xit|xtest|xdescribe|xcontext|xspecify|xscenario|fit|fdescribe)\b\s*[("'`]
    | \b(?:it|test|describe|context|suite)(?:\.\w+)*\.only\b
    | \bthis\.skip\(
    | \b[tb]\.Skip(?:Now|f)?\( | \btesting\.Short\(
    | \#\[ignore\b
    | @(?:Disabled\w*|Ignore\w*|EnabledIf\w*)\b
    | \[(?:Ignore|Explicit)\b | \bSkip\s*=\s*" | \bAssert\.Ignore\(
    | \bmarkTest(?:Skipped|Incomplete)\(
    | ^\s*(?:pending|skip)\b(?!\s*[=:.]) | \bXCTSkip | \bGTEST_SKIP | \bDISABLED_\w+
    | @tag\s+:skip | @(?:skip|wip|ignore)\b
    """,
    re.MULTILINE,
)
_ONLY = re.compile(r"\b(?:it|test|describe|context|suite)(?:\.\w+)*\.only\b|\b(?:fit|fdescribe|fcontext)\b\s*[(\"'`]")
_WAY_OUT = re.compile(
    r"\bprocess\.exit\(|\bos\.Exit\(|\bprocess::exit\(|\bSystem\.exit\(|\bexit!?\(?\s*0|\bos\._exit\("
)
_EARLY = re.compile(
    r"return;?|if\s*\(?\s*(?:false|0|true)\s*\)?\s*(?:\{|then|return;?)*|#if\s+0|unless true|next|\{?\s*return;?\s*\}?"
)
_BEGINS = re.compile(r"\b(?:func|function|fn|def|class|describe|context|module|mod|it|test|void|fun|sub)\b|=>|\bdo\b")
_TRIVIAL = re.compile(
    r"""(?x)
    expect\(\s*(?:true|false|\d+|'[^']*'|"[^"]*")\s*\)(?:\.\w+)+(?:\([^()]*\))?
    | (?:Assert(?:ions)?\.|assert\.|self\.|\$this->)?
      (?:assert|assertTrue|assertThat|ok|IsTrue|True|XCTAssertTrue|assert!)
      \(?\s*(?:true|1|!false)\s*\)?
    | (?:assert_eq!|assertEquals|assertEqual|strictEqual|equal|AreEqual)\(\s*(\w+)\s*,\s*\1\s*\)
    | \bt\.(?:Log|Parallel|Helper|Skip)\w*\([^()]*\)
    | \b(?:console\.log|println!?|print|puts|fmt\.Println|System\.out\.println)\(?[^()\n]*\)?
    """
)
_WORDLESS = re.compile(
    r"\b(?:async|function|func|fn|do|end|return|done|then|begin|void|public|private|fun|t|true|assert)\b"
)
_NEXT_PART = re.compile(r"^\s*(?:describe|context|func|fn|def|class|function|mod|module|#\[|@\w)", re.MULTILINE)


def ending(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[2].lower()


def is_known_language(path: str) -> bool:
    return ending(path) in _BY_ENDING


def bare(path: str, text: str) -> str:
    """The text without comments, as far as its language is known."""
    kind = ending(path)
    if kind in _PLAIN_TEXT:
        return text
    if kind in _HASH_COMMENTS:
        return re.sub(r"(?m)^\s*#(?!\[|if\b|include\b).*", "", text)
    blocks = re.compile(r"(?s)(^|(?<=[\s;{}(),]))/\*.*?(?:\*/|\Z)", re.MULTILINE)
    return re.sub(r"(?m)(?:^|(?<=\s))//.*", "", blocks.sub(" ", text))


def lines_of(path: str, text: str) -> list[str]:
    """The lines that say something, without what formatting adds."""
    found = (re.sub(r"\s+", " ", line).strip().rstrip(",;").rstrip() for line in bare(path, text).splitlines())
    return [line for line in found if re.search(r"\w", line) and not _IMPORT.fullmatch(line)]


def cases_of(path: str, text: str) -> tuple[Case, ...]:
    """The tests in a file, in order."""
    pattern = _BY_ENDING.get(ending(path))
    if pattern is None:
        return ()
    code = bare(path, text)
    found = list(pattern.finditer(code))
    ends = [match.start() for match in found[1:]] + [len(code)]
    return tuple(_case(match, code[match.end() : end]) for match, end in zip(found, ends, strict=False))


def _case(match: re.Match[str], rest: str) -> Case:
    groups = match.groupdict()
    body = rest
    name = groups.get("name") or groups.get("method") or ""
    if not name:
        quoted = re.match(r"""[^'"`]{0,2000}?(['"`])((?:\\.|(?!\1)[^\\\n])*)\1""", rest)
        name, body = (quoted[2], rest[quoted.end() :]) if quoted else (match[0].strip(" (`"), rest)
    cut = _NEXT_PART.search(body)
    body = body[: cut.start()] if cut else body
    first = "\n".join([line for line in body.splitlines()[:_FIRST_LINES] if line.strip()][:2])
    skipped = _SKIP.search(match[0] + '"') is not None or _SKIP.search(first) is not None
    output = _WORDLESS.sub("", _TRIVIAL.sub("", body))
    return Case(" ".join(name.split())[:200], skipped or re.search(r"\w", output) is None)


def text_losses(changes: tuple[TextChange, ...]) -> list[Loss]:
    """What test files lose by their lines: a line counts as kept when it is in any changed test file of its kind."""
    before: dict[str, Counter[str]] = {}
    after: dict[str, Counter[str]] = {}
    for change in changes:
        kind = ending(change.path)
        before.setdefault(kind, Counter()).update(lines_of(change.path, change.old or ""))
        after.setdefault(kind, Counter()).update(lines_of(change.path, change.new or ""))
    missing = {kind: before[kind] - after[kind] for kind in before}
    losses: list[Loss] = []
    for change in changes:
        if change.judged:
            losses += _of_file(change, missing[ending(change.path)])
    return losses


def _of_file(change: TextChange, missing: Counter[str]) -> list[Loss]:
    path, old, new = change.path, change.old, change.new
    if old is None:
        return _new_file(path, new or "")
    gone = [line for line in lines_of(path, old) if missing[line]]
    if new is None:
        return [Loss("removes", _named(path, old, gone), path)] if gone else []
    skips = Counter(_SKIP.findall(bare(path, new))) - Counter(_SKIP.findall(bare(path, old)))
    if skips:
        return [Loss("skips", _newly_skipped(path, old, new) or next(iter(skips)).strip(" ([\"'`"), path)]
    if gone and not _only_reformatted(path, old, new):
        names = {case.name for case in cases_of(path, new)}
        lost = [case.name for case in cases_of(path, old) if case.name not in names]
        verb = "removes" if lost else "changes"
        return [Loss(verb, ", ".join(lost[:_SHOWN]) if lost else _quoted(gone[0]), path)]
    return _cut_short(path, old, new)


def _new_file(path: str, text: str) -> list[Loss]:
    """A new file can still reach the others."""
    if ending(path) in _PLAIN_TEXT:
        return []
    code = bare(path, text)
    found = _ONLY.search(code) if _BY_ENDING.get(ending(path)) is _JAVASCRIPT else None
    if found:
        return [Loss("skips", f"all but {found[0].strip()}", path)]
    return []


def _cut_short(path: str, old: str, new: str) -> list[Loss]:
    """New lines in the midst of old ones that keep the rest from being run."""
    if _WAY_OUT.search(bare(path, new)) and not _WAY_OUT.search(bare(path, old)):
        return [Loss("adds", "a call that ends the whole run", path)]
    if ending(path) in _PLAIN_TEXT:
        return []
    rest = [re.sub(r"\s+", " ", line).strip() for line in bare(path, old).splitlines() if line.strip()]
    at = 0
    block: list[str] = []
    for line in [re.sub(r"\s+", " ", line).strip() for line in bare(path, new).splitlines() if line.strip()]:
        if at < len(rest) and line == rest[at]:
            if _cuts(block):
                return [Loss("cuts short", _quoted(line), path)]
            at, block = at + 1, []
        else:
            block.append(line)
    return []


def _cuts(block: list[str]) -> bool:
    return any(_EARLY.fullmatch(line) for line in block) and not any(_BEGINS.search(line) for line in block)


def _named(path: str, text: str, gone: list[str]) -> str:
    names = [case.name for case in cases_of(path, text)]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more if names else _quoted(gone[0])


def _newly_skipped(path: str, old: str, new: str) -> str:
    had = {case.name for case in cases_of(path, old) if case.hollow}
    return ", ".join([case.name for case in cases_of(path, new) if case.hollow and case.name not in had][:_SHOWN])


def _quoted(line: str) -> str:
    return f'"{line[:_WIDTH]}{"…" if len(line) > _WIDTH else ""}"'


def _only_reformatted(path: str, old: str, new: str) -> bool:
    """Whether each test, and what comes before the first, is still there but for blanks, commas and quotes."""
    pattern = _BY_ENDING.get(ending(path))
    if pattern is None:
        return False
    code = bare(path, old)
    starts = [match.start() for match in pattern.finditer(code)]
    parts = [code[start:end] for start, end in zip([0, *starts], [*starts, len(code)], strict=True)]
    here = _squeezed(bare(path, new))
    return all(_squeezed(part).rstrip("})]") in here for part in parts)


def _squeezed(code: str) -> str:
    return re.sub(r"[\s,;]+", "", code).replace("'", '"').replace("`", '"')
