"""The clock of the machine."""

import asyncio
import time


class SystemClock:
    def elapsed(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
