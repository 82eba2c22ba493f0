import msgspec
import pytest

from tests.judgement.branches import Binary, Branch, Entry, Files, Link, Program, branch

PYPROJECT = """
    [build-system]
    requires = ["hatchling"]

    [project]
    name = "app"
    dependencies = ["click"]

    [tool.ruff]
    line-length = 100

    [tool.pytest.ini_options]
    addopts = "-ra"
    markers = ["slow: takes long"]

    [tool.hatch.version]
    path = "src/app/__init__.py"
"""
PACKAGE = """
    {
      "name": "app",
      "scripts": {"test": "vitest run", "lint": "eslint ."},
      "devDependencies": {"vitest": "^3.0.0"}
    }
"""
MAKEFILE = "\n".join(
    [
        "PYTEST = pytest",
        ".PHONY: test lint",
        "test: build",
        "\t$(PYTEST) $(FLAGS)",
        "lint:",
        "\truff check .",
        "build:",
        "\ttrue",
        "",
    ]
)
TSCONFIG = """
    {
      // how strict we are
      "compilerOptions": {"strict": true, "paths": {},},
      "include": ["src"],
    }
"""
CARGO = '[package]\nname = "app"\n\n[lints.clippy]\nall = "deny"\n\n[dependencies]\nserde = "1"\n'
SETUP = "[metadata]\nname = app\n\n[flake8]\nmax-line-length = 100\n\n[options]\ninstall_requires =\n    click\n"
MAKE = ("Makefile",)


class WithTests(msgspec.Struct, frozen=True):
    """A base with tests; what a branch adds to them."""

    files: dict[str, Entry]

    def more(self, files: Files) -> Branch:
        return branch(self.files, {**self.files, **files})


TEST_A = WithTests({"tests/test_a.py": "def test_a():\n    f()\n"})


def change(path: str, text: str, *replacements: tuple[str, str], more: str = "") -> Branch:
    new = text
    for old, by in replacements:
        assert old in new, old
        new = new.replace(old, by)
    return branch({path: text}, {path: new + more})


def make(*replacements: tuple[str, str], more: str = "") -> Branch:
    return change("Makefile", MAKEFILE, *replacements, more=more)


LIES: dict[str, tuple[Branch, str]] = {
    "its linter": (branch({"ruff.toml": "a = 1\n"}, {"ruff.toml": "a = 2\n"}), "changes what judges it: ruff.toml"),
    "a linter of its own": (branch({}, {"src/app/.ruff.toml": "select = []\n"}), "src/app/.ruff.toml"),
    "no linter": (branch({".flake8": "x\n"}, {}), ".flake8"),
    "the mode of a hook": (
        branch({".husky/pre-commit": Program("x\n")}, {".husky/pre-commit": "x\n"}),
        ".husky/pre-commit",
    ),
    "a link in the place of a file": (branch({"mypy.ini": "x\n"}, {"mypy.ini": Link("other.ini")}), "mypy.ini"),
    "a link in the place of a folder": (branch({}, {".genba": Link("elsewhere")}), ".genba"),
    "capitals": (branch({}, {"Ruff.toml": "x\n"}), "Ruff.toml"),
    "a name with a line end": (branch({}, {".genba/a\nb.yaml": "x\n"}), ".genba/a\\nb.yaml"),
    "the project": (branch({".genba/config.yaml": "x\n"}, {".genba/config.yaml": "y\n"}), ".genba/config.yaml"),
    "agents": (branch({}, {".agent/writer/agent.json": "{}\n"}), ".agent/writer/agent.json"),
    "the pipeline": (branch({}, {".github/workflows/ci.yml": "x\n"}), ".github/workflows/ci.yml"),
    "the scanner": (branch({}, {".gitleaksignore": "x\n"}), ".gitleaksignore"),
    "a configuration of pytest among the tests": (branch({}, {"tests/pytest.ini": "[pytest]\n"}), "tests/pytest.ini"),
    "a module that is always run": (branch({}, {"src/sitecustomize.py": "import os\n"}), "sitecustomize.py"),
    "a fake pytest": (branch({}, {"pytest.py": "x = 1\n"}), "pytest.py"),
    "a fake pytest package": (branch({}, {"src/_pytest/__init__.py": "x = 1\n"}), "src/_pytest/__init__.py"),
    "a fake library": (branch({}, {"argparse.py": "x = 1\n"}), "argparse.py"),
    "a fake of the project for the tests": (
        branch(
            {"src/app/__init__.py": "x = 1\n", "tests/test_a.py": "import app\n"},
            {"src/app/__init__.py": "x = 1\n", "tests/test_a.py": "import app\n", "tests/app.py": "x = 2\n"},
        ),
        "tests/app.py",
    ),
    "a module that every runner imports": (branch({}, {"platform.py": "x = 1\n"}), "platform.py"),
    "a link in place of a library": (branch({}, {"lib/x.py": "x\n", "src/locale": Link("../lib")}), "src/locale"),
    "compiled tests": (
        TEST_A.more({"tests/__pycache__/test_a.cpython-312.pyc": Binary("x")}),
        "test_a.cpython-312.pyc",
    ),
    "compiled tests that are a link": (TEST_A.more({"tests/__pycache__": Link("../cache")}), "tests/__pycache__"),
    "a compiled module": (branch({}, {"src/app/a.pyc": Binary("x")}), "src/app/a.pyc"),
    "a package in place of a test": (TEST_A.more({"tests/test_a/__init__.py": "x = 1\n"}), "tests/test_a/__init__.py"),
    "an empty package in place of a test": (TEST_A.more({"tests/test_a/__init__.py": ""}), "tests/test_a/__init__.py"),
    "a link in place of a test": (TEST_A.more({"tests/test_a": Link("../lib")}), "tests/test_a"),
    "a native module in place of a test": (
        TEST_A.more({"tests/test_a.cpython-312-x86_64-linux-gnu.so": Binary("x")}),
        "tests/test_a.cpython-312-x86_64-linux-gnu.so",
    ),
    "a native module among the tests": (TEST_A.more({"tests/app.pyd": Binary("x")}), "tests/app.pyd"),
    "a native module at the root": (branch({}, {"src/app.abi3.so": Binary("x")}), "src/app.abi3.so"),
    "a package in place of what prepares tests": (
        branch({}, {"conftest.py": "x = 1\n", "conftest/__init__.py": "x = 1\n"}),
        "conftest/__init__.py",
    ),
    "a native module that is always run": (branch({}, {"src/sitecustomize.abi3.so": Binary("x")}), "sitecustomize"),
    "a package that is always run": (branch({}, {"usercustomize/__init__.py": "x = 1\n"}), "usercustomize/__init__"),
    "a plugin that registers itself": (
        branch({}, {"src/x-1.dist-info/entry_points.txt": "[pytest11]\nx = x\n"}),
        "src/x-1.dist-info/entry_points.txt",
    ),
    "a plugin behind a link": (branch({}, {"x.egg-info": Link("data")}), "x.egg-info"),
    "installed packages": (branch({}, {"web/node_modules/vitest/index.js": "x\n"}), "node_modules/vitest"),
    "where packages come from": (branch({}, {".npmrc": "registry=x\n"}), ".npmrc"),
    "submodules": (branch({}, {".gitmodules": "[submodule]\n"}), ".gitmodules"),
    "ruff in pyproject": (
        change("pyproject.toml", PYPROJECT, ("line-length = 100", "line-length = 200")),
        "changes what judges it: pyproject.toml [tool.ruff]",
    ),
    "pytest in pyproject": (change("pyproject.toml", PYPROJECT, ('"-ra"', '"-k nothing"')), "[tool.pytest]"),
    "a marker taken away": (change("pyproject.toml", PYPROJECT, ('["slow: takes long"]', "[]")), "[tool.pytest]"),
    "coverage in pyproject": (
        change("pyproject.toml", PYPROJECT, more="\n    [tool.coverage.run]\n    omit = ['*']\n"),
        "[tool.coverage]",
    ),
    "how it is built": (change("pyproject.toml", PYPROJECT, ('["hatchling"]', '["mine"]')), "[build-system]"),
    "a plugin of pytest": (
        change("pyproject.toml", PYPROJECT, more="\n    [project.entry-points.pytest11]\n    app = 'app.plugin'\n"),
        "[project.entry-points.pytest11]",
    ),
    "where a tool comes from": (
        change("pyproject.toml", PYPROJECT, more="\n    [tool.uv.sources]\n    pytest = { path = 'fake' }\n"),
        "[tool.uv.sources] pytest",
    ),
    "a new pyproject": (
        branch({}, {"src/pyproject.toml": "[tool.ruff]\nselect = []\n"}),
        "src/pyproject.toml [tool.ruff]",
    ),
    "no pyproject": (branch({"pyproject.toml": PYPROJECT}, {}), "[tool.pytest]"),
    "a broken pyproject": (change("pyproject.toml", PYPROJECT, more="\n    [["), "cannot be read any more"),
    "a pyproject that is no text": (
        branch({"pyproject.toml": PYPROJECT}, {"pyproject.toml": Binary("x")}),
        "pyproject.toml",
    ),
    "a script": (change("package.json", PACKAGE, ('"vitest run"', '"true"')), 'package.json "scripts.test"'),
    "no script": (change("package.json", PACKAGE, (', "lint": "eslint ."', "")), '"scripts.lint"'),
    "a script before a script": (
        change("package.json", PACKAGE, ('"lint":', '"pretest": "sh x", "lint":')),
        '"scripts.pretest"',
    ),
    "a script at install": (
        change("package.json", PACKAGE, ('"lint":', '"postinstall": "sh x", "lint":')),
        '"scripts.postinstall"',
    ),
    "a new judge that only says yes": (
        change("package.json", PACKAGE, ('"lint":', '"build": "echo built", "lint":')),
        '"scripts.build"',
    ),
    "settings of jest": (change("package.json", PACKAGE, ('"name": "app"', '"name": "app", "jest": {}')), '"jest"'),
    "a fake runner": (change("package.json", PACKAGE, ("^3.0.0", "file:./fake")), '"devDependencies.vitest"'),
    "an override of the runner": (
        change("package.json", PACKAGE, ('"name": "app"', '"name": "app", "overrides": {"vitest": "npm:x"}')),
        '"overrides.vitest"',
    ),
    "how strict it is": (
        change("tsconfig.json", TSCONFIG, ('"strict": true', '"strict": false')),
        '"compilerOptions.strict"',
    ),
    "what is looked at": (change("tsconfig.json", TSCONFIG, ('"include": ["src"]', '"include": []')), '"include"'),
    "flake8 in setup.cfg": (change("setup.cfg", SETUP, ("= 100", "= 500")), "setup.cfg [flake8]"),
    "pytest in setup.cfg": (change("setup.cfg", SETUP, more="[tool:pytest]\naddopts = -k x\n"), "[tool:pytest]"),
    "a section that hides in a value": (
        change("setup.cfg", SETUP, ("max-line-length = 100", "max-line-length = 100\nignore =\n  [x]\n  E501")),
        "[flake8]",
    ),
    "lints of Rust": (change("Cargo.toml", CARGO, ('"deny"', '"allow"')), "Cargo.toml [lints]"),
    "tests of Rust": (
        change("Cargo.toml", CARGO, ('name = "app"', 'name = "app"\nautotests = false')),
        "[package.autotests]",
    ),
    "tests of Java": (
        branch({"pom.xml": "<a/>\n"}, {"pom.xml": "<a/>\n<skipTests>true</skipTests>\n"}),
        "pom.xml skipTests",
    ),
    "what a checkout shows": (branch({}, {".gitattributes": "*.py filter=fake\n"}), ".gitattributes *.py filter=fake"),
    "what a diff shows": (branch({}, {".gitattributes": "*.py -diff\n"}), "*.py -diff"),
    "what an archive holds": (branch({}, {".gitattributes": "tests export-ignore\n"}), "export-ignore"),
}


@pytest.mark.parametrize("lie", LIES)
def test_changing_what_judges_is_seen(lie: str) -> None:
    made, wanted = LIES[lie]
    result = made.protected()
    assert not result.passed
    assert wanted in result.detail
    assert "the task must allow it: --may-change '" in result.output


HONEST: dict[str, Branch] = {
    "code": branch({"src/app.py": "x = 1\n"}, {"src/app.py": "x = 2\n", "src/app/pytest.py": "x = 1\n"}),
    "a readme": branch({"README.md": "a\n"}, {"README.md": "b\n", "docs/guide.md": "c\n"}),
    "a dependency": change("pyproject.toml", PYPROJECT, ('["click"]', '["click", "rich"]')),
    "a version": change("pyproject.toml", PYPROJECT, ('name = "app"', 'name = "app"\n    version = "2"')),
    "a marker": change("pyproject.toml", PYPROJECT, ('["slow: takes long"]', '["slow: takes long", "db: needs one"]')),
    "a source of a library": change(
        "pyproject.toml",
        PYPROJECT,
        more="\n    [tool.uv.sources]\n    lib = { path = 'lib' }\n\n    [tool.poetry.dependencies]\n    x = '1'\n",
    ),
    "a comment": change("pyproject.toml", PYPROJECT, ("[tool.ruff]", "# how we lint\n    [tool.ruff]")),
    "where the version is": change("pyproject.toml", PYPROJECT, ("__init__.py", "version.py")),
    "a script of the project": change(
        "pyproject.toml", PYPROJECT, more="\n    [project.scripts]\n    app = 'app:main'\n"
    ),
    "a new package without judging": branch({}, {"packages/a/pyproject.toml": "[project]\nname = 'a'\n"}),
    "a lock file": branch(
        {"uv.lock": "a\n", "package-lock.json": "{}\n"}, {"uv.lock": "b\n", "package-lock.json": "{ }\n"}
    ),
    "a package": change(
        "package.json", PACKAGE, ('"vitest": "^3.0.0"', '"vitest": "^3.1.0", "lodash": "file:./lodash"')
    ),
    "a new script": change("package.json", PACKAGE, ('"lint":', '"dev": "vite", "build": "vite build", "lint":')),
    "a hook of a new script": change("package.json", PACKAGE, ('"lint":', '"data": "x", "predata": "y", "lint":')),
    "a path of the compiler": change("tsconfig.json", TSCONFIG, ('"paths": {}', '"paths": {"@": ["src"]}')),
    "more to look at": change("tsconfig.json", TSCONFIG, ('["src"]', '["src", "web"]')),
    "a requirement in setup.cfg": change("setup.cfg", SETUP, ("    click", "    click\n    rich")),
    "a crate": change("Cargo.toml", CARGO, ('serde = "1"', 'serde = "1"\ntokio = "1"')),
    "a module of Go": branch({"go.mod": "module a\n"}, {"go.mod": "module a\nrequire b v1\n", "go.sum": "x\n"}),
    "a dependency in Java": branch({"pom.xml": "<a/>\n"}, {"pom.xml": "<a/>\n<dependency/>\n"}),
    "line ends": branch({}, {".gitattributes": "* text=auto eol=lf\n*.png binary\n*.lock -diff\n"}),
    "a makefile that judges nothing": make(("ruff check .", "true")),
    "something to ignore": branch({".gitignore": "a\n"}, {".gitignore": "a\nb\n"}),
    "a container": branch({"Dockerfile": "FROM a\n"}, {"Dockerfile": "FROM b\n"}),
    "a module with a plain name": branch(
        {}, {"calendar.py": "x = 1\n", "src/types/index.ts": "x\n", "src/queue.py": "x = 1\n"}
    ),
    "tests that mirror the project": branch(
        {"src/app/__init__.py": "x = 1\n", "tests/__init__.py": "x = 1\n"},
        {"src/app/__init__.py": "x = 1\n", "tests/__init__.py": "x = 1\n", "tests/app/__init__.py": "x = 1\n"},
    ),
    "empty packages of tests": branch(
        {"src/app/__init__.py": "x = 1\n"}, {"src/app/__init__.py": "x = 1\n", "tests/app/__init__.py": ""}
    ),
    "a conftest beside another": branch(
        {"conftest.py": "x = 1\n"}, {"conftest.py": "x = 1\n", "tests/conftest.py": "y = 1\n"}
    ),
    "a native module of the project": branch(
        {"src/app/__init__.py": "x = 1\n"},
        {"src/app/__init__.py": "x = 1\n", "src/app/_fast.so": Binary("x"), "app/_fast.cpython-312.so": Binary("x")},
    ),
    "a native library as data of a test": TEST_A.more({"tests/fixtures/libx.so": Binary("x")}),
    "a package of tests": TEST_A.more({"tests/test_b/__init__.py": "", "tests/test_b/test_c.py": "x = 1\n"}),
    "a test module that becomes a package": branch(
        {"tests/test_a.py": "x = 1\n"}, {"tests/test_a/__init__.py": "x = 1\n"}
    ),
    "a folder without a package beside a test": TEST_A.more({"tests/test_a/data.txt": "x\n"}),
    "a module of the project with the name of a library": branch(
        {"src/app/__init__.py": "x = 1\n"},
        {"src/app/__init__.py": "x = 1\n", "src/app/platform.py": "x = 1\n", "src/app/locale/__init__.py": "x = 1\n"},
    ),
    "a module in a package that is called src": branch(
        {"src/__init__.py": ""}, {"src/__init__.py": "", "src/types.py": "x = 1\n"}
    ),
    "what a package says of itself": branch({}, {"src/app.egg-info/PKG-INFO": "Name: app\n"}),
    "a program": branch({"run.sh": "x\n"}, {"run.sh": Program("x\n")}),
}


@pytest.mark.parametrize("work", HONEST)
def test_ordinary_changes_are_nobodys_business(work: str) -> None:
    result = HONEST[work].protected()
    assert result.passed, result.output


MAKE_LIES: dict[str, tuple[Branch, str]] = {
    "a recipe": (make(("\truff check .", "\ttrue")), "Makefile target lint"),
    "one more line": (make(("\truff check .", "\ttrue\n\truff check .")), "target lint"),
    "a prerequisite": (make(("test: build", "test:")), "target test"),
    "one more prerequisite": (make(more="lint: sabotage\n"), "target lint"),
    "a target taken away": (make(("lint:\n\truff check .\n", "")), "target lint"),
    "a target of the second kind": (make(more="lint::\n\ttrue\n"), "target lint"),
    "a variable": (make(("PYTEST = pytest", "PYTEST = true")), "variable PYTEST"),
    "a variable again": (make(more="PYTEST = true\n"), "variable PYTEST"),
    "a variable that was open": (make(more="FLAGS = -k nothing\n"), "variable FLAGS"),
    "a variable of one target": (make(more="test: PYTEST = true\n"), "target test"),
    "the shell": (make(more="SHELL = /bin/true\n"), "variable SHELL"),
    "errors that are ignored": (make(more=".IGNORE:\n"), "target .IGNORE"),
    "another file": (make(more="include other.mk\n"), "its directives"),
    "the environment": (make(more="export PYTEST_ADDOPTS=-k\n"), "its directives"),
    "another first target": (
        branch({"Makefile": MAKEFILE}, {"Makefile": "zero:\n\ttrue\n" + MAKEFILE}),
        "the first target",
    ),
    "a makefile that make takes first": (
        branch({"Makefile": MAKEFILE}, {"Makefile": MAKEFILE, "GNUmakefile": "test:\n\ttrue\n"}),
        "GNUmakefile",
    ),
    "a target of something that was no target": (
        branch({"Makefile": "a: b\n\tx\n"}, {"Makefile": "a: b\n\tx\nb:\n\ttrue\n"}),
        "target b",
    ),
    "no makefile": (branch({"Makefile": MAKEFILE}, {}), "target test"),
    "a link": (branch({"Makefile": MAKEFILE}, {"Makefile": Link("other")}), "Makefile"),
}


@pytest.mark.parametrize("lie", MAKE_LIES)
def test_changing_a_makefile_that_judges_is_seen(lie: str) -> None:
    made, wanted = MAKE_LIES[lie]
    result = made.protected(judges=MAKE)
    assert not result.passed
    assert wanted in result.detail


@pytest.mark.parametrize(
    "line",
    [
        'VERSION := $(shell sed -i "s/==.*/== 7/" tests/test_shop.py)',
        'WHEN != sed -i "s/==.*/== 7/" tests/test_shop.py',
        "X := $(file >tests/conftest.py,collect_ignore=['test_shop.py'])",
        "Y ::= ${shell printf x > tests/conftest.py}",
        "Z += $(eval test: ; @true)",
    ],
)
def test_a_new_variable_that_runs_a_command_when_the_makefile_is_read_is_seen(line: str) -> None:
    made = branch({"Makefile": MAKEFILE}, {"Makefile": f"{MAKEFILE}\n{line}\n"})
    assert "Makefile variable" in made.protected(judges=MAKE).detail


def test_a_makefile_exports_nothing_new() -> None:
    result = make(more="export PATH := $(CURDIR)/tools:$(PATH)\n").protected(judges=MAKE)
    assert not result.passed


@pytest.mark.parametrize(
    "path",
    ["rust-toolchain.toml", "vite.config.ts", ".mvn/maven.config", "Directory.Build.targets", ".babelrc", "go.work"],
)
def test_what_chooses_the_tools_of_a_suite_is_protected(path: str) -> None:
    assert not branch({}, {path: "x\n"}).protected().passed


@pytest.mark.parametrize(
    "made",
    [
        make(more="docs:\n\tmkdocs build\n"),
        make((".PHONY: test lint", ".PHONY: test lint docs"), more="DOCS = site\ndocs:\n\tmkdocs build $(DOCS)\n"),
        make(("lint:", "# how we lint\nlint:")),
        branch({"Makefile": MAKEFILE + "clean:\n\trm a\n"}, {"Makefile": MAKEFILE + "clean:\n\trm a b\n"}),
    ],
)
def test_a_makefile_that_judges_may_get_targets_of_its_own(made: Branch) -> None:
    result = made.protected(judges=MAKE)
    assert result.passed, result.output


def test_what_the_goals_run_is_protected_with_its_mode() -> None:
    made = branch({"scripts/check.sh": Program("x\n")}, {"scripts/check.sh": "x\n"})
    assert made.protected().passed
    assert made.protected(judges=("scripts/check.sh",)).detail == "changes what judges it: scripts/check.sh"


def test_what_is_imported_in_place_of_a_script_of_the_goals_is_protected() -> None:
    made = branch({"tools/check.py": "x\n"}, {"tools/check.py": "x\n", "tools/check/__init__.py": "y\n"})
    assert made.protected().passed
    assert "tools/check/__init__.py" in made.protected(judges=("tools/check.py",)).detail


def test_a_module_beside_a_script_of_the_goals_that_it_would_import_is_protected() -> None:
    made = branch({"tools/check.py": "import ast\n"}, {"tools/check.py": "import ast\n", "tools/ast.py": "y = 1\n"})
    assert made.protected().passed
    assert "tools/ast.py" in made.protected(judges=("tools/check.py",)).detail


@pytest.mark.parametrize("name", [".proverc", ".pylintrc.toml", ".luacheckrc", "typos.toml", "tslint.json", ".taprc"])
def test_settings_of_less_common_tools_are_protected(name: str) -> None:
    assert name in branch({}, {name: "x\n"}).protected().detail


def test_the_task_can_allow_each_path_by_the_words_of_the_hint() -> None:
    made = branch({"ruff.toml": "a\n", "it's.toml": "a\n"}, {"ruff.toml": "b\n", "it's.toml": "b\n"})
    result = made.protected(judges=("it's.toml",))
    assert "--may-change 'ruff.toml'" in result.output
    assert "--may-change 'it'\\''s.toml'" in result.output
    assert made.protected("ruff.toml", "it's.toml", judges=("it's.toml",)).passed


def test_a_change_that_was_undone_again_does_not_count() -> None:
    assert branch({"ruff.toml": "a\n"}, {"ruff.toml": "a\n"}).protected().passed
