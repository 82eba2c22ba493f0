"""The policies of a project, frozen from its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genba.execution.verification.policy import PolicyResolver

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext


def policy_resolver(context: ProjectContext) -> PolicyResolver:
    return PolicyResolver(context.ports.repository.history(), context.project.rules, context.project.source)
