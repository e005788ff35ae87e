"""The working layer in Redis or Valkey: the last messages of each conversation, as a cache of the log.

A view is kept with the version of the conversation that it shows. Whoever reads it compares that with the
version in Postgres, so a view that missed a change (a crash, a lost connection) is never used.
"""

import json
import uuid
from collections.abc import Awaitable, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, cast

import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from composer.errors import Misconfigured, Unavailable
from composer.model import Attachment, Conversation, Message, Visibility
from composer.ports.working_cache import Appended

KEPT: Final = 200  # messages of a conversation: as far back as a busy room's talk is looked for
LIFETIME: Final = 7 * 24 * 3600  # seconds without a word; then the view is rebuilt from the log
LONGEST_KEPT: Final = 3_000  # characters of a line that is kept read; thousands of long files would fill the memory
ANSWER_WITHIN: Final = 0.5  # seconds: a cache that is slower than Postgres is none
_FIELDS: Final = tuple(field.name for field in fields(Message))

# KEYS: list, version. ARGV: version before, version after, how many to keep, lifetime, then messages.
# A view of another version missed something, one whose list is gone (a server short of memory drops single keys) is
# none, and what came late belongs further up: such a view goes, and the next reader rebuilds it.
APPEND: Final = """
local version = redis.call('GET', KEYS[2])
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
# KEYS: list, version. ARGV: version, how many. The end of the view of this very version, as one text of lines: one
# string is parsed much faster than fifty, and no JSON of ours has a line's end in it.
READ: Final = """
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return false end
local found = redis.call('LRANGE', KEYS[1], -tonumber(ARGV[2]), -1)
return #found > 0 and table.concat(found, '\\n')
"""
# KEYS: list, version. ARGV: version, lifetime, then messages. A newer view than this one stays.
REPLACE: Final = """
local version = redis.call('GET', KEYS[2])
if version ~= false and tonumber(version) >= tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[1])
for i = 3, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[i]) end
redis.call('SET', KEYS[2], ARGV[1], 'EX', ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1
"""


class RedisWorkingCache:
    """composer.ports.WorkingCache."""

    def __init__(self, url: str) -> None:
        try:
            self._redis = redis.Redis.from_url(
                url,
                socket_timeout=ANSWER_WITHIN,
                socket_connect_timeout=ANSWER_WITHIN,
                retry=Retry(NoBackoff(), 1),
                decode_responses=True,
            )
        except ValueError as error:
            raise Misconfigured(
                f"NEXUS_REDIS_URL is no Redis address ({error}); for example redis://127.0.0.1:6379."
            ) from error

    async def close(self) -> None:
        """Let the connections go."""
        await self._redis.aclose()

    async def ping(self) -> str:
        """The server's name and version. Raises Unavailable."""
        info = cast(dict[str, Any], await self._answered(self._redis.info("server")))
        name = info.get("server_name", "redis")
        return f"{name} {info.get(f'{name}_version', info.get('redis_version', ''))}"

    async def read(self, conversation: Conversation, most: int) -> list[Message] | None:
        """The last `most` of the cached messages, oldest first; None when there is none of this very version."""
        found = await self._eval(READ, conversation.id, conversation.version, most)
        try:
            return None if found is None else [_read(line) for line in found.split("\n")]
        except (KeyError, TypeError, ValueError):  # cached by a version of Nexus with other fields
            return None

    async def replace(self, conversation: Conversation, messages: Sequence[Message]) -> None:
        """Put a view there that was read from the log at `conversation.version`."""
        await self._eval(
            REPLACE,
            conversation.id,
            conversation.version,
            LIFETIME,
            *(_encoded(message) for message in messages[-KEPT:]),
        )

    async def append(self, appended: Sequence[Appended]) -> None:
        """Add what was appended to the logs of conversations, in one round trip; a view of another version is dropped
        instead."""
        pipeline = self._redis.pipeline(transaction=False)  # in a cluster each may live elsewhere
        for grown in appended:
            messages = sorted(grown.messages, key=lambda m: (m.at, m.seq))[-KEPT:]
            keys = _keys(grown.conversation_id)
            pipeline.eval(APPEND, 2, *keys, grown.before, grown.after, KEPT, LIFETIME, *map(_encoded, messages))
        await self._answered(pipeline.execute())

    async def drop(self, conversations: Sequence[uuid.UUID]) -> None:
        """Forget views, and what was read of them."""
        if conversations:
            _decoded.cache_clear()
            pipeline = self._redis.pipeline(transaction=False)  # in a cluster each may live elsewhere
            for conversation in conversations:
                pipeline.delete(*_keys(conversation))
            await self._answered(pipeline.execute())

    async def _eval(self, script: str, conversation: uuid.UUID, *args: str | int) -> Any:
        entries, version = _keys(conversation)
        return await self._answered(self._redis.eval(script, 2, entries, version, *args))

    async def _answered(self, command: Awaitable[Any]) -> Any:
        try:
            return await command
        except (RedisError, OSError, TimeoutError) as error:
            raise Unavailable("The working cache (Redis) does not answer.") from error


def _keys(conversation: uuid.UUID) -> tuple[str, str]:
    """List and version of a conversation; the braces keep both on one node of a cluster."""
    return f"nexus:{{{conversation}}}:working", f"nexus:{{{conversation}}}:version"


def _encoded(message: Message) -> str:
    shown = {name: getattr(message, name) for name in _FIELDS}  # asdict() copies each value, which takes longest here
    shown["attachments"] = [asdict(attachment) for attachment in message.attachments]
    return json.dumps(shown, default=str, separators=(",", ":"))


def _read(line: str) -> Message:
    return _decoded(line) if len(line) <= LONGEST_KEPT else _decode(line)


def _decode(line: str) -> Message:
    stored = json.loads(line)
    return Message(
        _id(stored["id"]),
        stored["external_id"],
        stored["seq"],
        datetime.fromisoformat(stored["at"]),
        stored["user_id"] and _id(stored["user_id"]),
        stored["agent_id"] and _id(stored["agent_id"]),
        stored["author"],
        stored["text"],
        stored["namespace"],
        Visibility(stored["visibility"]),
        tuple(Attachment(**attachment) for attachment in stored["attachments"]),
        tuple(_id(user) for user in stored["mentions"]),
        reply_to=stored["reply_to"],
    )


# A view is read again with each of its messages, and all but one were there before.
_decoded = lru_cache(maxsize=20_000)(_decode)


@lru_cache(maxsize=10_000)  # the same people and messages again and again
def _id(text: str) -> uuid.UUID:
    return uuid.UUID(text)
