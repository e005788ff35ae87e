"""Whether an answer works: each check makes a call that costs nothing, and says in a sentence what to do."""

import asyncio
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
from yarl import URL

from bot.discord import doctor as discord
from bot.slack import doctor as slack
from bot.slack.client import SLACK_API
from composer.settings import Settings

CHECK_SECONDS: Final = 15
SHOWN_MODELS: Final = 8
DEFAULT_URL: Final = "https://api.openai.com/v1"
NO_URL: Final = "the base URL is no address of a server: write it in full, such as http://localhost:11434/v1"
NO_ANSWER: Final = "no model API answers at that base URL ({error}): check the address; it mostly ends in /v1"


@dataclass(frozen=True, slots=True)
class Checked:
    """The sentences of a check, each with whether it passed. `link` is where to go next, if anywhere."""

    found: tuple[tuple[bool, str], ...]
    link: str = ""

    @property
    def ok(self) -> bool:
        """Whether everything passed."""
        return all(passed for passed, _ in self.found)


async def check_model(settings: Settings) -> Checked:
    """Ask the API for the list of its models: the address, the key and the name are right."""
    base = (settings.openai_base_url or DEFAULT_URL).rstrip("/") if settings.has_model_api else ""
    if not base:
        return Checked(((True, "offline: Nexus quotes what it remembers"),))
    if not base.startswith(("http://", "https://")):
        return Checked(((False, NO_URL),))
    key = settings.openai_api_key
    headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=CHECK_SECONDS)) as session,
            session.get(f"{base}/models", headers=headers) as response,
        ):
            body = await response.json(content_type=None) if response.status == 200 else None
            return Checked((_model_sentence(response.status, body, settings.model),))
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        return Checked(((False, NO_ANSWER.format(error=type(error).__name__)),))


async def check_address(settings: Settings) -> Checked:
    """Whether a server answers at the base URL, whatever it says: the key is not known yet. No sentence if it does."""
    base = (settings.openai_base_url or "").rstrip("/")
    if not URL(base).host or not base.startswith(("http://", "https://")):
        return Checked(((False, NO_URL),))
    try:
        timeout = aiohttp.ClientTimeout(total=CHECK_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(f"{base}/models"):
            return Checked(())
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        return Checked(((False, NO_ANSWER.format(error=type(error).__name__)),))


def _model_sentence(status: int, body: Any, model: str | None) -> tuple[bool, str]:
    if status in (401, 403):
        return False, f"the model API does not accept the key ({status}): copy it again"
    if status != 200:
        return False, f"the model API has no list of models there ({status}): check the base URL; it mostly ends in /v1"
    listed = body.get("data") if isinstance(body, dict) else None
    names = [str(each.get("id")) for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    if not model:
        return False, f"no model is named; the API has {_some(names)}"
    if names and model not in names:
        return False, f"the API has no model {model}; it has {_some(names)}"
    return True, f"the model API answers, and has {model}" if names else "the model API answers"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN_MODELS} more" if len(names) > SHOWN_MODELS else ""
    return ", ".join(sorted(names)[:SHOWN_MODELS]) + more if names else "none"


async def check_discord(settings: Settings) -> Checked:
    """Look up the token's application: the token works and the intents are on. The link invites the bot. What can't be
    a token is sent nowhere."""
    if settings.discord_token is None:
        return Checked(())
    token = settings.discord_token.get_secret_value()
    if not discord.may_be_token(token):
        return Checked(((False, discord.NO_TOKEN),))
    found, application = await discord.look_up(token)
    return Checked(tuple(found), discord.invitation(application) if application else "")


async def check_slack(settings: Settings, base_url: str = SLACK_API) -> Checked:
    """Ask Slack whose tokens these are, and open a connection: both tokens work and no scope is missing."""
    if settings.slack_bot_token is None:
        unused = settings.slack_app_token or settings.slack_signing_secret
        return Checked(((False, "Slack needs the bot token (xoxb-…) besides"),) if unused else ())
    return Checked(tuple(await slack.inspect(settings, base_url)))


async def check_all(settings: Settings, slack_url: str = SLACK_API) -> tuple[Checked, Checked, Checked]:
    """The checks of the model, of Discord and of Slack, side by side."""
    model, on_discord, on_slack = await asyncio.gather(
        check_model(settings), check_discord(settings), check_slack(settings, slack_url)
    )
    return model, on_discord, on_slack
