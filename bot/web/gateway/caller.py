"""Who asks the gateway: a person or a tool of theirs by the one resolver, or a key without an owner."""

import uuid
from dataclasses import dataclass

from composer.people.credentials.principal import Principal
from composer.settings import Upstream


@dataclass(frozen=True, slots=True)
class GatewayCaller:
    """Who asks, in which tenant, and the server that its requests go to. `credential` is the id of the key or the web
    session, `principal` None: a key without an owner."""

    tenant_id: uuid.UUID
    credential: uuid.UUID
    upstream: Upstream
    principal: Principal | None
