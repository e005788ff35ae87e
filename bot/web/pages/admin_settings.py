"""`/admin/settings`: what holds in the organisation: what admins change here, and what whoever runs Nexus changes."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final

from fastapi import Form, Request, Response
from fastapi.responses import RedirectResponse

from bot.web.dependencies import Nexus
from bot.web.operating import is_of_installation
from bot.web.pages.admin import ADMIN
from bot.web.pages.rendering import page
from bot.web.pages.usage import limits
from bot.web.pages.viewer import AdminSignedIn, PageRouter, Viewer
from composer.errors import BadInput
from composer.ingest.chosen_settings import MAX_PERSONA_CHARS
from composer.ingest.retention_settings import ErasesMore
from composer.operations.changing_settings import ChangeableSettings, changeable
from composer.operations.in_force import settings_in_force

SETTINGS: Final = f"{ADMIN}/settings"
router = PageRouter(SETTINGS)
EMPTY: Final[Mapping[str, str | None]] = MappingProxyType({})
_Name = Annotated[str, Form(max_length=60)]
_Names = Annotated[list[Annotated[str, Form(max_length=60)]], Form(max_length=20)]
_Texts = Annotated[list[Annotated[str, Form(max_length=MAX_PERSONA_CHARS)]], Form(max_length=20)]


@router.get("")
async def show_admin_settings(request: Request, nexus: Nexus, viewer: AdminSignedIn) -> Response:
    """The settings that are in force."""
    operator = await is_of_installation(nexus, viewer.principal.tenant_id)
    return await _shown(request, viewer, operator=operator)


async def _shown(
    request: Request,
    viewer: Viewer,
    *,
    operator: bool,
    asked: Mapping[str, str | None] = EMPTY,
    losses: ErasesMore | None = None,
) -> Response:
    app, who, of = viewer.call.app, viewer.principal, _of(viewer)
    agents = app.directory.agents(who.tenant_id)
    async with viewer.reading() as reading:
        stored = await reading.tx.settings.all()
        figures = await reading.tx.tenant_figures.counts(viewer.call.now, ("pending",))
        left = {each.of: each for each in await limits(viewer, reading) if not each.kind and not each.agent}
    return page(
        request,
        "admin_settings.html",
        viewer.language,
        status=409 if losses else 200,
        chrome=reading.chrome,
        now=viewer.call.now,
        groups={name: of.lines(name, stored) for name in of.groups},
        agents=agents,
        has_model=app.settings.has_model_api and any(each.model for each in agents),
        operator=operator,
        waiting=figures["pending"],
        left=left,
        asked=asked,
        losses=losses,
        fixed=settings_in_force(app.settings, app.directory, who.tenant_id, who.tenant, app.embedder.name),
    )


def _of(viewer: Viewer) -> ChangeableSettings:
    app, who = viewer.call.app, viewer.principal
    return changeable(app.settings, app.directory, who.tenant_id, who.tenant)


@router.post("")
async def change_admin_settings_page(
    request: Request,
    nexus: Nexus,
    viewer: AdminSignedIn,
    csrf: Annotated[str, Form()],
    group: _Name,
    name: _Names = [],  # noqa: B006 - FastAPI makes a new one for each request
    value: _Texts = [],  # noqa: B006
    reset: _Name = "",
    confirmed: Annotated[bool, Form()] = False,
) -> Response:
    """Set those of a group that differ, or let one (`reset`) be as configured again. What erases more than before is
    asked first."""
    viewer.require_form(csrf)
    if len(name) != len(value):
        raise BadInput("Each setting has one value.")
    wanted: dict[str, str | None] = {reset: None} if reset else dict(zip(name, value, strict=True))
    operator = await is_of_installation(nexus, viewer.principal.tenant_id)
    try:
        async with viewer.call.writing() as (tx, access):
            tx.audit.act_for(access.user)
            await _of(viewer).change(tx, group, wanted, viewer.call.now, operator=operator, confirmed=confirmed)
    except ErasesMore as error:
        return await _shown(request, viewer, operator=operator, asked=wanted, losses=error)
    return RedirectResponse(f"{SETTINGS}#{group}", 303)
