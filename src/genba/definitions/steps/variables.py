"""Who supplies which {uv-…} variable."""

ALWAYS = frozenset(
    {
        "agent_name",
        "agent_description",
        "run_id",
        "iteration",
        "completed_iterations",
        "remaining_iterations",
        "max_iterations",
        "branch",
        "base_branch",
        "previous_summary",
        "completion_criteria",
        "completion_keyword",
        "goals",
    }
)
"""Supplied by Genba in every run."""

WITH_ISSUE = frozenset(
    {"issue_title", "issue_body", "issue_labels", "requirements", "closure_instruction", "closure_word"}
)
"""Supplied when the agent takes the parameter `issue`."""

IN_RETRY = frozenset({"failure_name", "failure_detail", "failure_output", "attempt", "max_attempts"})
"""Supplied to the prompt of a retry."""


RESERVED = ALWAYS | WITH_ISSUE | IN_RETRY
"""What Genba supplies: a parameter of such a name would never be seen."""


def runtime_variables(parameters: frozenset[str]) -> frozenset[str]:
    return ALWAYS | parameters | (WITH_ISSUE if "issue" in parameters else frozenset())
