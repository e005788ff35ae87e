"""Every page, and every form that is refused, in German: no sentence of it is English."""

import re
from collections.abc import AsyncIterator
from html import unescape
from typing import Final

import httpx2
import pytest
import pytest_asyncio

from bot.web.app import web_app
from bot.web.credentials import COOKIE_ON_LOCALHOST
from bot.web.metrics import Metrics
from bot.web.pages.rendering import languages
from composer.settings import AgentSettings, Settings
from tests.support.discord.harness import Model
from tests.support.harness import START, open_harness
from tests.support.page_things import ADMINS, ROWS, Owner, form_of, owner, path_of, sent_with
from tests.support.pages import OWN
from tests.support.stripe import charged_by, open_stripe
from tests.support.web import served_at
from tests.unit.test_page_texts import texts

pytestmark = pytest.mark.asyncio(loop_scope="module")
GERMAN: Final = OWN | {"Accept-Language": "de", "Accept": "text/html"}
FILES: Final = {"GET /memory/export", "GET /privacy/export", "GET /admin/audit/export", "GET /events"}
FILES_OF: Final = {"GET /static/{digest}/{name}", "GET /"}
GETS: Final = sorted(name for name in ROWS if name.startswith("GET ") and name not in FILES | FILES_OF)
POSTS: Final = sorted(name for name in ROWS if name.startswith("POST "))
VALUE: Final = re.compile(r"%\(\w+\)s")
NO_WORDS: Final = re.compile(r"(?s)<script.*?</script>|<style.*?</style>|<[^>]*>")
# Texts of ours that people see besides what stands between tags.
SHOWN: Final = re.compile(r'(?:title|placeholder|aria-label)="([^"]*)"')


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def people(shared_settings: Settings) -> AsyncIterator[dict[str, Owner]]:
    many = {
        "agents": (AgentSettings(model="gpt-4o"),),
        "requests_per_minute": 10**6,
        "admin_requests_per_minute": 10**6,
    }
    async with (
        open_stripe(START) as stripe,
        open_harness(shared_settings.model_copy(update=many | charged_by(stripe)), model=Model()) as harness,
    ):
        served = web_app(harness.app, Metrics([]), {}, None)
        async with served_at(served) as url, httpx2.AsyncClient(base_url=url, timeout=60) as client:
            yield {
                "alice": await owner(harness, client, "alice"),
                "root": await owner(harness, client, "root", admin=True),
            }


def english() -> list[re.Pattern[str]]:
    """The English sentences of the catalogue that are others in German, with anything for what is filled in."""
    [german] = [each for each in languages() if each.code == "de"]
    ids = [each for text in texts() for each in ((text,) if isinstance(text, str) else text)]
    told = (each for each in ids if len(VALUE.sub("", each)) > 11 and " " in each and german.told(each) != each)
    return [re.compile(".{1,80}?".join(map(re.escape, VALUE.split(each)))) for each in told]


ENGLISH: Final = english()


def left_in(page: str) -> list[str]:
    """The English sentences that a page shows."""
    shown = [unescape(each) for each in (*NO_WORDS.split(page), *SHOWN.findall(page))]
    lines = {" ".join(each.split()) for each in shown if len(each.strip()) > 11}
    return [line for line in lines if any(pattern.fullmatch(line) for pattern in ENGLISH)]


async def got(of: Owner, name: str, ids: dict[str, str], /, **form: str) -> httpx2.Response:
    headers = GERMAN | {"Cookie": f"{COOKIE_ON_LOCALHOST}={of.person.cookie}"}
    if name.startswith("GET "):
        return await of.client.get(path_of(name, ids), headers=headers)
    return await of.client.post(path_of(name, ids), headers=headers, **sent_with(ROWS[name], form))


@pytest.mark.parametrize("name", GETS)
async def test_a_page_is_german(people: dict[str, Owner], name: str) -> None:
    row = ROWS[name]
    of = people["root" if row.who == ADMINS else "alice"]
    page = (await got(of, name, await row.of(of))).text
    assert 'lang="de"' in page, page[:300]
    assert left_in(page) == []


@pytest.mark.parametrize("name", POSTS)
async def test_a_form_is_refused_in_german(people: dict[str, Owner], name: str) -> None:
    """Without its token, with a stale one, without one of its fields, and with each of them too long."""
    row = ROWS[name]
    of = people["root" if row.who == ADMINS else "alice"]
    ids = await row.of(of)
    form = form_of(row, ids) | {"csrf": of.person.csrf}
    wrong = [{}, form | {"csrf": "0" * 32}, *({k: v for k, v in form.items() if k != each} for each in form)]
    wrong += [form | {each: "zq " * 50_000} for each in form if each != "csrf"]
    refused = 0
    for sent in wrong:
        answer = await got(of, name, ids, **sent)
        if answer.status_code >= 400:
            refused += 1
            assert left_in(answer.text) == [], sent.keys()
            [said] = re.findall(r"<h1>(.*?)</h1>", answer.text) or [""]
            assert not re.search(r"\b(the|is|are|should|must|have|has|input)\b", unescape(said)), said
    assert refused
