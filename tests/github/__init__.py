"""Genba and GitHub: held to GitHub's own schemas, to a stand-in of a third party, and to the real `gh`."""
