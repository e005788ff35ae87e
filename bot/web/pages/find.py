"""`/find`: pages, rooms, projects, people, memories and decisions by a few words, of what the person may open. ⌘K opens
the same in front of any page."""

from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import Query, Request, Response

from bot.web.pages.memory_wanted import MEMORY
from bot.web.pages.projects import PROJECTS
from bot.web.pages.rendering import page
from bot.web.pages.rooms import ROOMS
from bot.web.pages.team import TEAM
from bot.web.pages.viewer import PageRouter, SignedIn, is_script
from composer.people.finding import find_anything
from composer.text.cleaning import shorten

FIND: Final = "/find"
SHOWN_CHARS: Final = 120
router = PageRouter(FIND)


@router.get("")
async def find(request: Request, viewer: SignedIn, q: Annotated[str, Query(max_length=200)] = "") -> Response:
    """What fits; for a script the results alone. A person leads to where they share with one who looks."""
    async with viewer.reading() as reading:
        found = await find_anything(reading.tx, reading.access, q, viewer.call.now, reading.presence)
    values: dict[str, Any] = {
        "chrome": reading.chrome,
        "q": q,
        "room_rows": [(f"{ROOMS}/{each.id}", each.name, "") for each in found.rooms],
        "project_rows": [(f"{PROJECTS}/{each.id}", each.name, "") for each in found.projects],
        "person_rows": [
            (f"{TEAM}?q={quote(each.name)}", each.name, " · ".join(map(str.title, each.platforms)))
            for each in found.people
        ],
        "decision_rows": [
            (f"/{each.kind}s/{each.place.id}?view=decisions", shorten(each.text, SHOWN_CHARS), each.place.name)
            for each in found.decisions
        ],
        "item_rows": [
            (f"{MEMORY}/{each.item.id}", shorten(each.item.text, SHOWN_CHARS), each.place, each.item.shelf)
            for each in found.items
        ],
    }
    template = "parts/find_results.html" if is_script(request) else "find.html"
    return page(request, template, viewer.language, now=viewer.call.now, **values)
