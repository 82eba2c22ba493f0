"""The identity that an agent commits with: given to it, and held against what it brings back."""

from genba.connections.git.private.identity import Identity
from genba.definitions.agent.definition import AgentDefinition


def agent_identity(definition: AgentDefinition, issue: int | None) -> Identity:
    email = f"{definition.name}@agents.invalid"
    return Identity(name=definition.file.title, email=email, agent=definition.name, issue=issue)


def identity_variables(identity: Identity, run: str) -> dict[str, str]:
    """What git and the signing hook read in the environment of an agent."""
    return {
        "GENBA_RUN": run,
        "GENBA_AGENT": identity.agent,
        "GENBA_ISSUE": "" if identity.issue is None else str(identity.issue),
        "GIT_AUTHOR_NAME": identity.name,
        "GIT_AUTHOR_EMAIL": identity.email,
        "GIT_COMMITTER_NAME": identity.name,
        "GIT_COMMITTER_EMAIL": identity.email,
    }
