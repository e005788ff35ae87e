"""The values that settings take, each with its check, and what every table of settings is."""

import re
from ipaddress import ip_network
from typing import Annotated, Literal
from urllib.parse import urlsplit
from zoneinfo import available_timezones

from pydantic import AfterValidator, BaseModel, ConfigDict, SecretStr

from composer.model import CONSOLE, DISCORD, SLACK
from composer.settings.server_urls import (
    ServerUrl,
    check_database_url,
    check_http_url,
    check_public_url,
    check_redis_url,
)

VARIABLE_PREFIX = "NEXUS_"  # of every variable that is Nexus's own
MIN_USAGE_DAYS = 31  # a budget of a month counts all of its days
MAX_RETENTION_DAYS = 36_500  # a hundred years: longer times reach before the calendar begins
PLATFORMS = (CONSOLE, DISCORD, SLACK)


def is_slug(text: str) -> bool:
    """Whether a text may name an agent, a tenant and the like in nexus.toml."""
    return re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,31}", text) is not None


def _check_slug(text: str) -> str:
    if not is_slug(text):
        raise ValueError("a slug is 1 to 32 characters of a-z, 0-9, - and _, and begins with a letter or a digit")
    return text


def _check_zone(name: str) -> str:
    if name not in available_timezones():
        raise ValueError("a time zone is named like Europe/Berlin, or UTC")
    return name


def _check_server_name(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,31}", text):
        raise ValueError("the name of a server is 1 to 32 characters of a-z, 0-9 and -")
    return text


def _check_header_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9-]{1,64}", text) or text.lower() in ("host", "content-length"):
        raise ValueError(
            "the name of a header is made of letters, digits and -, and is neither Host nor Content-Length"
        )
    return text


def _check_header_value(secret: SecretStr) -> SecretStr:
    text = secret.get_secret_value()
    if not text.isascii() or not text.isprintable() or text != text.strip() or not text:
        raise ValueError("it holds a character that no header has, or nothing: copy it again")
    return secret


def _check_room(text: str) -> str:
    platform, _, rest = text.partition(":")
    workspace, _, room = rest.partition("/")
    how = (
        "a room is named with its platform and workspace, by its id there: slack:T0123ABCD/C0456EFGH; a room of the "
        "terminal by its name: console:sample/general"
    )
    if not platform or not workspace or not room:
        raise ValueError(how)
    if platform not in PLATFORMS:
        raise ValueError(f"there is no platform {platform}, only {', '.join(PLATFORMS)}: {how}")
    return text


def _check_proxies(text: str) -> str:
    try:
        return ",".join(str(ip_network(each.strip(), strict=False)) for each in text.split(","))
    except ValueError as error:
        raise ValueError("it lists addresses or networks with commas between, like 172.18.0.0/16,10.0.0.7") from error


def _check_origins(text: str) -> str:
    origins = [each.strip().rstrip("/") for each in text.split(",")]
    for each in origins:
        parts = urlsplit(each)
        is_origin = (
            parts.scheme in ("http", "https") and bool(parts.hostname) and each == f"{parts.scheme}://{parts.netloc}"
        )
        if each != "*" and not (is_origin and "@" not in each):
            raise ValueError("it lists origins with commas between, like https://app.example.com, or is * for any page")
    return ",".join(origins)


def _check_host_names(text: str) -> str:
    names = [each.strip().lower() for each in text.split(",")]
    if not all(re.fullmatch(r"[a-z0-9_.-]{1,253}|[0-9a-f:.]{2,45}", each) for each in names):
        raise ValueError("it lists names of hosts with commas between, without a port, like localhost,n8n")
    return ",".join(names)


Slug = Annotated[str, AfterValidator(_check_slug)]
ServerName = Annotated[str, AfterValidator(_check_server_name)]
HeaderName = Annotated[str, AfterValidator(_check_header_name)]
HeaderValue = Annotated[SecretStr, AfterValidator(_check_header_value)]
RoomName = Annotated[str, AfterValidator(_check_room)]
HostNames = Annotated[str, AfterValidator(_check_host_names)]
HttpUrl = Annotated[ServerUrl, AfterValidator(check_http_url)]
Origins = Annotated[str, AfterValidator(_check_origins)]
Proxies = Annotated[str, AfterValidator(_check_proxies)]
PublicUrl = Annotated[str, AfterValidator(check_public_url)]
Zone = Annotated[str, AfterValidator(_check_zone)]
DatabaseUrl = Annotated[ServerUrl, AfterValidator(check_database_url)]
RedisUrl = Annotated[ServerUrl, AfterValidator(check_redis_url)]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class Table(BaseModel):
    """A table of settings. It is frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
