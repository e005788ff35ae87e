"""`/`: the first page, and signing out of all of them."""

from typing import Annotated, Final

from fastapi import Form, Request, Response
from fastapi.responses import RedirectResponse

from bot.web.credentials import cookie_name
from bot.web.pages.ask import ASK
from bot.web.pages.viewer import LOGIN, PageRouter, SignedIn

HOME: Final = "/"
router = PageRouter()


@router.get(HOME)
async def home(viewer: SignedIn) -> Response:
    """Where one begins."""
    return RedirectResponse(ASK, 303)


@router.post("/logout")
async def sign_out(request: Request, viewer: SignedIn, csrf: Annotated[str, Form()]) -> Response:
    """End the web session that asks."""
    viewer.require_form(csrf)
    who = viewer.principal
    async with viewer.call.app.database.transaction(who.tenant_id) as tx:
        await tx.web_sessions.end([who.id], who.user)
    answer = RedirectResponse(LOGIN, 303)
    name, secure = cookie_name(viewer.call.app.settings.public_url)
    answer.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="lax")
    return answer
