"""Runs inside a container, with nothing but the standard library: leads ports of its loopback to sockets of the host.

`forwarder.py FOLDER [dial] PORT…` listens on each port and connects it to the socket FOLDER/PORT. It keeps one
connection to FOLDER/lifeline, which tells the host that all ports are open; when the host lets go of it, it ends.
With `dial` it gives the host, for each byte that it sends to FOLDER/dial, a socket of this network to connect with.
"""

import asyncio
import contextlib
import socket
import sys
import threading

_CHUNK = 64 * 1024


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Everything that one side sends, and then its end of file."""
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


def _give_sockets(line: socket.socket) -> None:
    """For each byte that the host sends: a socket that is connected to nothing yet."""
    with line, contextlib.suppress(OSError):
        while line.recv(1):
            try:
                given = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
            except OSError:  # a kernel without IPv6
                given = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            with given:
                socket.send_fds(line, [b"\n"], [given.fileno()])


async def _serve(folder: str, ports: list[str]) -> None:
    servers = []
    if "dial" in ports:
        ports.remove("dial")
        line = socket.socket(socket.AF_UNIX)
        line.connect(f"{folder}/dial")
        threading.Thread(target=_give_sockets, args=(line,), daemon=True).start()
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
