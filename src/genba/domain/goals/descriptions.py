"""What a goal looks at, in words, for a reader of a pass."""

from genba.domain.goals.goal import Goal, goal_type

GUARDS = {
    "protected_paths": "nothing that judges it is changed",
    "tests_kept": "every test of the base is kept",
    "links_inside": "no link leads out",
    "git_clean": "nothing is uncommitted",
}
"""By goal that asks for nothing in particular: what holds where it passed."""


def looked_at(goal: Goal) -> str:
    """The command that it runs, the place that it looks at, or what holds; empty where its name says it all."""
    main = type(goal).main
    asked = getattr(goal, main) if main else None
    if asked is None:
        return GUARDS.get(goal_type(goal), "")
    return asked if isinstance(asked, str) else " ".join(asked)
