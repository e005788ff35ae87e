"""How an adapter says that it is connected for the first time, or that only a person can let it connect."""

import asyncio
from collections.abc import Sequence
from typing import Final

from composer.errors import Misconfigured

MAX_NAMES: Final = 5  # of channels that are named


class Startup:
    """The first connection of one adapter: made, or refused for a reason that only a person can mend."""

    def __init__(self) -> None:
        self._ended = asyncio.Event()
        self._connected = ""
        self._refused = ""

    @property
    def ended(self) -> bool:
        """Whether the first connection was made or refused. What happens later changes nothing here."""
        return self._ended.is_set()

    def connected(self, sentence: str) -> None:
        """The platform is connected: as whom, and where the agent is."""
        if not self.ended:
            self._connected = sentence
            self._ended.set()

    def refused(self, reason: str) -> None:
        """The platform does not let us in, and trying again does not help."""
        if not self.ended:
            self._refused = reason
            self._ended.set()

    async def wait(self) -> str:
        """As whom and where we are connected, once we are. Raises Misconfigured if we were refused."""
        await self._ended.wait()
        if self._refused:
            raise Misconfigured(self._refused)
        return self._connected


def listed(names: Sequence[str], private: int = 0) -> str:
    """Channels in words: the first of the public ones by name, in order, the others by their number."""
    ordered = sorted(names, key=str.casefold)
    words = [f"#{name}" for name in ordered[:MAX_NAMES]]
    if len(ordered) > MAX_NAMES:
        words.append(f"{len(ordered) - MAX_NAMES} more")
    if private:
        words.append(f"{private} private")
    return ", ".join(words) or "no channel yet"
