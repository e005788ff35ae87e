"""`/v1/webhooks`: addresses of one's own programs, which are told what `/v1/events` tells."""

import uuid
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field

from bot.web.call import ApiCall, Calling, Event
from bot.web.dependencies import Nexus
from bot.web.json_answer import json_answer
from bot.web.problems import documented
from bot.web.router import Router
from bot.web.routes.events import require_watchable
from bot.web.shapes.values import Flag
from composer.errors import Conflict, Refused
from composer.people import webhooks
from composer.people.watching import WatchedPage
from composer.people.webhooks import MAX_NAME_CHARS, MAX_URL_CHARS, TOLD_PAGES, WEBHOOKS_OFF, WebhookRequest
from composer.repositories.database import Transaction
from composer.repositories.webhooks import Webhook
from composer.visibility import EntryAccess

SECRET_SHOWN_ONCE: Final = (
    "An earlier request with this idempotency key made the webhook, whose secret is shown once: delete it, and make "
    "another one."
)
ToldPage = Literal["memory", "waiting", "ask", "rooms", "team", "tools", "people"]

router = Router("/v1/webhooks", tags=["keys"])


class NewWebhookRequest(BaseModel):
    """A webhook to be made. Without `pages` it is told of all that who asks may watch with `/v1/events`, jobs excepted;
    with `of` of one room, team or project alone. Without `name` it is called as the host of its address."""

    model_config = ConfigDict(extra="forbid")

    url: Annotated[str, Field(max_length=MAX_URL_CHARS)]
    name: Annotated[str, Field(max_length=MAX_NAME_CHARS)] = ""
    pages: Annotated[list[ToldPage], Field(min_length=1, max_length=len(TOLD_PAGES))] | None = None
    of: uuid.UUID | None = None


class WebhookState(BaseModel):
    """Whether something is sent to a webhook."""

    model_config = ConfigDict(extra="forbid")

    on: Flag


class WebhookResponse(BaseModel):
    """A webhook. It is on unless `off_at` says since when it is off, and `off_why` why: its person switched it off, its
    address answered 410 (gone), took nothing for three days (failing), or the key that its secret was made with is
    lost (key). `failures`: how often in a row a message was not taken, since `failing_since`. `last_result` is the
    status that it answered last, at `last_at`; `no answer`; or `not public`, where its name leads to an address that is
    not of the public internet."""

    id: uuid.UUID
    name: str
    url: str
    pages: list[ToldPage]
    of: uuid.UUID | None
    created_at: datetime
    off_at: datetime | None
    off_why: Literal["person", "gone", "failing", "key"] | None
    failures: int
    failing_since: datetime | None
    last_at: datetime | None
    last_result: str | None


class CreatedWebhook(WebhookResponse):
    """A new webhook. `secret` is shown this once: what is sent is signed with it."""

    secret: str


class WebhookList(BaseModel):
    """Webhooks, oldest first."""

    items: list[WebhookResponse]


class WebhookTried(BaseModel):
    """How the address of a webhook answered: `result` is its status, `no answer` or `not public`."""

    result: str


_OF_ONE: Final = documented(400, 401, 403, 404, 409, 422)
_NEW_ONE: Final[dict[int | str, dict[str, Any]]] = {
    201: {"description": "The webhook; its secret is shown this once", "model": CreatedWebhook},
    **documented(400, 401, 403, 409, 422),
}


@router.get(
    "",
    summary="List webhooks",
    response_class=Response,
    responses={200: {"model": WebhookList}, **documented(401, 403)},
)
async def list_webhooks(call: Calling) -> Response:
    """The person's webhooks. It needs the permission manage."""
    async with call.reading() as (tx, access):
        found = await webhooks.own_webhooks(tx, call.principal, access)
    return json_answer({"items": [_values(each) for each in found]})


@router.post("", summary="Make a webhook", response_class=Response, status_code=201, responses=_NEW_ONE)
async def make_webhook(call: Calling, sent: NewWebhookRequest) -> Response:
    """It is told of what the person may see, for as long as they may, by ids and kinds alone. It needs the permissions
    that `/v1/events` needs for its pages, and a key without an end."""
    pages = [WatchedPage(each) for each in sent.pages] if sent.pages else watchable_pages(call)
    webhook, secret = await make(call, WebhookRequest(sent.url, sent.name, pages, sent.of))
    return json_answer(_values(webhook) | {"secret": secret}, 201)


@router.patch(
    "/{id}",
    summary="Switch a webhook on or off",
    response_class=Response,
    responses={200: {"model": WebhookResponse}, **_OF_ONE},
)
async def switch_webhook(call: Calling, id: uuid.UUID, sent: WebhookState) -> Response:
    """What changes while it is off is not told later. It needs the permission manage."""

    async def switch(tx: Transaction, access: EntryAccess) -> Webhook:
        return await webhooks.switch_own_webhook(tx, call.principal, access, id, call.now, on=sent.on)

    found, _ = await call.change(switch, lambda tx, access: webhooks.own_webhook(tx, call.principal, access, id))
    return json_answer(_values(found))


@router.delete("/{id}", summary="Delete a webhook", status_code=204, responses=_OF_ONE)
async def delete_webhook(call: Calling, id: uuid.UUID) -> None:
    """Nothing is sent to it any more. It needs the permission manage."""
    await call.act(lambda tx, access: webhooks.delete_own_webhook(tx, call.principal, access, id))


@router.post(
    "/{id}/test", summary="Try a webhook", response_class=Response, responses={200: {"model": WebhookTried}, **_OF_ONE}
)
async def try_webhook(call: Calling, nexus: Nexus, id: uuid.UUID) -> Response:
    """Send a message of the type `ping` at once, and wait for its answer, for ten seconds at most. It needs the
    permission manage."""
    return json_answer({"result": await try_out(call, nexus, id)})


def watchable_pages(call: ApiCall) -> list[WatchedPage]:
    """The pages that who asks may have a webhook told of. Raises Refused where there are none."""
    found = list[WatchedPage]()
    for page in TOLD_PAGES:
        try:
            require_watchable(call, page)
        except Refused:
            continue
        found.append(page)
    if not found:
        require_watchable(call, WatchedPage.MEMORY)
    return found


async def make(call: ApiCall, request: WebhookRequest) -> tuple[Webhook, str]:
    """Make a webhook, and its secret. Raises Refused, BadInput and Conflict."""
    app, tenant = call.app, call.principal.tenant_id
    if not app.directory.has_webhooks(tenant):
        raise Refused(WEBHOOKS_OFF)
    for page in request.pages:
        require_watchable(call, page)
    hosts = app.settings.named_webhook_hosts

    async def created(tx: Transaction, access: EntryAccess, event: Event) -> tuple[uuid.UUID, Webhook]:
        key_id = app.webhooks.key_id
        made = await webhooks.create_webhook(tx, call.principal, request, uuid.uuid4(), key_id, hosts, call.now)
        return made.id, made

    async def again(tx: Transaction, access: EntryAccess, event: Event, id: uuid.UUID) -> Webhook:
        raise Conflict(SECRET_SHOWN_ONCE)

    made, _ = await call.once(created, again)
    secret = app.webhooks.secret(tenant, made.id, made.key_id)
    assert secret is not None  # the key is the present one
    return made, secret


async def try_out(call: ApiCall, nexus: Nexus, id: uuid.UUID) -> str:
    """Send a message of the type ping; returns how it was answered. Raises NotFound, Refused, Conflict and
    Unavailable."""
    if not call.app.directory.has_webhooks(call.principal.tenant_id):
        raise Refused(WEBHOOKS_OFF)
    async with call.reading() as (tx, access):
        found = await webhooks.webhook_to_try(tx, call.principal, access, id)
    async with nexus.webhooks.places.take():
        return await call.app.webhooks.try_out(call.principal.tenant_id, found, nexus.webhooks)


def _values(webhook: Webhook) -> dict[str, Any]:
    return {
        "id": webhook.id,
        "name": webhook.name,
        "url": webhook.url,
        "pages": list(webhook.pages),
        "of": webhook.place,
        "created_at": webhook.created_at,
        "off_at": webhook.off_at,
        "off_why": webhook.off_why,
        "failures": webhook.failures,
        "failing_since": webhook.failing_since,
        "last_at": webhook.last_at,
        "last_result": webhook.last_result,
    }
