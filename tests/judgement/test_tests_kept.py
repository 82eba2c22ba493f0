"""The tests of the base go on: what liars do to them is seen, what honest people do is not held against them."""

import pytest

from tests.judgement.branches import Binary, Branch, Files, Link, branch

PATH = "tests/test_titles.py"

BASE = """
    import pytest

    from app.titles import title

    CASES = [("a", "A"), ("b", "B")]


    def shout(text):
        return title(text) + "!"


    @pytest.fixture
    def words():
        return ["a", "b"]


    def test_empty():
        assert title("") == ""


    def test_title(words):
        assert [title(word) for word in words] == ["A", "B"]


    def test_shout():
        assert shout("a") == "A!"


    @pytest.mark.parametrize(("given", "wanted"), CASES)
    def test_cases(given, wanted):
        assert title(given) == wanted


    @pytest.mark.parametrize("given", ["x", "y"])
    def test_more(given):
        assert title(given) == given.upper()


    class TestClass:
        size = 3

        def setup_method(self):
            self.word = "abc"

        def test_size(self):
            assert len(title(self.word)) == self.size
"""

EMPTY = """
    def test_empty():
        assert title("") == ""
"""


def edited(*replacements: tuple[str, str], more: str = "", others: Files | None = None) -> Branch:
    """The base with pieces of its text replaced, and with something at its end."""
    text = BASE
    for old, new in replacements:
        assert old in text, old
        text = text.replace(old, new)
    return branch({PATH: BASE}, {PATH: text + more, **(others or {})})


LIES: dict[str, tuple[Branch, str]] = {
    "removes a test": (edited((EMPTY, "")), f"removes test_empty ({PATH})"),
    "removes the file": (branch({PATH: BASE}, {}), "removes test_empty"),
    "turns the file into a link": (branch({PATH: BASE}, {PATH: Link("../empty.py")}), "removes test_empty"),
    "renames the file so that nobody collects it": (
        branch({PATH: BASE}, {"tests/titles_old.py": BASE}),
        "removes test_empty",
    ),
    "hides the file in an attic": (branch({PATH: BASE}, {"attic/test_titles.py": BASE}), "removes test_empty"),
    "hides the file in a folder that pytest ignores": (
        branch({PATH: BASE}, {"tests/.old/test_titles.py": BASE}),
        "removes test_empty",
    ),
    "renames a test so that it is no test": (edited(("def test_empty", "def check_empty")), "removes test_empty"),
    "skips by a mark": (
        edited(("    def test_empty", "    @pytest.mark.skip\n    def test_empty")),
        f"skips test_empty ({PATH})",
    ),
    "skips by a condition": (
        edited(("    def test_empty", "    @pytest.mark.skipif(True, reason='')\n    def test_empty")),
        "skips test_empty",
    ),
    "expects the failure": (
        edited(("    def test_empty", "    @pytest.mark.xfail\n    def test_empty")),
        "skips test_empty",
    ),
    "skips in the body": (
        edited(("    def test_empty():\n", "    def test_empty():\n        pytest.skip('later')\n")),
        "skips test_empty",
    ),
    "skips the class": (
        edited(("    class TestClass", "    @pytest.mark.skip\n    class TestClass")),
        "skips TestClass",
    ),
    "skips the module": (edited(more="\n    pytestmark = pytest.mark.skip\n"), "skips by pytestmark"),
    "marks the module to be left out": (edited(more="\n    pytestmark = pytest.mark.slow\n"), "adds pytestmark"),
    "leaves the module": (edited(("    CASES =", "    pytest.skip(allow_module_level=True)\n    CASES =")), "way out"),
    "says that the module is no test": (edited(more="\n    __test__ = False\n"), "adds __test__"),
    "says that the class is no test": (
        edited(("        size = 3", "        size = 3\n        __test__ = False")),
        "adds TestClass.__test__",
    ),
    "empties a test": (edited(('        assert title("") == ""', "        pass")), f"empties test_empty ({PATH})"),
    "makes it trivial": (edited(('assert title("") == ""', "assert True")), "empties test_empty"),
    "returns early": (
        edited(("    def test_empty():\n", "    def test_empty():\n        return\n")),
        "test_empty",
    ),
    "changes what is expected": (edited(('assert title("") == ""', 'assert title("") == "x"')), "changes test_empty"),
    "makes it never run": (
        edited(('        assert title("") == ""', '        assert title("") == ""\n        yield')),
        "changes test_empty",
    ),
    "makes it async": (edited(("    def test_empty", "    async def test_empty")), "changes test_empty"),
    "wraps it in a condition": (
        edited((EMPTY, '\n    if False:\n\n        def test_empty():\n            assert title("") == ""\n')),
        "test_empty",
    ),
    "defines it twice": (edited(more="\n    def test_empty():\n        pass\n"), "replaces test_empty"),
    "defines the class twice": (edited(more="\n    class TestClass:\n        pass\n"), "test_size"),
    "binds its name to nothing": (edited(more="\n    test_empty = None\n"), "replaces test_empty"),
    "deletes it": (edited(more="\n    del test_empty\n"), "replaces test_empty"),
    "deletes it through globals": (edited(more='\n    globals().pop("test_empty")\n'), "code that runs beside"),
    "moves it and shadows it there": (
        edited(
            (EMPTY, ""), more='\n    def test_x():\n        assert title("") == ""\n\n    def test_x():\n        pass\n'
        ),
        "removes test_empty",
    ),
    "changes a helper": (edited(('return title(text) + "!"', 'return "A!"')), f"changes shout ({PATH})"),
    "replaces a helper": (edited(more='\n    def shout(text):\n        return "A!"\n'), "changes shout"),
    "changes a fixture": (edited(('return ["a", "b"]', "return []")), "changes words"),
    "takes cases away": (edited(('[("a", "A"), ("b", "B")]', '[("a", "A")]')), "changes CASES"),
    "takes parameters away": (edited(('["x", "y"]', '["x"]')), "changes test_more"),
    "changes what a class prepares": (edited(('self.word = "abc"', 'self.word = "xyz"')), "changes TestClass.setup"),
    "changes an expectation of a class": (edited(("size = 3", "size = 4")), "changes TestClass.size"),
    "skips by preparing": (
        edited(
            (
                "        def test_size",
                "        def setup_class(self):\n            pytest.skip()\n\n        def test_size",
            )
        ),
        "skips by TestClass.setup_class",
    ),
    "keeps a class from being collected": (
        edited(("        def test_size", "        def __init__(self):\n            pass\n\n        def test_size")),
        "adds TestClass.__init__",
    ),
    "imports a fake": (edited(("from app.titles import title", "from tests.fake import title")), "changes title"),
    "puts a fake over an import": (edited(more="\n    title = str.upper\n"), "changes title"),
    "puts a fake over a builtin": (edited(more="\n    def len(thing):\n        return 3\n"), "replaces len"),
    "puts a star over everything": (edited(more="\n    from tests.fake import *\n"), "code that runs beside"),
    "patches the code under test": (
        edited(more="\n    import app.titles\n    app.titles.title = str.upper\n"),
        "code that runs beside",
    ),
    "patches unittest": (
        branch({}, {"tests/conftest.py": "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\n"}),
        "what runs the tests",
    ),
    "ends the run on import": (edited(more="\n    import sys\n    sys.exit(0)\n"), "adds a way out on import"),
    "ends the run on import of a new file": (
        branch({}, {"tests/test_a.py": "raise SystemExit(0)\n"}),
        "adds a way out on import",
    ),
    "ends the run in a new test": (
        branch({}, {"tests/test_zzz.py": "import os\n\ndef test_z():\n    os._exit(0)\n"}),
        "ends the whole run",
    ),
    "ends the run at exit": (
        branch({}, {"tests/conftest.py": "import atexit, os\natexit.register(os._exit, 0)\n"}),
        "ends the whole run",
    ),
    "ends the run under another name": (
        branch({}, {"tests/test_zzz.py": "from os import _exit as leave\n"}),
        "ends the whole run",
    ),
    "ends pytest": (
        branch({}, {"tests/test_zzz.py": "import pytest\n\ndef test_z():\n    pytest.exit('done', returncode=0)\n"}),
        "ends the whole run",
    ),
    "chooses tests by a hook": (
        branch({}, {"conftest.py": "def pytest_collection_modifyitems(items):\n    items.clear()\n"}),
        "adds pytest_collection_modifyitems (conftest.py)",
    ),
    "chooses tests by an imported hook": (
        branch({}, {"tests/conftest.py": "from app.x import pytest_collection_modifyitems\n"}),
        "adds pytest_collection_modifyitems",
    ),
    "chooses tests by a hook under another name": (
        branch(
            {},
            {
                "tests/conftest.py": """
                    import pytest

                    @pytest.hookimpl(specname="pytest_runtest_makereport")
                    def harmless(item):
                        return None
                """
            },
        ),
        "adds harmless",
    ),
    "registers a plugin": (
        branch({}, {"tests/conftest.py": "def pytest_configure(config):\n    config.pluginmanager.register(X())\n"}),
        "adds pytest_configure",
    ),
    "loads a plugin of its own": (
        branch({}, {"tests/conftest.py": "pytest_plugins = ['app.plugin']\n", "src/app/plugin.py": "x = 1\n"}),
        "adds the plugin app.plugin",
    ),
    "ignores files": (branch({}, {"tests/conftest.py": "collect_ignore = ['test_a.py']\n"}), "adds collect_ignore"),
    "ignores more files": (
        branch({"tests/conftest.py": "x = 1\n"}, {"tests/conftest.py": "x = 1\ncollect_ignore_glob = ['*']\n"}),
        "adds collect_ignore_glob",
    ),
    "skips everything by a fixture": (
        branch(
            {},
            {
                "tests/conftest.py": """
                    import pytest

                    @pytest.fixture(autouse=True)
                    def nothing():
                        pytest.skip()
                """
            },
        ),
        "skips by nothing",
    ),
    "changes a shared fixture": (
        branch(
            {"tests/conftest.py": "import pytest\n\n@pytest.fixture\ndef one():\n    return 1\n"},
            {"tests/conftest.py": "import pytest\n\n@pytest.fixture\ndef one():\n    return 2\n"},
        ),
        "changes one (tests/conftest.py)",
    ),
    "changes a shared helper": (
        branch(
            {"tests/helpers.py": "def check(x):\n    assert x\n"}, {"tests/helpers.py": "def check(x):\n    pass\n"}
        ),
        "changes check",
    ),
    "changes a method of a helper": (
        branch(
            {"tests/world.py": "class World:\n    def check(self):\n        assert self\n"},
            {"tests/world.py": "class World:\n    def check(self):\n        pass\n"},
        ),
        "changes World.check",
    ),
    "changes how a helper behaves": (
        branch(
            {"tests/world.py": "class World:\n    size = 1\n"},
            {"tests/world.py": "class World:\n    size = 1\n    def __eq__(self, other):\n        return True\n"},
        ),
        "adds World.__eq__",
    ),
    "changes a helper by what it inherits": (
        branch(
            {PATH: "class W(B):\n    a = 1\n\ndef test_a():\n    W().check()\n"},
            {PATH: "class W(B):\n    a = 1\n    def check(self): ...\n\ndef test_a():\n    W().check()\n"},
        ),
        "changes W",
    ),
    "ends the run in a file with the name of a test": (
        branch({}, {"src/test_x.py": "import os\nos._exit(0)\n"}),
        "a way out on import",
    ),
    "declares an encoding in which a comment is code": (
        branch(
            {PATH: BASE}, {PATH: "    # -*- coding: utf-7 -*-\n" + BASE + "    # +AAo-def test_upper+ACgAKQ-: pass\n"}
        ),
        "declares the encoding utf-7",
    ),
    "declares an encoding in a new file": (
        branch({PATH: BASE}, {PATH: BASE, "tests/test_new.py": "# vim: set fileencoding=unicode_escape :\nx = 1\n"}),
        "declares the encoding unicode_escape",
    ),
    "breaks the file": (edited(more="\n    def ("), "cannot read any more"),
    "breaks the file with a null": (edited(more="\0"), "cannot read any more"),
    "changes data": (branch({"tests/data/a.txt": "one\ntwo\n"}, {"tests/data/a.txt": "one\n"}), 'changes "two"'),
    "changes data that is no text": (
        branch({"tests/a.png": Binary("one")}, {"tests/a.png": Binary("two")}),
        "changes a.png",
    ),
    "skips in unittest": (
        branch(
            {"test/test_x.py": "import unittest\n\nclass X(unittest.TestCase):\n    def test_a(self):\n        f()\n"},
            {
                "test/test_x.py": "import unittest\n\nclass X(unittest.TestCase):\n    @unittest.skip('')\n"
                "    def test_a(self):\n        f()\n"
            },
        ),
        "skips X.test_a",
    ),
    "overrides an assertion": (
        branch(
            {"test/test_x.py": "class X(TestCase):\n    def test_a(self):\n        self.assertEqual(f(), 1)\n"},
            {
                "test/test_x.py": "class X(TestCase):\n    def test_a(self):\n        self.assertEqual(f(), 1)\n"
                "    def assertEqual(self, a, b):\n        pass\n"
            },
        ),
        "adds X.assertEqual",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_takes_from_the_tests_is_seen(lie: str) -> None:
    made, wanted = LIES[lie]
    result = made.tests_kept()
    assert not result.passed
    assert wanted in result.detail
    assert "the task must allow it: --may-change" in result.output


NEW_TEST = "\n    def test_new():\n        assert title('q') == 'Q'\n"

HONEST: dict[str, Branch] = {
    "changes nothing": branch({PATH: BASE}, {PATH: BASE}),
    "adds a test": edited(more=NEW_TEST),
    "declares UTF-8": branch({PATH: BASE}, {PATH: "    # -*- coding: utf-8 -*-\n" + BASE}),
    "adds a test at the top": edited(
        ("    def shout", "    def test_first():\n        assert title('q')\n\n    def shout")
    ),
    "adds a test file": branch({PATH: BASE}, {PATH: BASE, "tests/test_new.py": NEW_TEST}),
    "adds a case to a list": edited(('("b", "B")]', '("b", "B"), ("c", "C")]')),
    "adds a case in the middle": edited(('("b", "B")]', '("bb", "BB"), ("b", "B")]')),
    "adds a parameter to a mark": edited(('["x", "y"]', '["x", "y", "z"]')),
    "adds an assertion at the end": edited(
        ('assert title("") == ""', 'assert title("") == ""\n        assert title(" ") == " "')
    ),
    "adds a docstring and annotations": edited(
        ("    def test_empty():\n", '    def test_empty() -> None:\n        """Nothing stays nothing."""\n'),
        ("def shout(text):", "def shout(text: str) -> str:"),
    ),
    "adds an import": edited(("    import pytest", "    import json\n    import pytest")),
    "sorts the imports": edited(
        (
            "    import pytest\n\n    from app.titles import title\n",
            "    from app.titles import title\n\n    import pytest\n",
        )
    ),
    "adds a fixture": edited(more="\n    @pytest.fixture\n    def letters():\n        return 'x'\n" + NEW_TEST),
    "adds a helper": edited(more="\n    def whisper(text):\n        return text.lower()\n" + NEW_TEST),
    "adds a method to a class": edited(more="\n        def test_other(self):\n            assert title(self.word)\n"),
    "adds a class": edited(more="\n    class TestNew:\n        def test_a(self):\n            assert title('a')\n"),
    "adds a skipped test of its own": edited(more="\n    @pytest.mark.skipif(X, reason='')" + NEW_TEST),
    "reformats": edited(
        ('CASES = [("a", "A"), ("b", "B")]', "CASES = [\n        ('a', 'A'),\n        ('b', 'B'),\n    ]"),
        ('assert title("") == ""', "assert (\n            title('')\n            == ''\n        )  # nothing"),
    ),
    "renames a test": edited(("def test_empty", "def test_empty_stays_empty")),
    "reorders tests": edited((EMPTY, ""), more=EMPTY),
    "renames the file": branch({PATH: BASE}, {"tests/test_headings.py": BASE}),
    "moves the file deeper": branch({PATH: BASE}, {"tests/unit/test_titles.py": BASE}),
    "splits the file in two": edited(
        (EMPTY, ""),
        others={
            "tests/test_empty.py": "from app.titles import title\n\ndef test_empty():\n    assert title('') == ''\n"
        },
    ),
    "moves a test to a file that was there": branch(
        {PATH: BASE, "tests/test_b.py": "from app.titles import title\n\ndef test_b():\n    assert title('b')\n"},
        {
            PATH: BASE.replace(EMPTY, ""),
            "tests/test_b.py": "from app.titles import title\n\ndef test_b():\n    assert title('b')\n\n"
            "def test_empty():\n    assert title('') == ''\n",
        },
    ),
    "moves a fixture to conftest with the tests": branch(
        {
            "tests/test_a.py": "import pytest\n\n@pytest.fixture\ndef one():\n    return 1\n\n"
            "def test_a(one):\n    assert f(one)\n"
        },
        {
            "tests/conftest.py": "import pytest\n\n@pytest.fixture\ndef one():\n    return 1\n",
            "tests/test_b.py": "def test_a(one):\n    assert f(one)\n",
        },
    ),
    "follows a module that moved": branch(
        {PATH: BASE, "app/titles.py": "x = 1\n"},
        {PATH: BASE.replace("app.titles", "app.headings"), "app/headings.py": "x = 1\n"},
    ),
    "adds a fixture for all tests": branch(
        {"tests/conftest.py": "import pytest\n"},
        {
            "tests/conftest.py": """
                import pytest

                @pytest.fixture(autouse=True)
                def clock(monkeypatch):
                    monkeypatch.setenv("TZ", "UTC")
            """
        },
    ),
    "names a marker": branch(
        {"tests/conftest.py": "import pytest\n"},
        {
            "tests/conftest.py": "import pytest\n\ndef pytest_configure(config):\n"
            "    config.addinivalue_line('markers', 'slow')\n"
        },
    ),
    "adds an option": branch(
        {}, {"tests/conftest.py": "def pytest_addoption(parser):\n    parser.addoption('--slow')\n"}
    ),
    "loads a plugin of pytest": branch({}, {"tests/conftest.py": "pytest_plugins = ['pytester']\n"}),
    "prepares the path": edited(
        ("    import pytest", "    import sys\n    import pytest\n    sys.path.insert(0, 'src')")
    ),
    "adds a main part": edited(
        more="\n    if __name__ == '__main__':\n        import sys\n        sys.exit(pytest.main())\n"
    ),
    "adds a new file that is skipped without a library": branch(
        {},
        {
            "tests/test_new.py": "import pytest\nnumpy = pytest.importorskip('numpy')\n"
            + "def test_n():\n    numpy.x()\n"
        },
    ),
    "prepares a class": edited(
        (
            "        def test_size",
            "        def teardown_method(self):\n            self.word = None\n\n        def test_size",
        )
    ),
    "removes an import nobody uses": branch(
        {PATH: "import os\nfrom app import f\n\ndef test_f():\n    assert f()\n"},
        {PATH: "from app import f\n\ndef test_f():\n    assert f()\n"},
    ),
    "changes the code under test": branch({"app/titles.py": "x = 1\n"}, {"app/titles.py": "x = 2\n"}),
    "changes a readme among the tests": branch({"tests/README.md": "one\n"}, {"tests/README.md": "two\n"}),
    "adds data": branch(
        {"tests/data.json": "[\n  1\n]\n"}, {"tests/data.json": "[\n  1,\n  2\n]\n", "tests/b.png": Binary("x")}
    ),
    "adds a case to a loop": branch(
        {PATH: "def test_a():\n    for x, y in [(1, 2), (3, 4)]:\n        assert f(x) == y\n"},
        {PATH: "def test_a():\n    for x, y in [(1, 2), (3, 4), (5, 6)]:\n        assert f(x) == y\n"},
    ),
    "adds an example": branch(
        {PATH: "@given(st.text())\ndef test_a(x):\n    assert f(x)\n"},
        {PATH: "@given(st.text())\n@example('a')\ndef test_a(x):\n    assert f(x)\n"},
    ),
    "changes a module that only has the name of a test": branch(
        {"src/app/test_runner.py": "def run():\n    return 1\n"},
        {"src/app/test_runner.py": "def run():\n    return 2\n"},
    ),
    "ends a process in a module that only has the name of a test": branch(
        {}, {"src/app/ab_tests.py": "import os\n\ndef leave():\n    os._exit(0)\n"}
    ),
    "adds a method to a helper": branch(
        {"tests/world.py": "class World:\n    size = 1\n"},
        {"tests/world.py": "class World:\n    size = 1\n    SIZES = (1, 2)\n    def run(self):\n        return 1\n"},
    ),
    "changes a specification of an interface": branch({"spec/openapi.yaml": "a: 1\n"}, {"spec/openapi.yaml": "a: 2\n"}),
}


@pytest.mark.parametrize("work", HONEST)
def test_honest_work_on_tests_is_not_held_against_anyone(work: str) -> None:
    result = HONEST[work].tests_kept()
    assert result.passed, result.output


def test_what_the_task_may_change_is_not_judged() -> None:
    made = edited((EMPTY, ""))
    assert made.tests_kept("tests/**").passed
    assert made.tests_kept("test_titles.py").passed
    assert not made.tests_kept("src/**").passed


def test_each_new_test_is_the_new_home_of_one_old_test_only() -> None:
    base = "def test_a():\n    assert f()\n\ndef test_b():\n    assert f()\n"
    result = branch({PATH: base}, {PATH: "def test_c():\n    assert f()\n"}).tests_kept()
    assert result.detail == f"removes test_b ({PATH})"


def test_a_test_that_moves_to_a_file_where_its_helper_is_another_is_changed() -> None:
    base = "def check(x):\n    assert x > 1\n\ndef test_a():\n    check(f())\n"
    other = "def check(x):\n    pass\n\ndef test_a():\n    check(f())\n"
    assert not branch({"tests/test_a.py": base}, {"tests/test_b.py": other}).tests_kept().passed


def test_losses_are_reported_by_file_up_to_a_limit() -> None:
    base = "\n".join(f"def test_{n}():\n    assert f({n})\n" for n in range(9))
    result = branch({PATH: base, "tests/test_b.py": base}, {}).tests_kept()
    assert result.detail.endswith("and 13 more")
    assert len(result.output.splitlines()) == 20
