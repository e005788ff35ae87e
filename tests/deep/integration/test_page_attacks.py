"""Attacks on the pages: forms of other sites and people, ids of others, sessions, addresses and headers that are not
what they seem. What is stored is as before after each, to the last row; and the same requests count from who may send
them."""

import re
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import asyncpg
import httpx2
import pytest
import pytest_asyncio

from bot.web.app import web_app
from bot.web.credentials import COOKIE_ON_LOCALHOST
from bot.web.metrics import Metrics
from composer.settings import AgentSettings, Settings
from tests.support.api import cookie_of
from tests.support.api_answers import sent
from tests.support.discord.harness import Model
from tests.support.harness import START, AppHarness, open_harness
from tests.support.page_things import (
    ADMINS,
    PEOPLE,
    PRIVATE,
    ROUTES,
    ROWS,
    Ids,
    Owner,
    Row,
    form_of,
    named_by,
    owner,
    path_of,
    sent_with,
)
from tests.support.pages import OWN, SCRIPT, Person
from tests.support.stripe import charged_by, open_stripe
from tests.support.web import served_at

pytestmark = pytest.mark.asyncio(loop_scope="module")

OTHER: Final = "umbrella"
LOGIN: Final = "/login"
HTML: Final = {"Accept": "text/html"}
POSTS: Final = sorted(name for name in PRIVATE if name.startswith("POST "))
GETS: Final = sorted(name for name in PRIVATE if name.startswith("GET ") and name != "GET /events")
# What is not there where one Nexus serves several organisations (test_pages_admin.py, test_pages_import.py).
OF_INSTALLATION: Final = (
    "POST /admin/jobs/{name}",
    *(f"POST /admin/import/{act}" for act in ("discard", "file", "run", "undo")),
)
# What every request may change, besides when a credential was last used: how much was asked; and what is noted of who
# only looks: that the log was read, or something taken out.
COUNTS: Final = ("operation_totals", "quota_notices", "audit_unsealed", "model_usage")
WITHOUT: Final = {"audit_events": "WHERE act NOT IN ('read.audit', 'exported')"}


@dataclass
class Stage:
    """Pages on which each test acts with new things of the same people, so that it sees nothing of the others."""

    harness: AppHarness
    client: httpx2.AsyncClient
    raw: asyncpg.Connection
    alice: Owner
    bob: Owner
    root: Owner
    olga: Owner  # of another organisation, an admin there

    def owner_of(self, row: Row) -> Owner:
        """Who may use a route, and has what it is about."""
        return self.root if row.who == ADMINS else self.alice

    async def stored(self) -> dict[str, str]:
        """What every table holds, but for what any request may change."""
        await self.harness.app.turns.settle()
        await self.harness.app.credentials._last_use.settle()
        await self.harness.app.operations.settle()
        tables = [
            row["tablename"]
            for row in await self.raw.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        ]
        digests = " UNION ALL ".join(
            f"SELECT '{table}' AS name, md5(string_agg(row, '' ORDER BY row)) AS held FROM"
            f" (SELECT (to_jsonb(t) - 'last_used_at')::text AS row FROM {table} AS t {WITHOUT.get(table, '')}) AS rows"
            for table in tables
            if table not in COUNTS
        )  # fmt: skip
        return {row["name"]: row["held"] for row in await self.raw.fetch(digests)}

    async def send(
        self, person: Person, name: str, ids: Ids, headers: Any = OWN, about: str = "", /, **form: Any
    ) -> httpx2.Response:
        """Use a route as a browser of somebody does."""
        row, cookie = ROWS[name], {"Cookie": f"{COOKIE_ON_LOCALHOST}={person.cookie}"}
        if name.startswith("GET "):
            return await self.client.get(path_of(name, ids), headers=headers | cookie | HTML)
        sent = sent_with(row, form_of(row, ids, about) | {"csrf": person.csrf} | form)
        return await self.client.post(path_of(name, ids), headers=headers | cookie | HTML, **sent)


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """The tables that hold something else."""
    return [table for table in before if before[table] != after[table]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(shared_settings: Settings) -> AsyncIterator[Stage]:
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
        raw = await asyncpg.connect(shared_settings.database_url)
        async with served_at(served) as url, httpx2.AsyncClient(base_url=url, timeout=60) as client:
            alice, bob = [await owner(harness, client, name) for name in ("alice", "bob")]
            root = await owner(harness, client, "root", admin=True)
            olga = await owner(harness, client, "olga", OTHER, admin=True)
            yield Stage(harness, client, raw, alice, bob, root, olga)
        await raw.close()


def test_every_page_and_form_has_a_row() -> None:
    assert set(ROUTES) == set(ROWS), "say in tests/support/page_things.py who may use it, and what it is about"


# --- forms ------------------------------------------------------------------------------------------------------------

FOREIGN: Final[Mapping[str, Mapping[str, str]]] = {
    "another site": {"Sec-Fetch-Site": "cross-site"},
    "a site beside ours": {"Sec-Fetch-Site": "same-site"},
    "nowhere": {"Sec-Fetch-Site": "none"},
    "what says nothing": {},
    "another origin": {"Origin": "https://evil.example"},
    "no origin": {"Origin": "null"},
    "our name within another": {"Origin": "http://localhost.evil.example"},
    "our name before an at sign": {"Origin": "http://localhost@evil.example"},
    "a page of ours by its Referer alone": {"Referer": "http://localhost/memory"},
    "two sites": {"Sec-Fetch-Site": "same-origin, cross-site"},
}


@pytest.mark.parametrize("name", POSTS)
async def test_a_form_counts_from_a_page_of_its_person_alone(stage: Stage, name: str) -> None:
    row = ROWS[name]
    mine, ids = stage.owner_of(row), await row.of(stage.owner_of(row))
    other, ended = [Person(stage.client, await cookie_of(stage.harness, mine.name, mine.workspace)) for _ in range(2)]
    for each in (other, ended):
        await each.page("/memory")
    await ended.press("/logout")
    before = await stage.stored()
    tokens = {
        "none": "",
        "zeros": "0" * 32,
        "a part": mine.person.csrf[:-1],
        "more": f"{mine.person.csrf} ",
        "capitals": mine.person.csrf.upper() if mine.person.csrf.upper() != mine.person.csrf else "x",
        "of another person": stage.bob.person.csrf,
        "of another organisation": stage.olga.person.csrf,
        "of another browser": other.csrf,
        "of a browser that has signed out": ended.csrf,
        "of no letters of ours": "\u00e9\u202e\U0001f5dd" * 8,
        "the cookie": mine.person.cookie,
    }
    for kind, token in tokens.items():
        answer = await stage.send(mine.person, name, ids, csrf=token)
        assert answer.status_code in ((403, 422) if kind == "none" else (403,)), (kind, answer.status_code, answer.text)
    for kind, headers in FOREIGN.items():
        answer = await stage.send(mine.person, name, ids, dict(headers))
        assert (answer.status_code, answer.headers.get("location")) == (303, "/login"), (kind, answer.text)
    token, path = mine.person.csrf, path_of(name, ids)
    cookie = OWN | {"Cookie": f"{COOKIE_ON_LOCALHOST}={mine.person.cookie}"}
    form = form_of(row, ids)
    strange: dict[str, dict[str, Any]] = {
        "in the address": {"params": {"csrf": token}, "data": form},
        "in a header": {"headers": {"X-CSRF-Token": token}, "data": form},
        "as JSON": {"json": form | {"csrf": token}},
        "as text": {"content": f"csrf={token}", "headers": {"Content-Type": "text/plain"}},
    }
    for kind, odd in strange.items():
        headers = cookie | odd.pop("headers", {})
        answer = await stage.client.post(path, headers=headers, **odd)
        assert answer.status_code in (403, 413, 415, 422), (kind, answer.status_code, answer.text)
    seen = await stage.client.get(path, params=form | {"csrf": token}, headers=cookie)
    assert seen.status_code in (200, 303, 404, 405, 422), seen.text
    other_method = cookie | {"X-HTTP-Method-Override": "POST"}
    seen = await stage.client.get(path, params=form | {"csrf": token, "_method": "POST"}, headers=other_method)
    assert seen.status_code in (200, 303, 404, 405, 422), seen.text
    assert changed(before, await stage.stored()) == []


async def test_the_same_forms_count_from_a_page_of_their_person(stage: Stage) -> None:
    """Else the tests of this file would show nothing: a form that is wrong is refused to anybody."""
    wrong = []
    for name in POSTS:
        row = ROWS[name]
        if name in OF_INSTALLATION:
            continue
        of = stage.root if row.who == ADMINS else await stage.alice.partner(f"s{POSTS.index(name)}")
        ids = await row.of(of)
        before = await stage.stored()
        answer = await stage.send(of.person, name, ids)
        led = answer.headers.get("location", "")
        if answer.status_code not in (200, 303) or (led == LOGIN and name != "POST /logout"):
            wrong.append(f"{name} is answered {answer.status_code}: {answer.text[-600:]}")
        elif row.changes and not changed(before, await stage.stored()):
            wrong.append(f"{name} changes nothing")
    assert not wrong, "\n".join(wrong)


# --- who may, and ids of others --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(PRIVATE))
async def test_what_is_anothers_is_as_what_does_not_exist(stage: Stage, name: str) -> None:
    """Each id of an address and a form, by somebody of the organisation, its admin, and an admin of another one."""
    row = ROWS[name]
    hers = await row.of(stage.owner_of(row))
    before, wrong = None, []
    for viewer in (stage.bob, stage.root, stage.olga):
        if row.who == ADMINS and viewer is stage.root:
            continue
        may = row.who == PEOPLE or viewer is stage.olga
        his = await row.of(viewer if may else stage.root)
        before = await stage.stored()
        for parameter in named_by(name):
            if parameter in row.known and viewer is not stage.olga:
                continue
            random = str(uuid.UUID(int=7))
            asked = [his | {parameter: each} for each in (hers[parameter], random)]
            for headers in (OWN, SCRIPT):
                seen, nothing = [await stage.send(viewer.person, name, each, headers, parameter) for each in asked]
                told = seen.text.replace(hers[parameter], random)
                if (seen.status_code, told) != (nothing.status_code, nothing.text):
                    wrong.append(f"{viewer.name} {parameter}: {seen.status_code} {told[-300:]} {nothing.text[-300:]}")
                if parameter in name and seen.status_code < 400:
                    wrong.append(f"{viewer.name} {parameter}: {seen.status_code}")
                if stage.alice.canary in seen.text:
                    wrong.append(f"{viewer.name} {parameter} shows words of alice")
        if not may:
            seen = await stage.send(viewer.person, name, his)
            absent = await viewer.person.get("/nothing-is-here", **HTML)
            if (seen.status_code, seen.text) != (404, absent.text):
                wrong.append(f"{viewer.name}: {seen.status_code} {seen.text[-300:]}")
        wrong += changed(before, await stage.stored())
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", GETS)
async def test_a_page_changes_nothing_and_is_kept_framed_and_guessed_by_nobody(stage: Stage, name: str) -> None:
    row = ROWS[name]
    of = stage.owner_of(row)
    ids = await row.of(of)
    before = await stage.stored()
    answers = [await stage.send(of.person, name, ids, headers) for headers in (OWN, SCRIPT)]
    answers.append(await stage.send(of.person, name, {each: str(uuid.UUID(int=7)) for each in ids if each != "kind"}))
    cookie = {"Cookie": f"{COOKIE_ON_LOCALHOST}={of.person.cookie}"}
    answers.append(await stage.client.head(path_of(name, ids), headers=OWN | cookie))
    answers.append(await stage.client.get(path_of(name, ids), headers=OWN))
    assert [each.status_code for each in answers[:2]] in ([200, 200], [303, 303]), answers[0].text
    assert answers[-1].headers["location"] == "/login"
    for answer in answers:
        assert "no-store" in answer.headers["cache-control"]
        assert "public" not in answer.headers["cache-control"]
        assert "set-cookie" not in answer.headers
        assert "etag" not in answer.headers
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["referrer-policy"] in ("same-origin", "no-referrer")
        assert "access-control-allow-origin" not in answer.headers
        policy = answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        if "text/html" in answer.headers.get("content-type", "") and answer.status_code == 200:
            assert "Cookie" in answer.headers["vary"]
            assert not re.search(r"<script(?![^>]*\bsrc=\"/static/)|\son\w+=|\sstyle=|<base|<iframe", answer.text)
            assert 'action="/' in answer.text or "<form" not in answer.text
            assert not re.search(r'action="(?!/)', answer.text)
    told = answers[0].headers.get("content-disposition", "")
    assert not re.search(r"[\r\n]|\.\.|/", told)
    assert changed(before, await stage.stored()) == []


# --- one by one -------------------------------------------------------------------------------------------------------

FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}
EVIL: Final = "evil.example"


def part(name: str, value: str, kind: str = "", file: str = "") -> str:
    """A field of a form in parts."""
    more = f'; filename="{file}"' if file else ""
    typed = f"\r\nContent-Type: {kind}" if kind else ""
    return f'--zq\r\nContent-Disposition: form-data; name="{name}"{more}{typed}\r\n\r\n{value}\r\n'


@dataclass(frozen=True)
class Attack:
    """A request as it is sent, and how it must end. `<x>` stands for a value of the stage: `<bob>` for bob's cookie,
    `<bob csrf>` for his token, `<alice entry>` for an id. `leads`: where it leads to, if anywhere; `lacks`: what the
    answer must not hold, besides words of alice, who is attacked. `changes`: it may change what is stored."""

    name: str
    do: str
    status: int | tuple[int, ...]
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    leads: str | None = None
    lacks: str = EVIL
    changes: bool = False


BOB: Final = OWN | {"Cookie": "nexus=<bob>"}
BACK: Final = "csrf=<bob csrf>&act=trash&id=<bob entry>&back="
TABLE: Final = "/memory?view=table"


def led_back(name: str, back: str, leads: str = TABLE) -> Attack:
    """A form of bob's own that says where it leads to."""
    return Attack(name, "POST /memory/bulk", 303, BOB | FORM, BACK + back, leads, changes=True)


def not_signed_in(name: str, headers: Mapping[str, str]) -> Attack:
    """A browser that shows something else than one valid cookie."""
    return Attack(name, "GET /memory", 303, OWN | dict(headers), leads=LOGIN)


def in_parts(name: str, *parts: str, path: str = "/memory", encoding: str = "utf-8") -> Attack:
    """A form of bob's in parts."""
    kind = {"Content-Type": f"multipart/form-data; boundary=zq; charset={encoding}"}
    return Attack(name, f"POST {path}", (400, 403, 415, 422), BOB | kind, "".join(parts) + "--zq--\r\n")


ATTACKS: Final = [
    # Where one is led to.
    led_back("led back to another site", "https://evil.example/"),
    led_back("led back to another host", "//evil.example/memory?"),
    led_back("led back by backslashes", "%5C%5Cevil.example/memory?"),
    led_back("led back by a slash and a backslash", "/%5Cevil.example"),
    led_back("led back to a script", "javascript:alert(1)//memory?"),
    led_back("led back through a name and an at sign", "/memory@evil.example"),
    led_back(
        "led back with a header behind it", "/memory?x%0D%0ASet-Cookie:%20a=b", "/memory?x%0D%0ASet-Cookie:%20a=b"
    ),
    led_back("led back with a tab in front", "%09//evil.example"),
    Attack("a next page after signing in", "GET /login?next=//evil.example", 404),
    Attack("a next page of the first page", "GET /?next=https://evil.example", 303, BOB, leads="/ask"),
    Attack("a host as a path", "GET //evil.example/..", 404, BOB),
    Attack("a host as a path, of another site", "GET //evil.example?q=1", 404, BOB | {"Sec-Fetch-Site": "cross-site"}),
    Attack(
        "another site leads to a search",
        "GET /memory?q=<alice canary>",
        303,
        BOB | {"Sec-Fetch-Site": "cross-site"},
        leads="/memory",
    ),
    Attack(
        "another site leads to an address of its own",
        "GET /ask/%5C%5Cevil.example?x=1",
        303,
        BOB | {"Sec-Fetch-Site": "cross-site"},
        leads="/ask/%5C%5Cevil.example",
        lacks="://",
    ),
    Attack("a whole address instead of a path", "GET http://evil.example/memory", (400, 404, 421), BOB),
    # Who is signed in.
    not_signed_in("two cookies of one name", {"Cookie": "nexus=<bob>; nexus=<alice>"}),
    not_signed_in("the same cookie twice", {"Cookie": "nexus=<bob>; nexus=<bob>"}),
    not_signed_in("a cookie of a name in capitals", {"Cookie": "Nexus=<alice>"}),
    not_signed_in("a cookie of a name that looks alike", {"Cookie": "n\u00ebxus=<alice>; nexus\x00=<alice>"[:20]}),
    not_signed_in("a cookie of the name that https has", {"Cookie": "__Host-nexus=<alice>"}),
    not_signed_in("a cookie in quotes", {"Cookie": 'nexus="<alice>"'}),
    not_signed_in("a cookie with more behind it", {"Cookie": "nexus=<alice>x"}),
    not_signed_in("a cookie in capitals", {"Cookie": "nexus=<alice upper>"}),
    not_signed_in("a cookie of another organisation by name", {"Cookie": "nexus=<alice elsewhere>"}),
    not_signed_in("a key as a cookie", {"Cookie": "nexus=<alice key>"}),
    not_signed_in("a cookie of a browser that has signed out", {"Cookie": "nexus=<alice ended>"}),
    not_signed_in("a cookie as a key", {"Authorization": "Bearer <alice>"}),
    not_signed_in("a cookie beside a header that names nobody", BOB | {"Authorization": "Basic YWxpY2U6"}),
    not_signed_in("a cookie beside an empty header", BOB | {"Authorization": ""}),
    not_signed_in("a name in a header of a proxy", {"X-Forwarded-User": "alice", "X-Remote-User": "alice"}),
    Attack("a cookie within the address", "GET /memory?nexus=<alice>", 303, OWN, leads=LOGIN),
    Attack("a session of the attacker's choice", "POST /login", 404, OWN | FORM | {"Cookie": "nexus=x"}, "code=<bob>"),
    Attack(
        "signed in as the attacker by their site", "POST /login", 403, {"Sec-Fetch-Site": "cross-site"} | FORM, "code=x"
    ),
    Attack(
        "made to join by another site", "POST /invite", 403, {"Origin": "https://evil.example"} | FORM, "code=x&name=x"
    ),
    Attack(
        "a theme that closes its tag",
        "GET /memory",
        200,
        BOB | {"Cookie": 'nexus=<bob>; nexus-theme="><script>evil.example'},
    ),
    # What headers say.
    Attack("the name of another host", "GET /memory", 421, BOB | {"Host": "evil.example"}),
    Attack("another host before ours", "GET /memory", 421, BOB | {"Host": "evil.example@localhost:x"}),
    Attack(
        "another host of a proxy", "GET /tools", 200, BOB | {"X-Forwarded-Host": EVIL, "Forwarded": "host=evil.example"}
    ),
    Attack(
        "another address in a header",
        "GET /memory",
        200,
        BOB | {"X-Original-URL": "/admin", "X-Rewrite-URL": "/admin"},
        lacks="Quarantine",
    ),
    Attack(
        "where a script says that it is",
        "GET /memory?q=x",
        200,
        BOB | SCRIPT | {"HX-Current-URL": "https://evil.example", "Referer": "https://evil.example"},
    ),
    Attack(
        "a target that a script names",
        "GET /memory",
        200,
        BOB | SCRIPT | {"HX-Target": "<script>evil.example", "HX-Trigger": EVIL},
    ),
    Attack("asked by another origin", "GET /memory/export", 200, BOB | {"Origin": "https://evil.example"}),
    Attack(
        "may another origin ask",
        "OPTIONS /memory",
        405,
        {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"},
    ),
    Attack("a part of a page", "GET /memory", 200, BOB | {"Range": "bytes=0-5"}, lacks="206 Partial"),
    Attack(
        "a page that one may have kept",
        "GET /memory",
        200,
        BOB | {"If-None-Match": "*", "If-Modified-Since": "Mon, 04 May 2036 09:00:00 GMT"},
    ),
    Attack(
        "a language that is none",
        "GET /memory",
        200,
        BOB | {"Accept-Language": "de_DE@x;q=evil.example,\u00e9-\u00e9,x-" + "a" * 300},
    ),
    Attack("another method", "DELETE /memory/<bob entry>", 405, BOB),
    Attack("another method by a field", "POST /memory/<bob entry>", 405, BOB | FORM, "csrf=<bob csrf>&_method=DELETE"),
    Attack(
        "two kinds of a body",
        "POST /memory",
        400,
        BOB | FORM | {"content-type": "text/plain"},
        "csrf=<bob csrf>&text=x",
    ),
    # Ids of others beside one's own.
    Attack("an answer of another beside one's own conversation", "GET /ask/<bob session>?turn=<alice turn>", 404, BOB),
    Attack("a question of another in one's own box", "GET /ask/<bob session>?again=<alice turn>", 200, BOB),
    Attack("an entry of another beside one's own list", "GET /memory?item=<alice entry>", 404, BOB),
    Attack("an entry of another, for a script", "GET /memory/<alice entry>", 404, BOB | SCRIPT),
    Attack("words of another by search", "GET /find?q=<alice canary>", 200, BOB, lacks="likes tea"),
    Attack(
        "people of another organisation by search",
        "GET /team?q=alice",
        200,
        OWN | {"Cookie": "nexus=<olga>"},
        lacks="found-people",
    ),
    Attack("everybody's usage as nobody's admin", "GET /usage?whose=everyone", 200, BOB, lacks="whose=everyone"),
    Attack(
        "the log of another organisation",
        "GET /admin/audit?user=<alice user>",
        200,
        OWN | {"Cookie": "nexus=<olga>"},
        lacks=">alice<",
    ),
    Attack(
        "entries of another among many",
        "POST /memory/bulk",
        422,
        BOB | FORM,
        "csrf=<bob csrf>&act=trash&id=<alice entry>",
    ),
    Attack(
        "more at once than there may be",
        "POST /memory/bulk",
        422,
        BOB | FORM,
        "csrf=<bob csrf>&act=trash" + "&id=<alice entry>" * 600,
    ),
    Attack(
        "the version of another", "POST /memory/<alice entry>/edit", 404, BOB | FORM, "csrf=<bob csrf>&text=x&version=1"
    ),
    Attack(
        "a version that is none",
        "POST /memory/<bob entry>/edit",
        (409, 412, 422),
        BOB | FORM,
        "csrf=<bob csrf>&text=x&version=99999999999999999999",
    ),
    Attack("a part of another page's list", "GET /memory?cursor=<alice entry>", (400, 422), BOB),
    # Values that fit nothing.
    Attack("a month before all months", "GET /memory/timeline?month=0001-01", 200, BOB),
    Attack("a month after all months", "GET /memory/timeline?month=9999-12", 200, BOB),
    Attack("days at the ends of time", "GET /memory?since=0001-01-01&until=9999-12-31", 200, BOB),
    Attack("the first day of all in a room", "GET /rooms/<bob room>?day=0001-01-01", 422, BOB),
    Attack("the last day of all in a room", "GET /rooms/<bob room>?view=facts&on=9999-12-31", (200, 422), BOB),
    Attack(
        "the ends of time in the log",
        "GET /admin/audit?since=0001-01-01&until=9999-12-31",
        200,
        OWN | {"Cookie": "nexus=<olga>"},
    ),
    Attack("more days than there are", "GET /usage?days=99999999999", 422, BOB),
    Attack("a value twice", "GET /memory?q=x&q=evil.example&shelf=trash&shelf=facts", (200, 422), BOB, lacks="://evil"),
    Attack("a NUL", "GET /find?q=%00", 400, BOB),
    Attack("half a character", "GET /find?q=%ED%A0%80", (200, 422), BOB),
    Attack("an event behind the name of a page", "GET /events?page=memory%0Aevent:changed", 422, BOB, lacks="event:"),
    Attack("a path out of the files", "GET /static/x/..%2F..%2Fviewer.py", 404, lacks="hmac"),
    # Forms in parts.
    in_parts("a token that is no text", part("csrf", "\\ud800"), part("text", "x"), encoding="unicode_escape"),
    in_parts("a text that is no text", part("csrf", "<bob csrf>"), part("text", "\\ud800"), encoding="unicode_escape"),
    in_parts("a text of an encoding of bytes", part("csrf", "x"), part("text", "x"), encoding="zip"),
    in_parts("a text of no encoding", part("csrf", "x"), part("text", "x"), encoding="evil.example"),
    in_parts("a file instead of a text", part("csrf", "<bob csrf>"), part("text", "zqforged", file="x.html")),
    in_parts("a token in a file", part("csrf", "<bob csrf>", file="x"), part("text", "zqforged")),
    in_parts(
        "a file that is no document",
        part("csrf", "<bob csrf>"),
        part("file", "<script>evil.example</script>", "text/html", "../../x.html"),
        path="/memory/import",
    ),
    in_parts(
        "a file of another kind of document",
        part("csrf", "<bob csrf>"),
        part("file", '{"format": "evil.example"}', file="\r\nX: y"),
        path="/memory/import",
    ),
    in_parts("a thousand fields", part("csrf", "<bob csrf>"), *[part(f"x{n}", "x") for n in range(1_100)]),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def values(stage: Stage) -> dict[str, str]:
    """What requests are filled in with."""
    found: dict[str, str] = {}
    for of in (stage.alice, stage.bob, stage.olga):
        talked, name = await ROWS["GET /ask/{session}"].of(of), of.name
        found |= {name: of.person.cookie, f"{name} csrf": of.person.csrf, f"{name} user": of.user}
        found |= {f"{name} session": talked["session"], f"{name} turn": talked["turn"], f"{name} canary": of.canary}
        found[f"{name} entry"] = (await ROWS["GET /memory/{id}"].of(of))["id"]
        found[f"{name} room"] = (await ROWS["GET /rooms/{id}"].of(of))["id"]
    ended = Person(stage.client, await cookie_of(stage.harness, "alice"))
    await ended.page("/memory")
    await ended.press("/logout")
    cookie, mine = stage.alice.person.cookie, stage.harness.workspace().tenant
    found["alice upper"], found["alice ended"] = cookie.upper(), ended.cookie
    found["alice elsewhere"] = cookie.replace(mine, stage.harness.workspace(OTHER).tenant)
    found["alice key"] = stage.alice.key["Authorization"].partition(" ")[2]
    return found


def filled(text: str, values: Mapping[str, str]) -> str:
    """A text with the values of the stage."""
    return re.sub(r"<(\w+(?: \w+)?)>", lambda found: values.get(found[1], found[0]), text)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
async def test_an_attack_fails(stage: Stage, values: dict[str, str], attack: Attack) -> None:
    body = filled(attack.body, values)
    headers = {name: filled(value, values) for name, value in attack.headers.items()}
    lines = [f"{filled(attack.do, values)} HTTP/1.1"]
    lines += [] if "Host" in headers else ["Host: localhost"]
    lines += [f"{name}: {value}" for name, value in headers.items()] + ["Connection: close", "Accept: text/html"]
    lines += [f"Content-Length: {len(body.encode('latin-1'))}"] if attack.do.startswith("POST") else []
    before = await stage.stored()
    answer = await sent(str(stage.client.base_url), "\r\n".join([*lines, "", body]).encode("latin-1"))
    expected = attack.status if isinstance(attack.status, tuple) else (attack.status,)
    assert answer.status in expected, f"{answer.status}: {answer.body[-600:]}"
    assert answer.headers.get("location") == attack.leads
    assert "no-store" in answer.headers.get("cache-control", "no-store")
    assert "access-control-allow-origin" not in answer.headers
    assert "set-cookie" not in answer.headers
    asked = filled(f"{attack.do} {attack.body}", values)
    told = answer.whole if attack.leads is not None else answer.whole.partition("\r\n\r\n")[0] + answer.body
    if attack.lacks not in asked or attack.leads is not None:
        assert attack.lacks not in told
    if stage.alice.canary not in asked:
        assert stage.alice.canary not in told
    if not attack.changes:
        assert changed(before, await stage.stored()) == []
