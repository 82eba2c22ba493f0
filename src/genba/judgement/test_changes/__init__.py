"""What a branch does to the tests of its base, by their text."""
