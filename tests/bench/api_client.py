"""A client in a process of its own, so that what it costs is not counted as the server's: `python -m
tests.bench.api_client`, with one line of JSON to read and one to write."""

import asyncio
import json
import sys
import time
from typing import Any


async def main() -> None:
    """Send the requests over so many connections, each again as soon as it is answered; then say how it went."""
    asked = json.loads(sys.stdin.readline())
    waiting = iter(text.encode() for text in asked["requests"])
    times: list[float] = []
    wrong: list[str] = []
    started = time.perf_counter()
    await asyncio.gather(
        *(_client(asked["host"], asked["port"], waiting, times, wrong) for _ in range(asked["clients"]))
    )
    spent = time.perf_counter() - started
    sys.stdout.write(json.dumps({"seconds": spent, "times": times, "wrong": wrong[:3]}) + "\n")


async def _client(host: str, port: int, waiting: Any, times: list[float], wrong: list[str]) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        for request in waiting:
            started = time.perf_counter()
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
            body = await reader.readexactly(length)
            times.append(time.perf_counter() - started)
            if head.split(" ")[1] not in ("200", "201") or b'"isError":true' in body:
                wrong.append(f"{head.splitlines()[0]} {body.decode('utf-8', 'replace')[:200]}")
    finally:
        writer.close()


asyncio.run(main())
