"""The tests that a branch adds: new ones that can fail."""

import pytest

from genba.judgement.test_changes import added_tests as cases
from tests.judgement.branches import Binary, Branch, Link, branch

PATH = "tests/test_titles.py"
BASE = "from app import title\n\ndef test_empty():\n    assert title('') == ''\n"


def added(made: Branch, pattern: str | None = None) -> cases.AddedTests:
    return cases.added_tests(made.facts, made.blobs, pattern)


def new(text: str, path: str = PATH) -> Branch:
    return branch({}, {path: text})


REAL: dict[str, tuple[Branch, str]] = {
    "in a new file": (new(BASE), f"{PATH}::test_empty"),
    "in a file that was there": (
        branch({PATH: BASE}, {PATH: BASE + "\ndef test_b():\n    assert title('b') == 'B'\n"}),
        f"{PATH}::test_b",
    ),
    "in a class": (new("class TestA:\n    def test_b(self):\n        assert f()\n"), f"{PATH}::TestA.test_b"),
    "one more parameter": (
        branch(
            {PATH: "@pytest.mark.parametrize('a', [1])\ndef test_a(a):\n    assert f(a)\n"},
            {PATH: "@pytest.mark.parametrize('a', [1, 2])\ndef test_a(a):\n    assert f(a)\n"},
        ),
        f"{PATH}::test_a with more cases",
    ),
    "that calls without asserting": (new("def test_a():\n    app.main()\n"), f"{PATH}::test_a"),
    "that expects an error": (
        new("def test_a():\n    with pytest.raises(ValueError):\n        f()\n"),
        f"{PATH}::test_a",
    ),
    "that is skipped somewhere": (
        new("@pytest.mark.skipif(sys.platform == 'x', reason='')\ndef test_a():\n    assert f()\n"),
        f"{PATH}::test_a",
    ),
    "that asserts what it was given": (new("def test_a(client):\n    assert client.ready\n"), f"{PATH}::test_a"),
    "that fails by itself": (
        new("def test_a():\n    try:\n        f()\n    except Exception:\n        pytest.fail('no')\n"),
        f"{PATH}::test_a",
    ),
    "in JavaScript": (new("it('adds', () => { expect(add(1)).toBe(2) })\n", "src/a.test.ts"), "src/a.test.ts::adds"),
    "in JavaScript with a table": (
        new("test.each([[1, 2]])('adds %i', (a, b) => { expect(add(a)).toBe(b) })\n", "a.spec.js"),
        "a.spec.js::adds %i",
    ),
    "in Go": (
        new("func TestAdd(t *testing.T) {\n\tif Add() != 1 { t.Fatal() }\n}\n", "a_test.go"),
        "a_test.go::TestAdd",
    ),
    "in Rust": (new("#[test]\nfn adds() {\n    assert_eq!(add(1), 2);\n}\n", "src/lib.rs"), "src/lib.rs::adds"),
    "in async Rust": (
        new("#[tokio::test]\nasync fn adds() {\n    assert_eq!(add(1).await, 2);\n}\n", "tests/a.rs"),
        "tests/a.rs::adds",
    ),
    "in Java": (
        new(
            "class ATest {\n  @Test\n  void adds() {\n    assertEquals(2, add(1));\n  }\n}\n",
            "src/test/java/ATest.java",
        ),
        "src/test/java/ATest.java::adds",
    ),
    "in Ruby": (new('it "adds" do\n  expect(add(1)).to eq 2\nend\n', "spec/a_spec.rb"), "spec/a_spec.rb::adds"),
    "in PHP": (
        new("public function testAdds(): void {\n  check(add(1));\n}\n", "tests/ATest.php"),
        "tests/ATest.php::testAdds",
    ),
    "in C#": (new("[Fact]\npublic void Adds() {\n  Check(Add(1));\n}\n", "tests/ATests.cs"), "tests/ATests.cs::Adds"),
    "in shell": (new('@test "adds" {\n  [ "$(add 1)" = 2 ]\n}\n', "tests/a.bats"), "tests/a.bats::adds"),
    "in C++": (new("TEST(Math, Adds) {\n  EXPECT_EQ(add(1), 2);\n}\n", "tests/a.cpp"), "tests/a.cpp::Math, Adds"),
}


@pytest.mark.parametrize("kind", REAL)
def test_a_new_test_counts(kind: str) -> None:
    made, wanted = REAL[kind]
    found = added(made)
    assert found.cases == (wanted,)
    assert found.files == (wanted.partition("::")[0],)
    assert found.hollow == ()


HOLLOW: dict[str, Branch] = {
    "nothing": new("def test_a():\n    pass\n"),
    "a docstring": new("def test_a():\n    '''It works.'''\n"),
    "dots": new("def test_a():\n    ...\n"),
    "true": new("def test_a():\n    assert True\n"),
    "one is one": new("def test_a():\n    assert 1 == 1\n"),
    "itself": new("def test_a():\n    assert x == x\n"),
    "a pair": new("def test_a():\n    assert (f() == 2, 'no')\n"),
    "a constant with a name": new("def test_a():\n    done = True\n    assert done\n"),
    "true or something": new("def test_a():\n    assert f() or True\n"),
    "a word on the screen": new("def test_a():\n    print('ok')\n"),
    "after a return": new("def test_a():\n    return\n    assert f()\n"),
    "in a dead branch": new("def test_a():\n    if False:\n        assert f()\n"),
    "under a dead condition": new("if False:\n    def test_a():\n        assert f()\n"),
    "errors that are swallowed": new(
        "def test_a():\n    try:\n        assert f()\n    except Exception:\n        pass\n"
    ),
    "errors that are suppressed": new("def test_a():\n    with suppress(Exception):\n        assert f()\n"),
    "skipped": new("@pytest.mark.skip\ndef test_a():\n    assert f()\n"),
    "skipped by true": new("@unittest.skipIf(True, 'x')\ndef test_a():\n    assert f()\n"),
    "expected to fail": new("@pytest.mark.xfail\ndef test_a():\n    assert f()\n"),
    "skipped inside": new("def test_a():\n    pytest.skip('later')\n    assert f()\n"),
    "a skipped class": new("@pytest.mark.skip\nclass TestA:\n    def test_a(self):\n        assert f()\n"),
    "a skipped module": new("pytestmark = [pytest.mark.skip]\n\ndef test_a():\n    assert f()\n"),
    "JavaScript": new("it('adds', () => {})\n", "a.test.js"),
    "true in JavaScript": new("it('adds', () => {\n  expect(true).toBe(true);\n})\n", "a.test.js"),
    "planned in JavaScript": new("it.todo('adds')\n", "a.test.js"),
    "skipped in JavaScript": new("it.skip('adds', () => { expect(add(1)).toBe(2) })\n", "a.test.js"),
    "crossed out in JavaScript": new("xit('adds', () => { expect(add(1)).toBe(2) })\n", "a.test.js"),
    "true in Rust": new("#[test]\nfn adds() {\n    assert!(true);\n}\n", "tests/a.rs"),
    "ignored in Rust": new("#[test]\n#[ignore]\nfn adds() {\n    assert_eq!(add(1), 2);\n}\n", "tests/a.rs"),
    "Go": new("func TestAdd(t *testing.T) {\n}\n", "a_test.go"),
    "disabled in Java": new("@Test\n@Disabled\nvoid adds() {\n  check(add(1));\n}\n", "src/test/ATest.java"),
}


@pytest.mark.parametrize("kind", HOLLOW)
def test_a_test_that_can_never_fail_does_not_count(kind: str) -> None:
    found = added(HOLLOW[kind])
    assert found.cases == ()
    assert found.files == ()
    assert len(found.hollow) == 1


@pytest.mark.parametrize(
    "made",
    [
        branch({PATH: BASE}, {"tests/test_other.py": BASE}),
        branch({PATH: BASE}, {PATH: BASE.replace("test_empty", "test_nothing")}),
        branch({PATH: BASE}, {PATH: BASE + "# more\n"}),
        branch({PATH: BASE}, {PATH: BASE.replace("== ''", "== 'x'")}),
        branch({}, {PATH: "def helper():\n    return 1\n"}),
        branch({}, {"src/app.py": BASE}),
        branch({}, {PATH: Link("../app.py")}),
        branch({}, {PATH: Binary("x")}),
        branch({}, {PATH: "def test_a(:\n"}),
        branch({}, {"tests/data.json": '{"it(": 1}\n'}),
        branch({}, {"a.test.js": "// it('adds', () => { add() })\n/* it('x', () => { add() }) */\n"}),
        branch({"a.test.js": "it('a', () => { f() })\n"}, {"b.test.js": "it('a', () => { f() })\n"}),
    ],
)
def test_what_is_no_new_test_is_not_found(made: Branch) -> None:
    assert added(made) == cases.AddedTests()


def test_a_pattern_says_which_files_are_tests() -> None:
    made = branch({}, {"checks/a.py": BASE, PATH: BASE})
    assert added(made, "checks/**").files == ("checks/a.py",)
    assert added(made, "*.test.*") == cases.AddedTests()


def test_a_pattern_without_a_folder_means_any_folder() -> None:
    made = new("it('adds', () => { expect(add(1)).toBe(2) })\n", "web/src/a.test.ts")
    assert added(made, "*.test.*").files == ("web/src/a.test.ts",)


def test_a_new_file_of_an_unknown_language_counts_where_the_user_says_so() -> None:
    made = branch({}, {"checks/a.zig": 'test "adds" {}\n', "checks/b.zig": "\n"})
    assert added(made, "checks/*.zig").files == ("checks/a.zig",)
    assert added(made) == cases.AddedTests()
