"""A program of somebody's that takes what a webhook sends: a real server on this machine."""

import asyncio
import base64
import hashlib
import hmac
import json
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from bot.web.webhooks import WebhookPost
from composer.app import App


@dataclass
class HookReceiver:
    """What came, and how it is answered: with `answer`, a status and further lines of the head."""

    port: int
    answer: str = "204 No Content"
    taken: list[tuple[Mapping[str, str], bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}/hook?from=nexus"

    def messages(self, secret: str) -> list[dict[str, Any]]:
        """What came, after the signature of each was checked as docs/api.md shows it."""
        return [verified(secret, headers, body) for headers, body in self.taken]

    def changes(self, secret: str) -> list[tuple[str, str | None]]:
        """What all messages say has changed, and where."""
        told = [each for each in self.messages(secret) if each["type"] == "changed"]
        return [(change["what"], change["place"]) for each in told for change in each["data"]["changes"]]


def verified(secret: str, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """A message whose signature is right."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert f"v1,{expected}" in headers["webhook-signature"].split()
    found: dict[str, Any] = json.loads(body)
    return found


@asynccontextmanager
async def hook_receiver() -> AsyncIterator[HookReceiver]:
    """A server that takes what is posted to it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            body = await reader.readexactly(int(headers["content-length"]))
            assert first == "POST /hook?from=nexus HTTP/1.1"
            receiver.taken.append((headers, body))
            writer.write(f"HTTP/1.1 {receiver.answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    receiver = HookReceiver(server.sockets[0].getsockname()[1])
    async with server:
        yield receiver


async def send_due(app: App) -> int:
    """Send what is due, as the loop of a process does; how many messages were sent."""
    post, sent = WebhookPost(app.settings), 0
    for due in await app.webhooks.due():
        sent += await app.webhooks.send(due, post)
    return sent


def is_id(text: str | None) -> bool:
    """Whether a text is an id."""
    return text is None or str(uuid.UUID(text)) == text
