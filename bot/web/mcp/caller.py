"""Who calls a tool: taken from the credential of each call, never from a parameter."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from bot.web.call import ApiCall
from bot.web.metering import Metered, count_now
from composer.app import App
from composer.people.credentials.principal import Principal
from composer.repositories.operations import Operation
from composer.repositories.tool_reads import ReadRoute
from composer.tasks.shares import act_for

PRINCIPAL: Final = "principal"  # of the state of a request that was let in


class ToolCaller:
    """Turns a call of a tool into a request of the person whose credential it has."""

    def __init__(self, app: App, principal_of: Callable[[Any], Awaitable[Principal]]) -> None:
        """`principal_of` says for whom an SDK's context stands; it raises a NexusError where that is nobody."""
        self.app = app
        self._principal_of = principal_of

    @asynccontextmanager
    async def call(self, context: Any, operation: Operation) -> AsyncIterator[ApiCall]:
        """The request that a call of a tool is, counted as an operation where it does not fail. Raises QuotaUsedUp
        where the plan has nothing left of it; a write finds that out in its own transaction."""
        principal, meter = await self._principal_of(context), self.app.operations
        act_for(principal.tenant_id, principal.user)  # the SDK runs it in a task of its own
        if operation is not Operation.WRITES:
            await meter.admit(principal.tenant_id, operation)
        metered = Metered(meter, principal, operation, route=ReadRoute.MCP)
        yield ApiCall(self.app, principal, b"", None, metered)
        if not metered.is_counted:
            count_now(metered, None)


async def principal_of_request(context: Any) -> Principal:
    """Whom the request stands for in which a tool was called over HTTP."""
    found: Principal = getattr(context.request_context.request.state, PRINCIPAL)
    return found
