"""What `nexus doctor` says of Slack: whether its tokens work, and which scopes are missing."""

from typing import Final

from bot.slack.client import SLACK_API, Slack
from composer.errors import NexusError
from composer.settings import Settings

SLACK_SCOPES: Final = frozenset(
    {"app_mentions:read", "assistant:write", "chat:write", "commands", "files:read", "files:write", "im:write"}
    | {"usergroups:read", "users:read"}
    | {f"{kind}:{right}" for kind in ("channels", "groups", "im", "mpim") for right in ("history", "read")}
)
MANIFEST_PAGE: Final = "docs/slack-manifest.yaml"


async def inspect(settings: Settings, base_url: str = SLACK_API) -> list[tuple[bool, str]]:
    """Whether each check passes, with a sentence that says what to do if not. Empty without a bot token."""
    if settings.slack_bot_token is None:
        return []
    found = await _check_bot_token(settings.slack_bot_token.get_secret_value(), base_url)
    if settings.slack_app_token is not None:
        found.append(await _check_app_token(settings.slack_app_token.get_secret_value(), base_url))
    elif settings.slack_signing_secret is None:
        sentence = "set NEXUS_SLACK_APP_TOKEN (Socket Mode) or NEXUS_SLACK_SIGNING_SECRET (HTTP): docs/slack.md"
        found.append((False, sentence))
    return found


async def _check_bot_token(token: str, base_url: str) -> list[tuple[bool, str]]:
    slack = Slack(token, base_url, report=_ignore)
    try:
        who = await slack.call("auth.test")
        granted = slack.scopes
    except NexusError as error:
        return [(False, str(error))]
    finally:
        await slack.close()
    found = [(True, f"the bot token belongs to {who.get('user')} in {who.get('team')} (slack:{who.get('team_id')})")]
    missing = sorted(SLACK_SCOPES - granted)
    if missing:
        scopes = ", ".join(missing)
        sentence = f"missing scopes: {scopes}. Paste {MANIFEST_PAGE} under App Manifest, then reinstall the app"
        found.append((False, sentence))
    return found


async def _check_app_token(token: str, base_url: str) -> tuple[bool, str]:
    slack = Slack(token, base_url, setting="NEXUS_SLACK_APP_TOKEN", report=_ignore)
    try:
        await slack.call("apps.connections.open", app_token=token)
    except NexusError as error:
        return False, str(error)
    finally:
        await slack.close()
    return True, "the app token opens connections"


def _ignore(sentence: str) -> None:
    """Ignore it: the caller gets the same sentence as an error."""
