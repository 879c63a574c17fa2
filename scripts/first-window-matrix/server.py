"""An HTTP server that behaves as its path says: see first-window-matrix.py. The first argument is a pipe that is opened once it listens."""

import asyncio
import contextlib
import os
import socket
import sys

PORT = 8080
BIG = 200_000
# Trickles and streams end after so many bytes or seconds, whichever is first.
MOST_BYTES, MOST_SECONDS = 60_000, 6.0


def head(status="200 OK", kind="application/octet-stream", more="Connection: close\r\n"):
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{more}\r\n".encode()


def length(size):
    return head(more=f"Content-Length: {size}\r\nConnection: close\r\n")


class Answer:
    """One connection that has asked."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data):
        self.writer.write(data)

    async def every(self, milliseconds, pieces):
        """Sends a piece, waits, and again."""
        clock = asyncio.get_running_loop().time
        end, sent = clock() + MOST_SECONDS, 0
        for piece in pieces:
            self.send(piece)
            sent += len(piece)
            if sent > MOST_BYTES or clock() > end or self.writer.is_closing():
                return
            await asyncio.sleep(milliseconds / 1000)

    async def slow(self, size, pause):
        self.send(head())
        await self.every(pause, (b"x" * size for _ in range(10**9)))

    async def sse(self, pause):
        self.send(head(kind="text/event-stream", more="Cache-Control: no-cache\r\n"))
        await self.every(pause, (f"id: {n}\ndata: tick {n}\n\n".encode() for n in range(10**9)))

    async def cgi(self, pause):
        self.send(head(kind="text/html"))
        await asyncio.sleep(pause / 1000)
        self.send(b"x" * BIG)

    async def cgi_lines(self, pause):
        """Each line by a write of its own, as a script without a buffer prints them; the head, too."""
        lines = [b"HTTP/1.1 200 OK\r\n", b"Content-Type: text/html\r\n", b"Connection: close\r\n", b"\r\n"]
        await self.every(1, lines)
        await self.every(pause, (f"<p>line {n} of a report</p>\n".encode() for n in range(10**9)))

    async def pieces(self, count, size, pause):
        self.send(length(BIG))
        await self.every(1, [b"x" * size] * count)
        await asyncio.sleep(pause / 1000)
        self.send(b"x" * (BIG - count * size))

    async def pause(self, size, pause):
        self.send(length(BIG) + b"x" * size)
        await asyncio.sleep(pause / 1000)
        self.send(b"x" * (BIG - size))

    async def small(self, size):
        self.send(length(size) + b"x" * size)

    async def big(self):
        self.send(length(BIG) + b"x" * BIG)

    async def chunked(self, size):
        self.send(head(more="Transfer-Encoding: chunked\r\nConnection: close\r\n"))
        for _ in range(BIG // size):
            self.send(f"{size:x}\r\n".encode() + b"x" * size + b"\r\n")
        self.send(b"0\r\n\r\n")

    async def sndbuf(self, size):
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
        await self.big()

    async def redirect(self):
        self.send(head("301 Moved Permanently", more=f"Location: /big\r\nContent-Length: {BIG}\r\nConnection: close\r\n") + b"x" * BIG)

    async def missing(self):
        self.send(head("404 Not Found", more="Content-Length: 9\r\nConnection: close\r\n") + b"not here\n")

    async def no_length(self):
        self.send(b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * BIG)


async def serve(reader, writer):
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        asked = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
        name, *numbers = asked.strip("/").split("/")
        await getattr(Answer(reader, writer), name.replace("-", "_"))(*map(int, numbers))
        await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()
        await writer.wait_closed()


async def main():
    server = await asyncio.start_server(serve, "0.0.0.0", PORT, backlog=4096)
    os.close(os.open(sys.argv[1], os.O_WRONLY))
    await server.serve_forever()


asyncio.run(main())
