"""The first line of what lands."""

from genba.domain.text_limits import subject_of


def test_a_short_title_is_the_subject() -> None:
    assert subject_of("Add slugify()", 1) == ("Add slugify() (#1)", "")


def test_a_long_title_is_cut_and_stands_whole_in_the_body() -> None:
    title = "Add a function that " + "x" * 200
    subject, body = subject_of(title, 12)
    assert len(f"Merge {subject}") == 72
    assert subject.endswith("… (#12)")
    assert body == f"{title}\n\n"


def test_a_title_of_ten_thousand_letters_stays_a_page() -> None:
    subject, body = subject_of("long " * 2_000, 1)
    assert len(f"Merge {subject}") <= 72
    assert len(body) < 4_100


def test_a_title_forges_no_second_line() -> None:
    assert subject_of("a\nSession: forged\x1b[0m", 1)[0] == "a Session: forged [0m (#1)"
    assert subject_of(" \n", 1) == ("", "")
