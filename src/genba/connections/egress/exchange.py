"""One request and its response between two wires: both ways at once, piece by piece, and cut when one side is cut."""

import asyncio
from collections.abc import Callable

import h11

from genba.connections.egress.h11_connection import BAD_GATEWAY, FAR_TOO_SLOW, TOO_SLOW, FarGone, Gone, Wire


class SecretScrubber:
    """Blots out a secret in a stream of bytes, also where it is cut in two. The length stays the same.

    Only the secret as it stands is found: not where the far side encoded or compressed it.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._held = b""

    def over(self, data: bytes) -> bytes:
        """What can be passed on by now; an end that may be the beginning of the secret is held back."""
        if not self._secret:
            return data
        seen = self.whole(self._held + data)
        keep = next((n for n in range(len(self._secret) - 1, 0, -1) if seen.endswith(self._secret[:n])), 0)
        self._held = seen[len(seen) - keep :]
        return seen[: len(seen) - keep]

    def rest(self) -> bytes:
        held, self._held = self._held, b""
        return held

    def whole(self, data: bytes) -> bytes:
        return data.replace(self._secret, b"*" * len(self._secret)) if self._secret else data


async def pass_on(near: Wire, far: Wire, shape: Callable[[h11.Response], h11.Response], mask: SecretScrubber) -> None:
    """Carry the body of a request to the far side and the response back.

    Raises `Gone` when the near side went away, and `FarGone` when the far side did.
    """
    up = asyncio.create_task(_body_up(near, far))
    down = asyncio.create_task(_answer_down(near, far, shape, mask))
    try:
        await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
        if not down.done():
            up.result()
        await down
    finally:
        up.cancel()
        down.cancel()
        await asyncio.gather(up, down, return_exceptions=True)


async def _body_up(near: Wire, far: Wire) -> None:
    if near.state.they_are_waiting_for_100_continue:
        await near.send(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))
    while True:
        event = await near.next(near.patience.quiet)
        ended = isinstance(event, h11.EndOfMessage)
        if not ended and not isinstance(event, h11.Data):
            raise Gone("it broke off")
        try:
            await far.send(h11.Data(data=event.data) if isinstance(event, h11.Data) else h11.EndOfMessage())
        except Gone:
            return  # a far side that stops listening may still have something to say
        if ended:
            break
    await near.until_gone()


async def _answer_down(
    near: Wire, far: Wire, shape: Callable[[h11.Response], h11.Response], mask: SecretScrubber
) -> None:
    while True:
        try:
            event = await far.next(far.patience.answer)
        except Gone as gone:
            raise FarGone(gone.why, FAR_TOO_SLOW if gone.status == TOO_SLOW else BAD_GATEWAY) from gone
        match event:
            case h11.InformationalResponse():
                continue
            case h11.Response():
                await near.send(shape(event))
            case h11.Data():
                await _send_data(near, mask.over(bytes(event.data)))
            case h11.EndOfMessage():
                await _send_data(near, mask.rest())
                await near.send(h11.EndOfMessage())
                return
            case _:
                raise FarGone("it broke off")


async def _send_data(near: Wire, data: bytes) -> None:
    if data:
        await near.send(h11.Data(data=data))
