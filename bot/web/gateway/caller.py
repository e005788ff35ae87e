"""Who asks the gateway: a person or a tool of theirs by the one resolver, or a key without an owner."""

import uuid
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Depends, Request

from bot.web.dependencies import Nexus
from bot.web.limits import address_of
from bot.web.principal import gateway_key_of, principal_of
from bot.web.problems import RequestRefused
from composer.credentials.principal import Permission, Principal
from composer.errors import Refused
from composer.settings import Upstream

NOT_FOR_KEY: Final = (
    "This key may not ask models: make a new one, which has the permission gateway (/nexus keys create in a DM)."
)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, in which tenant, and the server that its requests go to. `principal` None: a key without an owner."""

    tenant_id: uuid.UUID
    upstream: Upstream
    principal: Principal | None


async def require_on(request: Request, nexus: Nexus) -> None:
    """Return if there is a gateway for anybody; else 404, as for an address where there is nothing."""
    settings = nexus.app.settings
    if not any(settings.upstream_of(slug) is not None for slug in ("", *settings.tenants)):
        await nexus.fair_use.admit(address_of(request))
        raise RequestRefused(404)


async def _caller(request: Request, nexus: Nexus, _: Annotated[None, Depends(require_on)] = None) -> Caller:
    """Who asks. 401 for a wrong key, 403 for one without the permission, 404 where their tenant has no gateway."""
    key = await gateway_key_of(request, nexus)
    principal = await principal_of(request, nexus) if key is None else None
    if principal is not None and not principal.may(Permission.GATEWAY):
        raise Refused(NOT_FOR_KEY)
    found = key or principal
    assert found is not None, "else it was refused"
    upstream = nexus.app.settings.upstream_of(found.tenant)
    if upstream is None:
        raise RequestRefused(404)
    return Caller(found.tenant_id, upstream, principal)


Calling = Annotated[Caller, Depends(_caller)]
