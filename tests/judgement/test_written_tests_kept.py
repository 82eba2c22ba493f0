"""Tests of languages that are not parsed go on too, by their lines."""

import pytest

from tests.judgement.branches import Branch, branch

JS = "src/title.test.ts"
JS_BASE = """
    import { title } from "./title";

    describe("title", () => {
      it("is empty", () => {
        expect(title("")).toBe("");
      });

      it("is upper", () => {
        expect(title("a")).toBe("A");
      });
    });
"""


def js(*replacements: tuple[str, str]) -> Branch:
    text = JS_BASE
    for old, new in replacements:
        assert old in text, old
        text = text.replace(old, new)
    return branch({JS: JS_BASE}, {JS: text})


GO = "title_test.go"
GO_BASE = 'package title\n\nfunc TestEmpty(t *testing.T) {\n\tif Title("") != "" {\n\t\tt.Fatal("no")\n\t}\n}\n'

LIES: dict[str, tuple[Branch, str]] = {
    "skips": (js(('it("is empty"', 'it.skip("is empty"')), f"skips is empty ({JS})"),
    "skips in short": (js(('it("is empty"', 'xit("is empty"')), "skips is empty"),
    "skips the block": (js(("describe(", "describe.skip(")), "skips"),
    "chooses one": (js(('it("is empty"', 'it.only("is empty"')), "skips"),
    "chooses one in a new file": (branch({}, {JS: 'it.only("a", () => { f() });\n'}), "all but it.only"),
    "removes": (
        js(('  it("is upper", () => {\n        expect(title("a")).toBe("A");\n      });\n', "")),
        "removes is upper",
    ),
    "changes": (js(('toBe("A")', 'toBe("a")')), "changes"),
    "comments out": (
        js(('      it("is upper"', '      /*\n      it("is upper"'), ("    });\n", "    */ });\n")),
        "is upper",
    ),
    "returns early": (js(('        expect(title("a"))', '        return;\n        expect(title("a"))')), "cuts short"),
    "ends the run": (js(('    describe("title"', '    process.exit(0);\n    describe("title"')), "ends the whole run"),
    "removes the file": (branch({JS: JS_BASE}, {}), "removes is empty, is upper"),
    "moves it where nobody looks": (branch({JS: JS_BASE}, {"attic.txt": JS_BASE}), "removes is empty"),
    "skips in Go": (
        branch({GO: GO_BASE}, {GO: GO_BASE.replace("{\n\tif", '{\n\tt.Skip("x")\n\tif')}),
        "skips TestEmpty",
    ),
    "removes in Go": (branch({GO: GO_BASE}, {GO: "package title\n"}), "removes TestEmpty"),
    "returns early in Go": (branch({GO: GO_BASE}, {GO: GO_BASE.replace("{\n\tif", "{\n\treturn\n\tif")}), "cuts short"),
    "ignores in Rust": (
        branch(
            {"src/lib.rs": "#[test]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}\n"},
            {"src/lib.rs": "#[test]\n#[ignore]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}\n"},
        ),
        "skips adds",
    ),
    "removes in Rust": (
        branch(
            {"src/lib.rs": "#[test]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}\n"}, {"src/lib.rs": "fn x() {}\n"}
        ),
        "removes adds (src/lib.rs)",
    ),
    "disables in Java": (
        branch(
            {"src/test/java/ATest.java": "class ATest {\n  @Test\n  void adds() {\n    check(f());\n  }\n}\n"},
            {
                "src/test/java/ATest.java": "class ATest {\n  @Test @Disabled\n"
                "  void adds() {\n    check(f());\n  }\n}\n"
            },
        ),
        "skips adds",
    ),
    "waits in Ruby": (
        branch(
            {"spec/a_spec.rb": 'it "adds" do\n  expect(f).to eq 1\nend\n'},
            {"spec/a_spec.rb": 'it "adds" do\n  pending\n  expect(f).to eq 1\nend\n'},
        ),
        "skips adds",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_takes_from_tests_in_other_languages_is_seen(lie: str) -> None:
    made, wanted = LIES[lie]
    result = made.tests_kept()
    assert not result.passed
    assert wanted in result.detail


NEW_IT = '      it("is new", () => {\n        expect(title("n")).toBe("N");\n      });\n'
HONEST: dict[str, Branch] = {
    "adds a test": js(('      it("is upper"', NEW_IT + '      it("is upper"')),
    "adds an import": js(("    import {", '    import fs from "fs";\n    import {')),
    "changes an import": js(("{ title }", "{ title, other }")),
    "adds an assertion": js(('toBe("A");', 'toBe("A");\n        expect(title("b")).toBe("B");')),
    "reformats": js(
        ('        expect(title("a")).toBe("A");', "        expect(\n          title('a'),\n        ).toBe('A')"),
        ('      it("is upper"', NEW_IT + '      it("is upper"'),
    ),
    "comments": js(('      it("is upper"', '      // skip nothing: it.skip("x")\n      it("is upper"')),
    "moves the file": branch({JS: JS_BASE}, {"src/titles/title.test.ts": JS_BASE}),
    "adds a helper with a return": js(
        (
            '    describe("title"',
            '    function early(x) {\n      if (!x) {\n        return;\n      }\n    }\n\n    describe("title"',
        )
    ),
    "adds a case to a table in Go": branch(
        {GO: 'package a\n\nvar cases = []string{\n\t"a",\n}\n' + GO_BASE},
        {GO: 'package a\n\nvar cases = []string{\n\t"a",\n\t"b",\n}\n' + GO_BASE},
    ),
    "moves a test in Rust": branch(
        {"src/lib.rs": "#[test]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}\n"},
        {"src/lib.rs": "mod math;\n", "src/math.rs": "#[test]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}\n"},
    ),
    "adds to a snapshot": branch({"src/__snapshots__/a.snap": "one\n"}, {"src/__snapshots__/a.snap": "one\ntwo\n"}),
}


@pytest.mark.parametrize("work", HONEST)
def test_honest_work_on_tests_in_other_languages_is_not_held_against_anyone(work: str) -> None:
    result = HONEST[work].tests_kept()
    assert result.passed, result.output
