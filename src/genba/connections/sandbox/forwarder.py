"""Runs inside a container, with nothing but the standard library: leads ports of its loopback to sockets of the host.

`forwarder.py FOLDER PORT…` listens on each port and connects it to the socket FOLDER/PORT. It keeps one connection to
FOLDER/lifeline, which tells the host that all ports are open; when the host lets go of it, there is nobody to serve.
"""

import asyncio
import contextlib
import sys

_CHUNK = 64 * 1024


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Everything that one side says, and then that it has said everything."""
    with contextlib.suppress(OSError):
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()


async def _relay(path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        far_reader, far_writer = await asyncio.open_unix_connection(path)
    except OSError:
        writer.close()
        return
    try:
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
    finally:
        writer.close()
        far_writer.close()


async def _serve(folder: str, ports: list[str]) -> None:
    servers = []
    for port in ports:

        async def connected(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str = f"{folder}/{port}"
        ) -> None:
            await _relay(path, reader, writer)

        servers.append(await asyncio.start_server(connected, "127.0.0.1", int(port)))
    lifeline, _keep = await asyncio.open_unix_connection(f"{folder}/lifeline")
    await lifeline.read()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], sys.argv[2:]))
