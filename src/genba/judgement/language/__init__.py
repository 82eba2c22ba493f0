"""Texts of Genba in each language."""
