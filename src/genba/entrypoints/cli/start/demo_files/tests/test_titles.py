import unittest

import titles


class TestInitial(unittest.TestCase):
    def test_a_title_is_listed_under_its_first_letter(self) -> None:
        self.assertEqual(titles.initial("tea"), "T")


class TestShorten(unittest.TestCase):
    def test_a_short_title_stays(self) -> None:
        self.assertEqual(titles.shorten("Tea"), "Tea")

    def test_a_long_title_is_cut_at_a_word(self) -> None:
        self.assertEqual(
            titles.shorten("How to make tea for a hundred people at once"), "How to make tea for a hundred people at …"
        )
