"""Messages that are being streamed to Slack with its streaming methods.

A stream carries its key (as metadata) only once it is closed.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import structlog

from bot.delivery.outbox import owner_of
from bot.slack.client import OutcomeUnknown, Slack, SlackRefused
from bot.slack.directory import SlackDirectory
from composer.errors import NexusError

logger = structlog.get_logger()

METADATA_TYPE: Final = "nexus_answer"  # of the metadata that carries a message's key
_STOPPED: Final = "stopped_by_user"


@dataclass(frozen=True, slots=True)
class Location:
    """A channel, and the thread in it that a message goes into."""

    channel: str
    thread: str | None

    @property
    def arguments(self) -> dict[str, Any]:
        """The same as arguments of the API."""
        return {"channel": self.channel} | ({"thread_ts": self.thread} if self.thread else {})


@dataclass(slots=True)
class _OpenStream:
    """A message of ours that is still being streamed; `stopped`: a person has stopped it."""

    location: Location
    key: str
    text: str
    stopped: bool = False


class Streams:
    """The open streams of this process, by message (its `ts`)."""

    def __init__(self, slack: Slack, directory: SlackDirectory) -> None:
        self._slack = slack
        self._directory = directory
        self._open: dict[str, _OpenStream] = {}

    def __contains__(self, ts: object) -> bool:
        """Whether a message is being streamed."""
        return ts in self._open

    def __len__(self) -> int:
        """How many messages are being streamed."""
        return len(self._open)

    async def start(self, location: Location, user: str | None, text: str, key: str) -> str:
        """Post a message that can be extended, as an answer to `user`; return its `ts`. Raises SlackRefused."""
        me = await self._directory.me()
        answer = await self._slack.call(
            "chat.startStream",
            **location.arguments,
            markdown_text=text,
            recipient_team_id=me.team,
            recipient_user_id=user,
        )
        ts = str(answer["ts"])
        self._open[ts] = _OpenStream(location, key, text)
        return ts

    async def extend(self, ts: str, text: str) -> bool:
        """Append what a message lacks of its text. False when the text must be set by an edit instead. A message that a
        person has stopped stays as it is."""
        stream = self._open[ts]
        if stream.stopped or text == stream.text:
            return True
        if not text.startswith(stream.text):
            return False
        try:
            await self._slack.call(
                "chat.appendStream", channel=stream.location.channel, ts=ts, markdown_text=text[len(stream.text) :]
            )
        except SlackRefused as error:
            stream.stopped = error.code == _STOPPED
            logger.info("slack.stream_ended", error=str(error))
            return stream.stopped
        except OutcomeUnknown as error:
            logger.info("slack.append_uncertain", error=str(error))
            return False
        stream.text = text
        return True

    async def stop(self, ts: str) -> str:
        """Close a stream and return its key. A failure is harmless: it is closed already, or ends by itself."""
        stream = self._open.pop(ts)
        if not stream.stopped:
            metadata = message_metadata(stream.key)
            try:
                await self._slack.call("chat.stopStream", channel=stream.location.channel, ts=ts, metadata=metadata)
            except NexusError as error:
                logger.info("slack.stream_not_stopped", error=str(error))
        return stream.key

    async def stop_all_of(self, owner: str) -> None:
        """Close the streams of a turn, named by the beginning of their keys."""
        for ts in [ts for ts, stream in self._open.items() if owner_of(stream.key) == owner]:
            await self.stop(ts)

    async def stop_unknown(self, location: Location, ts: str) -> None:
        """Close a stream that an earlier process left open, or whose end Slack did not confirm."""
        try:
            await self._slack.call("chat.stopStream", channel=location.channel, ts=ts)
        except SlackRefused as error:
            logger.info("slack.stream_not_stopped", error=str(error))

    def mark_stopped(self, messages: Iterable[str]) -> None:
        """A person has stopped these messages: they stay as they are."""
        for ts in messages:
            if ts in self._open:
                self._open[ts].stopped = True


def message_metadata(key: str) -> dict[str, Any]:
    """The metadata by which a message of ours is found again."""
    return {"event_type": METADATA_TYPE, "event_payload": {"key": key}}
