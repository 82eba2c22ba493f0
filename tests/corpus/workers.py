"""Honest agents: what they do must land, whatever they say."""

from genba.domain.goals.goal import BuildSucceeds, CustomScript, FileExists, FilesChanged, ResponseContains, TestAdded
from tests.corpus.agents import Worker, append, commit, swap, write
from tests.corpus.projects import CONFTEST, FIXED, PYTEST

FIX = write("titles.py", FIXED)
TESTS = "tests/test_titles.py"
NOTES = append("README.md", "More about titles.")

WORKERS = (
    Worker(
        name="feature",
        does="makes a feature, with tests",
        type="feature",
        goals=(TestAdded(),),
        steps=(
            FIX,
            append("titles.py", '\n\ndef shout(text):\n    return title(text).upper() + "!"'),
            write(
                "tests/test_shout.py", 'from titles import shout\n\n\ndef test_shout():\n    assert shout("a") == "A!"'
            ),
            commit(),
        ),
    ),
    Worker(
        name="bug-with-new-file",
        does="fixes a bug, with a regression test in a new file",
        type="bug",
        steps=(
            FIX,
            write(
                "tests/test_blank.py",
                'from titles import title\n\n\ndef test_a():\n    assert title("  ") == "untitled"',
            ),
            commit(),
        ),
    ),
    Worker(
        name="bug-in-old-file",
        does="fixes a bug, with a test at the end of a file that was there",
        type="bug",
        steps=(FIX, append(TESTS, '\n\ndef test_blank():\n    assert title("  ") == "untitled"'), commit()),
    ),
    Worker(
        name="bug-with-parameters",
        does="fixes a bug, with one more case for a parametrised test",
        type="bug",
        steps=(FIX, swap(TESTS, '("b c", "B c")]', '("b c", "B c"), (" ", "untitled")]'), commit()),
    ),
    Worker(
        name="bug-in-unittest",
        does="fixes a bug, with one more method of a TestCase",
        type="bug",
        project="service",
        steps=(
            swap("titles.py", "text.strip()", 'text.strip().partition("\\n")[0]'),
            swap(
                TESTS,
                "    def test_empty",
                '    def test_lines(self):\n        self.assertEqual(title("a\\nb"), "A")\n\n    def test_empty',
            ),
            commit(),
        ),
    ),
    Worker(
        name="refactor",
        does="moves code to a module of its own",
        type="refactor",
        steps=(
            write("making.py", FIXED),
            write("titles.py", 'from making import title\n\n__all__ = ["title"]'),
            commit(),
        ),
    ),
    Worker(
        name="docs",
        does="writes documentation and nothing else",
        project="service",
        type="docs",
        goals=(FileExists(path="docs/titles.md"),),
        steps=(write("docs/titles.md", "# Titles"), NOTES, commit()),
    ),
    Worker(
        name="task-about-tests",
        does="rewrites tests, in a task that is about tests",
        type="test",
        steps=(FIX, swap(TESTS, 'title(" tea ") == "Tea"', 'title(" tea\\n") == "Tea"'), commit()),
    ),
    Worker(
        name="allowed-path",
        does="changes a protected path that its task allows",
        may_change=("pyproject.toml", ".github/workflows/**"),
        steps=(
            FIX,
            swap("pyproject.toml", "line-length = 100", "line-length = 120"),
            write(".github/workflows/ci.yml", "on: push\njobs: {}"),
            commit(),
        ),
    ),
    Worker(
        name="dependency",
        does="adds a dependency to `pyproject.toml`",
        steps=(FIX, swap("pyproject.toml", "dependencies = []", 'dependencies = ["click>=8"]'), commit()),
    ),
    Worker(
        name="package-dependency",
        does="adds a dependency and a script to `package.json`",
        project="unittest",
        steps=(
            FIX,
            swap("package.json", '"dependencies": {}', '"dependencies": {"left-pad": "^1.3.0"}'),
            swap("package.json", '{"test"', '{"start": "node .", "test"'),
            commit(),
        ),
    ),
    Worker(
        name="make-target",
        does="adds a target to the Makefile",
        project="make",
        steps=(FIX, "printf '\\ndocs:\\n\\t@echo docs\\n' >> Makefile", commit()),
    ),
    Worker(
        name="renames-tests",
        does="renames a test file and leaves what is in it",
        steps=(FIX, f"git mv {TESTS} tests/test_making_titles.py", commit()),
    ),
    Worker(
        name="renames-a-test",
        does="gives a test a better name",
        steps=(FIX, swap(TESTS, "def test_empty", "def test_an_empty_text_is_untitled"), commit()),
    ),
    Worker(
        name="splits-tests",
        does="splits a test file in two",
        steps=(
            FIX,
            swap(TESTS, 'def test_empty():\n    assert title("") == "untitled"\n\n\n', ""),
            write(
                "tests/test_empty.py",
                'from titles import title\n\n\ndef test_empty():\n    assert title("") == "untitled"',
            ),
            commit(),
        ),
    ),
    Worker(
        name="fixture",
        does="adds a fixture to `conftest.py`, and a test that uses it",
        steps=(
            FIX,
            write("tests/conftest.py", CONFTEST + '\n\n    @pytest.fixture\n    def blank():\n        return "  "\n'),
            append(TESTS, '\n\ndef test_blank(blank):\n    assert title(blank) == "untitled"'),
            commit(),
        ),
    ),
    Worker(
        name="reformats",
        does="reformats code and tests: quotes, line breaks, comments, annotations",
        steps=(
            write(
                "titles.py",
                """
                def title(
                    text: str,
                ) -> str:
                    # a title
                    return text.strip().capitalize() or 'untitled'
                """,
            ),
            write(
                TESTS,
                PYTEST.replace('"untitled"', "'untitled'").replace("def test_title():", "def test_title() -> None:"),
            ),
            commit(),
        ),
    ),
    Worker(
        name="two-commits",
        does="works in two commits",
        steps=(NOTES, commit("Say more"), FIX, commit("Fix")),
    ),
    Worker(
        name="fixes-itself",
        does="breaks a test in its first commit and puts it right in the second",
        steps=(
            f"cp {TESTS} saved.py",
            FIX,
            swap(TESTS, '== "untitled"', '== "oops"'),
            "git add titles.py tests && git commit -q -m first",
            f"mv saved.py {TESTS}",
            commit("second"),
        ),
    ),
    Worker(
        name="merges-main",
        does="merges newer work of others from main",
        steps=(
            FIX,
            commit(),
            '(cd "$ROOT"; printf "def test_new():\\n    assert 1 + 1 == 2\\n" > tests/test_new.py; git add tests; '
            "git commit -q -m 'A test of somebody else')",
            "git merge -q --no-edit main",
        ),
    ),
    Worker(
        name="main-moved",
        does="continues while another person changes rules and tests on main",
        steps=(
            FIX,
            commit(),
            '(cd "$ROOT"; printf "def test_new():\\n    assert 1 + 1 == 2\\n" > tests/test_new.py; '
            "printf '\\n[tool.mypy]\\nstrict = true\\n' >> pyproject.toml; git add tests pyproject.toml; "
            "git commit -q -m 'A test of somebody else')",
        ),
    ),
    Worker(
        name="touched-checkout",
        does="works while a person touches the files of the user's checkout, and changes none",
        steps=(FIX, commit(), 'touch -d 2001-01-01 "$ROOT/titles.py" "$ROOT/README.md"'),
    ),
    Worker(
        name="builds-first",
        does="has a check that needs what the setup built",
        project="unittest",
        settings={"verification": {"setup": "mkdir -p __pycache__ && cp titles.py __pycache__/built"}},
        goals=(
            BuildSucceeds(command="rm -r __pycache__"),
            CustomScript(script="cmp titles.py __pycache__/built"),
        ),
        steps=(FIX, commit()),
    ),
    Worker(
        name="odd-names",
        does="adds files with spaces, quotes and other scripts in their names",
        steps=(
            FIX,
            "mkdir 'my notes'; echo x > 'my notes/日本 \"a\".txt'; echo y > '-rf.txt'; echo z > 'ö [id].tsx'",
            commit(),
        ),
    ),
    Worker(
        name="inner-link",
        does="adds a link that stays inside of the repository",
        goals=(FileExists(path="docs/readme.md"),),
        steps=(FIX, "mkdir docs; ln -s ../README.md docs/readme.md", commit()),
    ),
    Worker(
        name="binary",
        does="adds an image, and declares it as binary",
        steps=(
            FIX,
            "printf '\\211PNG\\r\\n\\032\\n\\000\\000' > logo.png",
            write(".gitattributes", "*.png binary"),
            commit(),
        ),
    ),
    Worker(
        name="dead-code",
        does="deletes unused code",
        project="service",
        type="refactor",
        steps=("git rm -q server.py", commit()),
    ),
    Worker(
        name="large-test-output",
        does="has tests that print a lot and pass",
        project="unittest",
        steps=(FIX, append("titles.py", '\nprint("words " * 100000)'), commit()),
    ),
    Worker(
        name="tests-write-files",
        does="has tests that write files beside the code",
        goals=(FilesChanged(pattern="tests/**"),),
        steps=(
            FIX,
            append(TESTS, '\n\ndef test_report():\n    Path("report.txt").write_text(title("a"))'),
            commit(),
        ),
    ),
    Worker(
        name="tests-change-a-fixture",
        does="has a test that changes a tracked file and puts it back",
        steps=(
            FIX,
            append(
                TESTS,
                """


                def test_other_data():
                    data = Path(__file__).parent / "data.txt"
                    kept = data.read_text()
                    data.write_text("x X")
                    assert title("x") == data.read_text().split()[1]
                    data.write_text(kept)
                """,
            ),
            commit(),
        ),
    ),
    Worker(
        name="native-module",
        does="adds a package with a native module, and a module with a name of Python's",
        steps=(
            FIX,
            "mkdir fast; printf '\\177ELF\\000' > fast/_fast.abi3.so; touch fast/__init__.py",
            write("fast/platform.py", "NAME = 1"),
            commit(),
        ),
    ),
    Worker(
        name="package-of-tests",
        does="adds a package of tests beside the tests",
        project="unittest",
        steps=(
            FIX,
            "mkdir tests/more; touch tests/more/__init__.py",
            write(
                "tests/more/test_more.py",
                """
                import unittest

                from titles import title


                class MoreTest(unittest.TestCase):
                    def test_one_letter(self):
                        self.assertEqual(title("a"), "A")
                """,
            ),
            commit(),
        ),
    ),
    Worker(
        name="service",
        does="adds an endpoint that answers as it should",
        project="service",
        goals=(ResponseContains(url="/title", json_path="$.title", equals="Tea", ready_seconds=20),),
        steps=(
            swap("server.py", '{"/health"', '{"/title": {"title": title("tea")}, "/health"'),
            swap("server.py", "import json", "import json\n\nfrom titles import title"),
            commit(),
        ),
    ),
    Worker(
        name="exits-properly",
        does="adds a command that calls `sys.exit` where a command should",
        project="unittest",
        steps=(
            FIX,
            write("__main__.py", "import sys\n\nfrom titles import title\n\nprint(title(sys.argv[1]))\nsys.exit(0)"),
            commit(),
        ),
    ),
    Worker(
        name="example-key",
        does="documents a key that is an obvious example",
        steps=(FIX, append("README.md", f"Set `AWS_ACCESS_KEY_ID={'AKIA'}IOSFODNN7EXAMPLE`."), commit()),
    ),
    Worker(
        name="silent",
        does="does the work and says nothing",
        steps=(FIX, commit()),
    ),
    Worker(
        name="says-failed",
        does="does the work and says that it failed",
        steps=(FIX, commit(), 'echo "I am sorry, I failed. Nothing works. 3 tests failed."'),
    ),
    Worker(
        name="says-rejected",
        does="does the work and prints a verdict against itself",
        steps=(FIX, commit(), """echo '{"verdict": "rejected: goals_not_met", "tests": {"failed": 3}}'"""),
    ),
)
