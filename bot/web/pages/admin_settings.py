"""`/admin/settings`: what holds in the organisation: what admins change here, and what whoever runs Nexus changes."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final

from fastapi import Form, Request, Response
from fastapi.responses import RedirectResponse

from bot.web.pages.admin import ADMIN
from bot.web.pages.rendering import page
from bot.web.pages.viewer import AdminSignedIn, PageRouter
from composer.errors import BadInput
from composer.layers.retention_settings import (
    RETENTION_SETTINGS,
    ErasesMore,
    change_retention,
    chosen_retention,
    configured_retention,
)
from composer.layers.retrieval_settings import RETRIEVAL_SETTINGS, STRATEGIES, Setting
from composer.layers.tenant_settings import AS_CONFIGURED, change_retrieval, chosen_retrieval
from composer.operations.in_force import agents_in_force, settings_in_force

SETTINGS: Final = f"{ADMIN}/settings"
router = PageRouter(SETTINGS)
EMPTY: Final[Mapping[str, int | None]] = MappingProxyType({})
_Value = Annotated[str, Form(max_length=40)]
_Days = Annotated[int | None, Form(ge=0)]


@router.get("")
async def show_admin_settings(request: Request, viewer: AdminSignedIn) -> Response:
    """The settings that are in force."""
    return await _shown(request, viewer)


async def _shown(
    request: Request, viewer: AdminSignedIn, asked: Mapping[str, int | None] = EMPTY, losses: ErasesMore | None = None
) -> Response:
    app, who = viewer.call.app, viewer.principal
    configured = app.directory.retrieval(who.tenant_id)
    async with viewer.reading() as reading:
        chosen = await chosen_retrieval(reading.tx, configured)
        as_configured = configured_retention(app.settings, who.tenant)
        kept = await chosen_retention(reading.tx, as_configured)
    fixed = settings_in_force(app.settings, app.directory, who.tenant_id, who.tenant)
    return page(
        request,
        "admin_settings.html",
        viewer.language,
        status=409 if losses else 200,
        chrome=reading.chrome,
        now=viewer.call.now,
        retrieval=_lines(RETRIEVAL_SETTINGS, chosen, configured),
        retention=_lines(RETENTION_SETTINGS, kept, as_configured),
        asked=asked,
        losses=losses,
        strategies=STRATEGIES,
        agents=agents_in_force(app.directory, who.tenant_id),
        fixed=[each for each in fixed if each.name not in RETENTION_SETTINGS],
    )


def _lines(settings: Mapping[str, Setting], chosen: object, configured: object) -> list[tuple[Setting, Any, Any]]:
    return [(each, getattr(chosen, each.name), getattr(configured, each.name)) for each in settings.values()]


@router.post("")
async def change_admin_settings_page(
    viewer: AdminSignedIn,
    csrf: Annotated[str, Form()],
    strategy: _Value = "",
    top_k: _Value = "",
    recall_tokens: _Value = "",
    summary_tokens: _Value = "",
    retention_days: _Value = "",
    reset: _Value = "",
) -> Response:
    """Set those that differ, or let one be as configured again, as /nexus settings does."""
    viewer.require_form(csrf)
    sent = {"strategy": strategy, "top_k": top_k, "recall_tokens": recall_tokens, "summary_tokens": summary_tokens}
    wanted = {reset: AS_CONFIGURED} if reset else sent | {"retention_days": retention_days}
    configured = viewer.call.app.directory.retrieval(viewer.principal.tenant_id)
    async with viewer.call.writing() as (tx, access):
        tx.audit.act_for(access.user)
        chosen = await chosen_retrieval(tx, configured)
        for name, value in wanted.items():
            if value and (reset or value.strip() != str(getattr(chosen, name))):
                await change_retrieval(tx, name, value.strip(), viewer.call.now)
    return RedirectResponse(SETTINGS, 303)


@router.post("/retention")
async def change_retention_page(
    request: Request,
    viewer: AdminSignedIn,
    csrf: Annotated[str, Form()],
    keep_days: _Days = None,
    prompt_days: _Days = None,
    usage_days: _Days = None,
    reset: _Value = "",
    confirmed: Annotated[bool, Form()] = False,
) -> Response:
    """Set how long what is kept, or let one be as configured again. What erases more than before is asked first."""
    viewer.require_form(csrf)
    wanted: dict[str, int | None] = {"keep_days": keep_days, "prompt_days": prompt_days, "usage_days": usage_days}
    wanted = {name: days for name, days in wanted.items() if days is not None}
    if reset:
        if reset not in RETENTION_SETTINGS:
            raise BadInput("There is no such setting.")
        wanted = {reset: None}
    app, now = viewer.call.app, viewer.call.now
    configured = configured_retention(app.settings, viewer.principal.tenant)
    try:
        async with viewer.call.writing() as (tx, access):
            tx.audit.act_for(access.user)
            await change_retention(tx, wanted, configured, now, confirmed=confirmed)
    except ErasesMore as error:
        return await _shown(request, viewer, wanted, error)
    return RedirectResponse(f"{SETTINGS}#retention", 303)
