"""What stands on both sides of the gateway in its bench, each in a process of its own: `python -m
tests.bench.gateway_peers upstream`, which prints its port, and `… client`, with one line of JSON to read and one to
write."""

import asyncio
import json
import sys
import time
from typing import Any

CHUNK = b'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"word "}}]}\n\n'
END = b'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"length"}]}\n\n'
PIECES = 5


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Stream the same answer to every request of a connection."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            await reader.readexactly(int(head.partition("content-length: ")[2].partition("\r\n")[0]))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            for event in (*(CHUNK,) * PIECES, END, b"data: [DONE]\n\n"):
                writer.write(b"%x\r\n%b\r\n" % (len(event), event))
            writer.write(b"0\r\n\r\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _upstream() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0, limit=2**24)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


async def _client() -> None:
    """Send requests one after the other, and say after how many seconds the first event of each came."""
    asked: dict[str, Any] = json.loads(sys.stdin.readline())
    reader, writer = await asyncio.open_connection("127.0.0.1", asked["port"])
    times: list[float] = []
    for text in asked["requests"]:
        started = time.perf_counter()
        writer.write(text.encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.partition(b"\r\n")[0]:
            raise RuntimeError(head.decode("latin-1"))
        await reader.readuntil(b"\n\n")
        times.append(time.perf_counter() - started)
        await reader.readuntil(b"0\r\n\r\n")
    writer.close()
    sys.stdout.write(json.dumps(times) + "\n")


asyncio.run(_upstream() if sys.argv[1] == "upstream" else _client())
