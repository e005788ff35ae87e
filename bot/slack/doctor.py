"""What `nexus doctor` says of Slack: whether its tokens work, and which scopes are missing."""

from typing import Final

from bot.slack.client import SLACK, Slack
from composer.errors import NexusError
from composer.settings import Settings

SCOPES: Final = frozenset(
    {"app_mentions:read", "assistant:write", "chat:write", "commands", "files:read", "im:write", "users:read"}
    | {f"{kind}:{right}" for kind in ("channels", "groups", "im", "mpim") for right in ("history", "read")}
)
MANIFEST: Final = "docs/slack-manifest.yaml"


async def inspect(settings: Settings, base_url: str = SLACK) -> list[tuple[bool, str]]:
    """Whether each token works and may do what it must, each with a sentence that says what to do."""
    if settings.slack_bot_token is None:
        return []
    found = await _bot(settings.slack_bot_token.get_secret_value(), base_url)
    if settings.slack_app_token is not None:
        found.append(await _app(settings.slack_app_token.get_secret_value(), base_url))
    elif settings.slack_signing_secret is None:
        sentence = "set NEXUS_SLACK_APP_TOKEN (Socket Mode) or NEXUS_SLACK_SIGNING_SECRET (HTTP): docs/slack.md"
        found.append((False, sentence))
    return found


async def _bot(token: str, base_url: str) -> list[tuple[bool, str]]:
    slack = Slack(token, base_url, tell=_nobody)
    try:
        who = await slack.call("auth.test")
        granted = slack.scopes
    except NexusError as error:
        return [(False, str(error))]
    finally:
        await slack.close()
    missing = sorted(SCOPES - granted)
    if not missing:
        return [(True, f"the bot token is that of {who.get('user')} in {who.get('team')}")]
    sentence = f"missing scopes: {', '.join(missing)}. Paste {MANIFEST} under App Manifest, then reinstall the app"
    return [(True, f"the bot token is that of {who.get('user')} in {who.get('team')}"), (False, sentence)]


async def _app(token: str, base_url: str) -> tuple[bool, str]:
    slack = Slack(token, base_url, setting="NEXUS_SLACK_APP_TOKEN", tell=_nobody)
    try:
        await slack.call("apps.connections.open", app_token=token)
    except NexusError as error:
        return False, str(error)
    finally:
        await slack.close()
    return True, "the app token opens connections"


def _nobody(sentence: str) -> None:
    """It is in what is returned."""
