"""`/privacy`: what is stored of a person, who reads what, and how it is taken back."""

from fastapi import Request, Response

from bot.web.pages.rendering import page
from bot.web.pages.viewer import PageRouter, SignedIn
from composer.people.privacy import privacy_report

router = PageRouter("/privacy")


@router.get("")
async def privacy(request: Request, viewer: SignedIn) -> Response:
    """What is stored of the person, and who is answered from it."""
    now = viewer.call.now
    async with viewer.reading() as reading:
        report = await privacy_report(reading.tx, reading.owned, now, reading.presence)
        chrome = reading.chrome
    return page(request, "privacy.html", viewer.language, chrome=chrome, now=now, report=report)
