"""An id type per entity, so that a branch is never handed over as a step."""

from typing import NewType

AgentName = NewType("AgentName", str)
RunId = NewType("RunId", str)
StepId = NewType("StepId", str)
IssueNumber = NewType("IssueNumber", int)
BranchName = NewType("BranchName", str)
Sha = NewType("Sha", str)
