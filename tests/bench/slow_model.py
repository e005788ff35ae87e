"""A model server that answers at once, or slowly where it is asked to: `python -m tests.bench.slow_model`, which writes
the port that it listens on."""

import asyncio
import json
import sys
from typing import Any, Final

from aiohttp import web

SLOWLY: Final = "SLOWLY"  # in what is asked: the answer takes a minute
AT_LENGTH: Final = "AT LENGTH"  # the answer has some megabytes
PIECES: Final = 120
PAUSE: Final = 0.5  # seconds between two pieces


async def main() -> None:
    """Serve until the parent has gone."""
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post("/v1/chat/completions", _complete)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    sys.stdout.write(f"{runner.addresses[0][1]}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)


async def _complete(request: web.Request) -> web.StreamResponse:
    asked = await request.text()
    pieces, pause = (PIECES, PAUSE) if SLOWLY in asked else (3, 0.0)
    text = "the answer " * (20_000 if AT_LENGTH in asked else 1)
    if not json.loads(asked).get("stream"):
        await asyncio.sleep(pieces * pause)
        return web.json_response(
            _part("chat.completion", {"index": 0, "message": _said(text), "finish_reason": "stop"})
        )
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for number in range(pieces + 1):
        ended = number == pieces
        delta = {} if ended else _said(text)
        choice = {"index": 0, "delta": delta, "finish_reason": "stop" if ended else None}
        await response.write(b"data: " + json.dumps(_part("chat.completion.chunk", choice)).encode() + b"\n\n")
        await asyncio.sleep(pause)
    await response.write(b"data: [DONE]\n\n")
    return response


def _said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def _part(kind: str, choice: dict[str, Any]) -> dict[str, Any]:
    usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
    return {"id": "x", "object": kind, "created": 1, "model": "slow", "choices": [choice], "usage": usage}


if __name__ == "__main__":
    asyncio.run(main())
