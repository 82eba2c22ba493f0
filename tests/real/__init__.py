"""Tests with the real agents against a scripted model on the loopback."""
