"""The working cache in Redis or Valkey: the last messages of each conversation, as a cache of the log.

A cached view carries the version of its conversation. Readers compare it with the version in Postgres, so a view that
missed a change (a crash, a lost connection) is never used.
"""

import json
import re
import uuid
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any, Final, cast

import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, RedisError

from composer.errors import Misconfigured, Unavailable
from composer.model import Attachment, Conversation, Message, Visibility
from composer.ports.working_cache import Appended
from composer.settings.server_urls import ServerUrl
from composer.text.caches import OwnedCache

MAX_CACHED_MESSAGES: Final = 200  # of a conversation: as many as related messages of a busy room are looked for in
TTL_SECONDS: Final = 7 * 24 * 3600  # without a change; then the view is rebuilt from the log
MAX_DECODED_VIEWS: Final = 300  # conversations whose decoded messages this process caches
MAX_DECODED_CHARS: Final = 3_000  # of a line that is cached decoded: thousands of long files would fill the memory
SCANNED: Final = 1_000  # keys at once
ERASED_STATE: Final = "erased"  # in place of a version
ERASED_SECONDS: Final = 120  # without a cache after an erasure: whoever read the log before it has written by then
CACHE_SECONDS: Final = 0.5  # a cache that is slower than Postgres is useless
_FIELDS: Final = tuple(field.name for field in fields(Message))

# KEYS: list, version. ARGV: version before, version after, maximum length, seconds to live, then messages.
# Delete the view, for the next reader to rebuild it, if it has another version (it missed a change), if its list is
# missing (a server short of memory evicts single keys), or if a new message belongs before its last one.
APPEND: Final = """
local version = redis.call('GET', KEYS[2])
if version == 'erased' then return 0 end
local last = redis.call('LINDEX', KEYS[1], -1)
if (version or '0') ~= ARGV[1] or (not last and ARGV[1] ~= '0')
        or (last and ARGV[5] and cjson.decode(last).at > cjson.decode(ARGV[5]).at) then
    redis.call('DEL', KEYS[1], KEYS[2])
    return 0
end
for i = 5, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[i]) end
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[3]), -1)
redis.call('SET', KEYS[2], ARGV[2], 'EX', ARGV[4])
redis.call('EXPIRE', KEYS[1], ARGV[4])
return 1
"""
# KEYS: list, version. ARGV: version, limit. The last messages of the view of this exact version, as one string of
# lines: the client parses one string much faster than fifty, and the JSON contains no line breaks.
READ: Final = """
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return false end
local found = redis.call('LRANGE', KEYS[1], -tonumber(ARGV[2]), -1)
return #found > 0 and table.concat(found, '\\n')
"""
# KEYS: list, version. ARGV: version, seconds to live, then messages. A newer view is left as it is, and so is the mark
# of an erasure: what was read before it must not be cached after it.
REPLACE: Final = """
local version = redis.call('GET', KEYS[2])
if version == 'erased' then return 0 end
if version ~= false and tonumber(version) >= tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[1])
for i = 3, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[i]) end
redis.call('SET', KEYS[2], ARGV[1], 'EX', ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1
"""


class RedisWorkingCache:
    """The working cache (composer.ports.working_cache.WorkingCache) over Redis or Valkey."""

    def __init__(self, url: str) -> None:
        self._url = ServerUrl(url)
        try:
            self._redis = redis.Redis.from_url(
                url,
                socket_timeout=CACHE_SECONDS,
                socket_connect_timeout=CACHE_SECONDS,
                retry=Retry(NoBackoff(), 1),
                driver_info=None,  # the library would read its own version for each connection, and tell the server
                decode_responses=True,
            )
        except (TypeError, ValueError) as error:  # its text may quote the URL
            raise Misconfigured("NEXUS_REDIS_URL is not a Redis URL; for example redis://127.0.0.1:6379.") from error
        # Of a conversation, the lines that were read last: all but one of them are read again with its next message.
        self._decoded = OwnedCache[dict[str, Message]](MAX_DECODED_VIEWS)
        self._to_erase: set[uuid.UUID] = set()

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()

    async def ping(self) -> str:
        """The server's name and version. Raises Unavailable."""
        info = cast(dict[str, Any], await self._run(self._redis.info("server")))
        name = info.get("server_name", "redis")
        return f"{name} {info.get(f'{name}_version', info.get('redis_version', ''))}"

    async def read(self, conversation: Conversation, limit: int) -> list[Message] | None:
        """The last `limit` cached messages, oldest first; None when no view of this exact version is cached."""
        found = await self._eval(READ, conversation.id, conversation.version, limit)
        try:
            return None if found is None else self._messages(conversation.id, found.split("\n"))
        except (KeyError, TypeError, ValueError):  # cached by a version of Nexus with other fields
            await self.drop([conversation.id])  # replace() would leave a view of the same version as it is
            return None

    async def replace(self, conversation: Conversation, messages: Sequence[Message]) -> None:
        """Cache a view that was read from the log at `conversation.version`."""
        await self._eval(
            REPLACE,
            conversation.id,
            conversation.version,
            TTL_SECONDS,
            *(_encode(message) for message in messages[-MAX_CACHED_MESSAGES:]),
        )

    async def append(self, appended: Sequence[Appended]) -> None:
        """Append to the cached views what was appended to the log, in one round trip. A view of another version is
        dropped instead. What could not be erased before is erased now."""
        await self.erase([])
        pipeline = self._redis.pipeline(transaction=False)  # in a cluster each key may be on another node
        for growth in appended:
            messages = sorted(growth.messages, key=lambda m: (m.at, m.seq))[-MAX_CACHED_MESSAGES:]
            keys = _keys(growth.conversation_id)
            pipeline.eval(
                APPEND, 2, *keys, growth.before, growth.after, MAX_CACHED_MESSAGES, TTL_SECONDS, *map(_encode, messages)
            )
        await self._run(pipeline.execute())

    async def drop(self, conversations: Sequence[uuid.UUID]) -> None:
        """Drop the cached views of conversations, and every decoded message."""
        if conversations:
            for conversation in conversations:
                self._decoded.drop(conversation)
            pipeline = self._redis.pipeline(transaction=False)  # in a cluster each key may be on another node
            for conversation in conversations:
                pipeline.delete(*_keys(conversation))
            await self._run(pipeline.execute())

    async def versions(self) -> dict[uuid.UUID, int]:
        """The version of every cached view, of whichever tenant. Raises Unavailable."""
        found: dict[uuid.UUID, int] = {}
        keys: list[str] = await self._run(_all(self._redis.scan_iter(_VERSIONS, count=SCANNED)))
        for start in range(0, len(keys), SCANNED):
            some = keys[start : start + SCANNED]
            pipeline = self._redis.pipeline(transaction=False)
            for key in some:
                pipeline.get(key)
            for key, version in zip(some, await self._run(pipeline.execute()), strict=True):
                named = _VERSION_KEY.fullmatch(key)
                if named is not None and version is not None and version.isdecimal():
                    found[uuid.UUID(named[1])] = int(version)
        return found

    async def erase(self, conversations: Sequence[uuid.UUID]) -> None:
        """Drop the cached views of conversations in which something was erased, and let nobody cache one that was read
        before. While the server is away they wait for the next call."""
        for conversation in conversations:
            self._decoded.drop(conversation)
        self._to_erase.update(conversations)
        waiting = tuple(self._to_erase)
        if waiting:
            pipeline = self._redis.pipeline(transaction=False)
            for conversation in waiting:
                entries, version = _keys(conversation)
                pipeline.delete(entries)
                pipeline.set(version, ERASED_STATE, ex=ERASED_SECONDS)
            await self._run(pipeline.execute())
            self._to_erase.difference_update(waiting)

    def _messages(self, conversation: uuid.UUID, lines: Sequence[str]) -> list[Message]:
        """The messages of a conversation's cached lines; a line that was read before is not decoded again."""
        known = self._decoded.get(conversation) or {}
        messages = [known.get(line) or _decode(line) for line in lines]
        kept = {line: each for line, each in zip(lines, messages, strict=True) if len(line) <= MAX_DECODED_CHARS}
        self._decoded.put(conversation, kept)
        return messages

    async def _eval(self, script: str, conversation: uuid.UUID, *args: str | int) -> Any:
        entries, version = _keys(conversation)
        return await self._run(self._redis.eval(script, 2, entries, version, *args))

    async def _run(self, command: Awaitable[Any]) -> Any:
        try:
            return await command
        except (RedisError, OSError, TimeoutError) as error:
            if AuthenticationError in (type(error), type(error.__cause__)):  # over a socket it is the cause
                raise Unavailable(
                    "The working cache refuses Nexus; its admin has to look at that.",
                    operator=f"The working cache at {self._url.place} refuses the login: check user and password in "
                    "NEXUS_REDIS_URL.",
                ) from error
            raise Unavailable(
                "The working cache does not answer.",
                operator=f"The working cache at {self._url.place} does not answer: check that Redis or Valkey runs, "
                "and NEXUS_REDIS_URL.",
            ) from error


def _keys(conversation: uuid.UUID) -> tuple[str, str]:
    """The keys of a conversation's list and version. The braces put both on one node of a cluster."""
    return f"nexus:{{{conversation}}}:working", f"nexus:{{{conversation}}}:version"


_VERSIONS: Final = "nexus:{*}:version"
_VERSION_KEY: Final = re.compile(r"nexus:\{([0-9a-f-]{36})\}:version")


async def _all(keys: AsyncIterator[str]) -> list[str]:
    return [key async for key in keys]


def _encode(message: Message) -> str:
    shown = {name: getattr(message, name) for name in _FIELDS}  # asdict() would copy each value, which takes longest
    shown["attachments"] = [asdict(attachment) for attachment in message.attachments]
    return json.dumps(shown, default=str, separators=(",", ":"))


def _decode(line: str) -> Message:
    stored = json.loads(line)
    return Message(
        uuid.UUID(stored["id"]),
        stored["external_id"],
        stored["seq"],
        datetime.fromisoformat(stored["at"]),
        stored["user_id"] and uuid.UUID(stored["user_id"]),
        stored["agent_id"] and uuid.UUID(stored["agent_id"]),
        stored["author"],
        stored["text"],
        stored["namespace"],
        Visibility(stored["visibility"]),
        tuple(Attachment(**attachment) for attachment in stored["attachments"]),
        tuple(uuid.UUID(user) for user in stored["mentions"]),
        reply_to=stored["reply_to"],
    )
