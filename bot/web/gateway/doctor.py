"""What `nexus doctor` says of the gateway: which model servers it passes requests on to, and whether these answer."""

from collections.abc import Callable, Mapping
from typing import Final

from bot.web.gateway.models import ModelLists
from bot.web.gateway.upstreams import Upstreams
from bot.web.problems import RequestRefused
from composer.settings import Settings, Upstream

MAX_SHOWN_MODELS: Final = 5  # models


async def inspect(settings: Settings, not_asked: str, *, live: bool) -> list[tuple[str, bool | None, str]]:
    """The name, the result and the sentence of each upstream. Only `live` asks them for their models."""
    found: list[tuple[str, bool | None, str]] = []
    for upstream, tenants in _upstreams(settings).items():
        name = f"gateway{f' of {tenants}' if tenants else ''}"
        if not live:
            found.append((name, None, f"{upstream.url}, {_models(upstream)}: {not_asked}"))
            continue
        found.append((name, *await _asked(upstream, *_named(settings, tenants))))
    return found


def _upstreams(settings: Settings) -> Mapping[Upstream, str]:
    """The upstreams, with the tenants that have one of their own ("" for that of all others)."""
    found: dict[Upstream, str] = {}
    of: Callable[[str], Upstream | None] = settings.upstream_of
    for slug in ("", *settings.tenants):
        upstream = of(slug)
        if upstream is not None and upstream not in found:
            found[upstream] = slug
    return found


def _named(settings: Settings, tenant: str) -> tuple[str, str]:
    """The settings that hold the address and the key of a tenant's upstream."""
    if tenant and settings.tenants[tenant].gateway.base_url is not None:
        return f"base_url in [tenants.{tenant}.gateway]", f"api_key in [tenants.{tenant}.gateway]"
    own = settings.gateway_base_url is not None
    own_key = own or settings.gateway_api_key is not None
    return (
        "NEXUS_GATEWAY_BASE_URL" if own else "NEXUS_OPENAI_BASE_URL",
        "NEXUS_GATEWAY_API_KEY" if own_key else "NEXUS_OPENAI_API_KEY",
    )


async def _asked(upstream: Upstream, url_setting: str, key_setting: str) -> tuple[bool, str]:
    """Whether an upstream answers, and a sentence that names the setting which is wrong."""
    upstreams = Upstreams()
    try:
        answer = await ModelLists(upstreams).list(upstream)
    except RequestRefused as error:
        return False, f"{upstream.url}: {error.detail} Check {url_setting}."
    finally:
        await upstreams.close()
    if answer.status_code in (401, 403):
        return False, f"{upstream.url} does not accept the key ({answer.status_code}): check {key_setting}."
    if answer.status_code == 429 or answer.status_code >= 500:
        return False, f"{upstream.url} has trouble ({answer.status_code}): try again in a while."
    if answer.status_code != 200:
        return (
            False,
            f"{upstream.url} has no list of models ({answer.status_code}): {url_setting} mostly ends in /v1.",
        )
    return True, f"{upstream.url} answers, {_models(upstream)}"


def _models(upstream: Upstream) -> str:
    if upstream.models is None:
        return "all of its models"
    names = sorted(upstream.models)
    more = f" and {len(names) - MAX_SHOWN_MODELS} more" if len(names) > MAX_SHOWN_MODELS else ""
    return (
        f"models {', '.join(names[:MAX_SHOWN_MODELS])}{more}"
        if names
        else "no model: list some in [gateway] of nexus.toml"
    )
