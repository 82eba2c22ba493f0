"""Names of branches and of the folders of their working trees."""

import re
import unicodedata

_LONGEST_SLUG = 48


OWN_BRANCHES = "genba/"
"""The folder of the branches that Genba gives out."""


def generated_branch(agent: str, run: str, issue: int | None, title: str) -> str:
    """genba/12-add-login for an issue, genba/writer-20260105-143022-x7 otherwise: always two levels deep."""
    if issue is not None:
        slug = slugify(title)
        return f"genba/{issue}-{slug}" if slug else f"genba/{issue}"
    stamp = run.removeprefix(f"{agent}-")
    return f"genba/{agent}-{stamp}"


def slugify(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    return slug[:_LONGEST_SLUG].rstrip("-")


def folder_name(branch: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", branch).strip(".-") or "tree"
