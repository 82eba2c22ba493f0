"""One request after another on a connection from the sandbox, and the answer when one goes wrong."""

from collections.abc import Awaitable, Callable

import h11

from genba.connections.egress.h11_connection import BAD_REQUEST, FarGone, Gone, Refusal, Wire

Handle = Callable[[h11.Request], Awaitable[bool]]
"""Answers a request. Whether the connection still speaks HTTP after it."""
Refuse = Callable[[Refusal], tuple[bytes, bytes]]
"""Writes a refusal down, and gives the type and the text of the answer."""


async def converse(near: Wire, handle: Handle, refuse: Refuse) -> None:
    """Serve requests until one side has had enough. An answer that broke off is cut, and never ended in good order."""
    try:
        while await near.begins() and await _one(near, handle, refuse):
            if not near.again():
                await near.linger()
                return
    except Gone:
        near.cut()


async def _one(near: Wire, handle: Handle, refuse: Refuse) -> bool:
    try:
        event = await near.next(near.patience.head)
        return isinstance(event, h11.Request) and await handle(event)
    except Refusal as known:
        refusal = known
    except FarGone as gone:
        refusal = Refusal(gone.status, f"it could not be reached: {gone.why}")
    except Gone as gone:
        if not gone.status:
            raise
        refusal = Refusal(gone.status, "this is no request that can be understood")
    kind, text = refuse(refusal)
    if not near.can_answer():
        raise Gone("the answer broke off")
    await near.answer(refusal.status, text, [(b"content-type", kind), *refusal.headers])
    await near.linger()
    return False


def plain_http_only(request: h11.Request, hint: str, status: int = BAD_REQUEST) -> None:
    """Refuse to become a WebSocket. Any other offer to upgrade is one that may be ignored."""
    if any(name == b"upgrade" and b"websocket" in value.lower() for name, value in request.headers):
        raise Refusal(status, f"no WebSocket is passed on: {hint}", ((b"upgrade", b"HTTP/1.1"),))
