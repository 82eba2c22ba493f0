"""Reads agent definitions in the format of climpt, versions 1.10 to 1.14, and writes them as Genba's."""
