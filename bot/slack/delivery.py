"""Delivers answers to Slack, streamed while the model writes them."""

from collections.abc import Mapping

from bot.delivery.streaming import StreamingDelivery
from bot.slack.channels import ChannelIds
from bot.slack.directory import SlackDirectory
from bot.slack.links import permalink
from bot.slack.outbox import SlackOutbox
from composer.app import App
from composer.errors import Refused
from composer.model import ConversationKind, Turn
from composer.repositories.deliveries import Destination
from composer.repositories.explanations import MessageAddress
from composer.repositories.turns import Answer


class SlackDelivery(StreamingDelivery):
    """composer.turn.delivery.Delivery for Slack: opens streams, and closes them whatever happens to the answer."""

    def __init__(self, app: App, outbox: SlackOutbox, directory: SlackDirectory, ids: ChannelIds) -> None:
        async def links(to: Destination, cited: Mapping[str, MessageAddress]) -> Mapping[str, str]:
            url = (await directory.me()).url if cited else ""
            from_dm = any(address.kind is ConversationKind.DM for address in cited.values())
            dm = await directory.dm(to.user or "") if from_dm else None
            found = {mark: permalink(url, address, dm, ids.present) for mark, address in cited.items()}
            return {mark: f"[{mark}]({link})" for mark, link in found.items() if link is not None}

        super().__init__(app, outbox, links)
        self._slack_outbox = outbox

    async def on_chunk(self, turn: Turn, text: str) -> None:
        """Show more of the answer as soon as Slack allows."""
        self._slack_outbox.begin(turn)
        await super().on_chunk(turn, text)

    async def deliver(self, answer: Answer) -> None:
        """Show the whole answer. Raises as StreamingDelivery."""
        self._slack_outbox.complete(answer.turn)
        try:
            await super().deliver(answer)
        except Refused:  # it is not delivered again
            await self._slack_outbox.finish(answer.turn)
            raise
        await self._slack_outbox.finish(answer.turn)

    async def abandon(self, turn: Turn) -> None:
        """Retract what was shown of an answer that will not be delivered. Does not fail."""
        self._slack_outbox.complete(turn)
        await super().abandon(turn)
        await self._close_streams(turn)

    async def _close_streams(self, turn: Turn) -> None:
        """Close the streams of an answer: one that a person has stopped could not be edited otherwise."""
        await self._slack_outbox.finish(turn)
