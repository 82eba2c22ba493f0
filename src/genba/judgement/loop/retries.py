"""Whether and when to try again. A strategy returns a decision; it does not act."""

from genba.definitions.agent.agent_json import Limits
from genba.domain.errors import RateLimited, RecoverableError


def wait_before_retry(error: RecoverableError, attempt: int, limits: Limits, jitter: float) -> float | None:
    """Seconds to wait before the next try, or None to give up.

    `attempt` counts the tries that failed. A rate limit waits for its reset and does not count as a failed try.
    `jitter` in [0, 1] spreads the tries of many workers.
    """
    if isinstance(error, RateLimited) and error.retry_after is not None and error.retry_after > 0:
        return error.retry_after
    if attempt > limits.retries:
        return None
    delay = min(limits.retry_delay_seconds * 2.0 ** (attempt - 1), limits.retry_max_delay_seconds)
    return max(delay * (0.5 + jitter / 2), error.retry_after or 0.0)
