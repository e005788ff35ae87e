"""The keys that an operator sets, and whose memory they open."""

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, SecretStr

from composer.model import CONSOLE
from composer.settings.values import PLATFORMS

DEFAULT_WORKSPACE = "default"  # of the terminal
MIN_SETTINGS_KEY_CHARS = 32
MAX_SETTINGS_KEY_CHARS = 1_024
# Origins that mean something else (the bot, people, and the ways by which memories come), and words that would say
# something of a person or a decision beside whose name they stand.
RESERVED_VENDORS = frozenset(
    {"nexus", "api", "gateway", "person", "extracted", "explicit", "imported", "all", "any", "none"}
    | {"console", "discord", "slack", "rest", "script", "test"}
    | {"i", "me", "myself", "you", "own", "we", "us", "they", "everyone", "everybody", "someone", "nobody", "team"}
    | {"app", "user", "admin", "owner", "system", "assistant"}
    | {"proposed", "decided", "approved", "accepted", "confirmed"}
)
VENDOR_RULE = (
    "the name of a tool is 1 to 32 characters of a-z, 0-9, - and _, begins with a letter or a digit, and is no word "
    "for a person, a role or a decision, such as admin, team, you or approved"
)


def owner_place(text: str) -> tuple[str, str, str]:
    """The platform, the workspace and the id there of the person whom NEXUS_OWNER names. Raises ValueError."""
    platform, colon, rest = text.partition(":")
    if not colon:
        platform, rest = CONSOLE, text
    workspace, slash, id = rest.rpartition("/")
    if platform == CONSOLE:
        id = id.strip().lstrip("@").casefold()
        workspace = workspace or DEFAULT_WORKSPACE
    if platform not in PLATFORMS or not workspace or not id or (colon and not slash):
        raise ValueError(
            "the owner is a person: NAME or WORKSPACE/NAME of the terminal, slack:WORKSPACE/ID or discord:SERVER/ID"
        )
    return platform, workspace, id


def is_vendor(text: str) -> bool:
    """Whether a text may name an AI tool."""
    return re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,31}", text, re.ASCII) is not None and text not in RESERVED_VENDORS


def _check_owner(text: str) -> str:
    owner_place(text)
    return text


def _check_vendor(text: str) -> str:
    if not is_vendor(text):
        raise ValueError(VENDOR_RULE)
    return text


def _check_key(secret: SecretStr) -> SecretStr:
    text = secret.get_secret_value()
    plain = re.fullmatch(r"[!-+\--~]+", text, re.ASCII)
    if plain is None or not MIN_SETTINGS_KEY_CHARS <= len(text) <= MAX_SETTINGS_KEY_CHARS:
        raise ValueError(
            f"a key has {MIN_SETTINGS_KEY_CHARS} to {MAX_SETTINGS_KEY_CHARS} characters of ASCII, none of them a space "
            "or a comma; openssl rand -hex 32 makes one"
        )
    return secret


def _read_tool_keys(value: object) -> object:
    """The keys of tools as a variable holds them: claude=KEY,cursor=KEY."""
    if not isinstance(value, str):
        return value
    pairs = [each.strip().partition("=") for each in value.split(",") if each.strip()]
    found = {name.strip(): key.strip() for name, _, key in pairs}
    if len(found) < len(pairs):
        raise ValueError("a tool is named twice")
    return found


OwnerName = Annotated[str, AfterValidator(_check_owner)]
SettingsKey = Annotated[SecretStr, AfterValidator(_check_key)]
VendorName = Annotated[str, AfterValidator(_check_vendor)]
ToolKeys = Annotated[dict[VendorName, SettingsKey], BeforeValidator(_read_tool_keys)]
