"""The names that the semantic conventions of OpenTelemetry for generative AI give to things, and our own.

The conventions are in development, and the constants for them leave the packages of OpenTelemetry: so they stand here.
"""

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
AGENT = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
MODEL = "gen_ai.request.model"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL = "gen_ai.tool.name"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105  (the name of an attribute)
ERROR_TYPE = "error.type"

INVOKE_AGENT, CHAT, EXECUTE_TOOL = "invoke_agent", "chat", "execute_tool"

_BY_ADAPTER = {"claude-code": "anthropic", "codex": "openai"}
_BY_PREFIX = {
    "anthropic": "anthropic",
    "openai": "openai",
    "google": "gcp.gemini",
    "gemini": "gcp.gemini",
    "deepseek": "deepseek",
    "groq": "groq",
    "mistral": "mistral_ai",
    "xai": "x_ai",
    "amazon-bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
}


def provider_of(adapter: str, model: str) -> str:
    """Who answers, by the words of the conventions; where they have none, the kind of agent."""
    prefix = model.partition("/")[0] if "/" in model else ""
    return _BY_PREFIX.get(prefix) or _BY_ADAPTER.get(adapter) or adapter or "unknown"
