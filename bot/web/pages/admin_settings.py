"""`/admin/settings`: what holds in the organisation: what admins change here, and what whoever runs Nexus changes."""

from typing import Annotated, Final

from fastapi import Form, Request, Response
from fastapi.responses import RedirectResponse

from bot.web.pages.admin import ADMIN
from bot.web.pages.rendering import page
from bot.web.pages.viewer import AdminSignedIn, PageRouter
from composer.layers.retrieval_settings import RETRIEVAL_SETTINGS, STRATEGIES
from composer.layers.tenant_settings import AS_CONFIGURED, change_retrieval, chosen_retrieval
from composer.operations.in_force import agents_in_force, settings_in_force

SETTINGS: Final = f"{ADMIN}/settings"
router = PageRouter(SETTINGS)
_Value = Annotated[str, Form(max_length=40)]


@router.get("")
async def show_admin_settings(request: Request, viewer: AdminSignedIn) -> Response:
    """The settings that are in force."""
    app, who = viewer.call.app, viewer.principal
    configured = app.directory.retrieval(who.tenant_id)
    async with viewer.reading() as reading:
        chosen = await chosen_retrieval(reading.tx, configured)
    return page(
        request,
        "admin_settings.html",
        viewer.language,
        chrome=reading.chrome,
        now=viewer.call.now,
        retrieval=[
            (setting, getattr(chosen, setting.name), getattr(configured, setting.name))
            for setting in RETRIEVAL_SETTINGS.values()
        ],
        strategies=STRATEGIES,
        agents=agents_in_force(app.directory, who.tenant_id),
        fixed=settings_in_force(app.settings, app.directory, who.tenant_id, who.tenant),
    )


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
