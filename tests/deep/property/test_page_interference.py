"""What somebody may not read changes nothing on any page that they open: not a byte of a page, header or status.

Every page of the app's own route table is opened by eight people of two organisations, each in a world and in its twin,
which differs only in what that person may not read: there it was not done at all or, for an admin, who sees what is
done in their organisation, but none of its words, in other words of the same length.
"""

import hashlib
import itertools
import re
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

import httpx2
import pytest
import pytest_asyncio
from fastapi.routing import APIRoute

from bot.commands.table import run_command
from bot.script.places import incoming, place_of
from bot.web import app as web
from bot.web import pages
from bot.web.credentials import COOKIE_ON_LOCALHOST
from bot.web.pages.assets import assets
from composer.model import Incoming, Trust, api_workspace
from composer.people.credentials import keys
from composer.people.credentials.invitations import INVITATION_LIFETIME, accept
from composer.people.credentials.issuing import KeyRequest, create_key
from composer.people.credentials.keys import CredentialKind
from composer.people.credentials.sign_in import make_login_link, sign_in
from tests.property.entry_product import open_clients
from tests.property.product import WHICH, Product, both
from tests.support.api import bearer
from tests.support.harness import START
from tests.support.pages import OWN, SCRIPT

pytestmark = pytest.mark.asyncio(loop_scope="module")

ADMIN: Final = "alice"
PEOPLE: Final[Mapping[str, str]] = {
    "alice": "main",  # an admin
    "bob": "main",
    "carol": "main",
    "dave": "main",  # has opted out
    "erin": "main",  # came by a link
    "gus": "main",  # a guest
    "olga": "other",  # an admin there
    "oscar": "other",
}
ADMINS: Final = ("alice", "olga")
BY_LINK: Final = "erin"
OPTED_OUT: Final = "dave"
GUEST: Final = "gus"
END: Final = START + timedelta(days=3)
RANDOM: Final = str(uuid.UUID(int=7))
TOOL: Final = "claude"
CANARY: Final = re.compile(r"zq\d+[ab]z")


@dataclass(frozen=True, slots=True)
class PageStep:
    """What somebody does, with words that `readers` alone may read. `how`: say, tell (a command), write (an entry),
    note (an entry of a tool of theirs), team, chat."""

    n: int
    by: str
    how: str
    text: str
    readers: frozenset[str]
    where: Mapping[str, object] = field(default_factory=dict)
    project: str = ""

    def words(self, variant: str) -> str:
        """The text, whose canary says who put it there."""
        return self.text.replace("CANARY", f"zq{self.n}{variant}z")


MAIN: Final = frozenset(person for person, tenant in PEOPLE.items() if tenant == "main")
OTHER: Final = frozenset(PEOPLE) - MAIN
PUBLIC: Final[dict[str, Any]] = {"room": "general"}


def _steps() -> Iterator[PageStep]:
    numbers = itertools.count(1)

    def step(by: str, how: str, text: str, readers: Sequence[str], project: str = "", **where: Any) -> PageStep:
        return PageStep(next(numbers), by, how, text, frozenset({by, *readers}), where, project)

    for person, tenant in PEOPLE.items():
        if person == BY_LINK:
            yield step(person, "write", "The plan CANARY of my own.", ())
            yield step(person, "chat", "What of CANARY?", ())
            continue
        everybody = tuple(MAIN if tenant == "main" else OTHER)
        yield step(person, "say", "We talk of CANARY here.", everybody, **PUBLIC)
        yield step(person, "say", "My salary is CANARY now.", (), dm="nexus")
        vault: dict[str, Any] = {"room": f"vault-{person}", "private": True}
        yield step(person, "say", "In here it is CANARY alone.", (), **vault)
        yield step(person, "say", "We decided to paint CANARY in here.", (), **vault)
        yield step(person, "tell", "/nexus fact set deploy_day CANARY --yes", (), **vault)
        yield step(person, "tell", "/nexus landmark add we chose CANARY here --yes", (), **vault)
        yield step(person, "tell", "/nexus remember the key is CANARY --yes", (), dm="nexus")
        yield step(person, "tell", "/nexus fact set colour CANARY --yes", (), dm="nexus")
        if person != GUEST:
            yield step(person, "write", "The plan CANARY of my own.", ())
            yield step(person, "note", "A tool noted CANARY of them.", ())
            yield step(person, "chat", "What of CANARY?", ())
            yield step(person, "tell", f"/nexus project create p{person}", (), dm="nexus")
            yield step(person, "team", "The team CANARY", ())
            yield step(person, "write", "The project CANARY goes on.", (), f"p{person}")
            yield step(person, "note", "A tool proposes CANARY for it.", (), f"p{person}")
    both_of_them = ("bob", "carol")
    crypt: dict[str, Any] = {"room": "crypt", "private": True}
    yield step("bob", "say", "The crypt holds CANARY.", both_of_them, **crypt)
    yield step("carol", "say", "It does hold CANARY.", both_of_them, **crypt)
    yield step("bob", "say", "After the CANARY talk. We decided to keep it CANARY.", both_of_them, **crypt)


STEPS: Final = tuple(_steps())


def world_of(viewer: str, *, twin: bool) -> list[tuple[PageStep, str]]:
    """What is done, and with which words."""
    done = []
    for step in STEPS:
        hidden = viewer not in step.readers
        seen_acts = viewer in ADMINS and PEOPLE[viewer] == PEOPLE[step.by]
        if twin and hidden and not seen_acts:
            continue
        done.append((step, step.words("b" if twin and hidden else "a")))
    return done


@dataclass
class PlayedPages:
    """A world on a product, with the browser of each person."""

    product: Product
    name: str
    client: httpx2.AsyncClient
    cookies: dict[str, str] = field(default_factory=dict)
    keys: dict[tuple[str, str], str] = field(default_factory=dict)
    invitation: str = ""

    def _secret(self, what: str) -> bytes:
        return hashlib.sha256(f"{self.name} {what}".encode()).digest()

    async def play(self, steps: Sequence[tuple[PageStep, str]]) -> None:
        """Let everybody come, then do the steps, a minute apart; it is END then."""
        WHICH.set(self.product.url)
        self.product.harness.clock.set(START)
        for person in PEOPLE:
            if person == BY_LINK:
                continue
            await self._say(person, "hello", f"hello {person}", PUBLIC)
            await self._set_up(person)
        await self._join()
        for step, words in steps:
            self.product.harness.clock.set(START + timedelta(days=1, minutes=step.n))
            await self._do(step, words)
        for n, person in enumerate(PEOPLE):
            self.product.harness.clock.set(START + timedelta(days=2, minutes=n))
            if person == OPTED_OUT:
                await self._tell(person, "/nexus opt-out --yes", "opt-out", {"dm": "nexus"})
        self.product.harness.clock.set(END)
        for tenant in ("main", "other"):
            await self.product.harness.app.indexer.catch_up(self.product.workspace(self.name, tenant).tenant_id)
        await self._settle()

    async def _set_up(self, person: str) -> None:
        here, app = self.product.workspace(self.name, PEOPLE[person]), self.product.harness.app
        async with app.database.transaction(here.tenant_id) as tx:
            user = await tx.people.find_user(here.platform, here.name, person)
            assert user is not None
            if person in ADMINS:
                await tx.people.set_admin(user.id, True)
            for tool in ("", TOOL):
                made = await create_key(
                    tx, here.tenant, user, KeyRequest(tool or None, "key", PERMISSIONS if tool else None),
                    self._secret(f"key {person} {tool}"), START, by=None,
                )  # fmt: skip
                self.keys[person, tool] = made.text
            link = await make_login_link(tx, here.tenant, user.id, self._secret(f"link {person}"), START, by=user.id)
            if person == ADMIN:
                code = keys.make(CredentialKind.INVITATION, here.tenant, self._secret("invitation"))
                again = keys.make(CredentialKind.INVITATION, here.tenant, self._secret("open invitation"))
                ends = START + INVITATION_LIFETIME
                await tx.one_time_codes.invite(keys.digest(code), BY_LINK, user.id, ends)
                await tx.one_time_codes.invite(keys.digest(again), "frank", user.id, ends)
                self.cookies[BY_LINK], self.invitation = code, again
        _, self.cookies[person] = await sign_in(app.database, link, "browser", self._secret(f"web {person}"), START)

    async def _join(self) -> None:
        main, app = self.product.workspace(self.name, "main"), self.product.harness.app
        here, agents = api_workspace(main.tenant_id, main.tenant), app.directory.agents(main.tenant_id)
        code, secret = self.cookies[BY_LINK], self._secret(f"web {BY_LINK}")
        self.cookies[BY_LINK] = await accept(app.database, here, agents, code, BY_LINK, "browser", secret, START)

    async def _do(self, step: PageStep, words: str) -> None:
        id = f"step {step.n}"
        if step.how == "say":
            await self._say(step.by, words, id, step.where)
        elif step.how == "tell":
            await self._tell(step.by, words, id, step.where)
        elif step.how == "chat":
            await self._send(step, "/v1/chat", {"content": words, "session": "plans", "id": id})
            await self.product.harness.app.turns.settle()
        elif step.how == "team":
            await self._send(step, "/v1/teams", {"name": words})
        else:
            body = {"content": words, "tags": [words.split()[2]], "key": id}
            if step.project:
                body["project"] = step.project
            await self._send(step, "/v1/agent/entries" if step.how == "note" else "/v1/entries", body)
        await self.product.harness.app.indexer.catch_up(self.product.workspace(self.name, PEOPLE[step.by]).tenant_id)

    async def _say(self, person: str, text: str, id: str, where: Mapping[str, object]) -> None:
        here, app = self.product.workspace(self.name, PEOPLE[person]), self.product.harness.app
        said = self._incoming(person, text, id, where)
        await app.receive(here, [said])
        await app.turns.settle()

    async def _tell(self, person: str, text: str, id: str, where: Mapping[str, object]) -> None:
        here = self.product.workspace(self.name, PEOPLE[person])
        answer = await run_command(self.product.harness.app, here, self._incoming(person, text, id, where))
        assert not answer.confirm, answer.text

    def _incoming(self, person: str, text: str, id: str, where: Mapping[str, object]) -> Incoming:
        here, now = self.product.workspace(self.name, PEOPLE[person]), self.product.harness.clock.now()
        private = bool(where.get("private")) or None
        room, dm = (None if where.get(kind) is None else str(where[kind]) for kind in ("room", "dm"))
        said = incoming(here, place_of(room, dm, None, private=private), person, text, now, id=id)
        return replace(said, sender_trust=Trust.GUEST if person == GUEST else Trust.MEMBER)

    async def _send(self, step: PageStep, path: str, body: Mapping[str, object]) -> None:
        tool = TOOL if step.how == "note" else ""
        headers = OWN | self._cookie(step.by) if step.by == BY_LINK else bearer(self.keys[step.by, tool])
        headers = headers | ({} if step.how == "chat" else {"Idempotency-Key": f"step {step.n}"})
        answer = await self.client.post(path, json=body, headers=headers)
        assert answer.status_code < 300, f"{step}: {answer.text}"
        await self._settle()

    async def _settle(self) -> None:
        await self.product.harness.app.credentials._last_use.settle()
        await self.product.harness.app.operations.settle()

    def _cookie(self, person: str) -> dict[str, str]:
        return {"Cookie": f"{COOKIE_ON_LOCALHOST}={self.cookies[person]}"}

    async def open(self, person: str, path: str, *, script: bool = False) -> str:
        """All of a page: its status, headers and body."""
        WHICH.set(self.product.url)
        self.product.harness.clock.tick(1)  # so that the rows of the audit log have an order
        headers = (SCRIPT if script else OWN) | self._cookie(person) | {"Accept-Encoding": "identity"}
        answer = await self.client.get(path, headers=headers)
        await self._settle()
        text = AUDIT_ID.sub("", MEASURED.sub("0.0", answer.text))
        if path.startswith(AUDITED):
            text = "\n".join(sorted(_whole_moments(text).splitlines()))
        headed = sorted(each for each in answer.headers.items() if each[0] != "content-length")  # all of it is compared
        return "\n".join([str(answer.status_code), repr(headed), text])


def _whole_moments(text: str) -> str:
    """A page without the rows of its oldest moment, of which it may show some alone."""
    head, *rows = re.split(r"(?=<li>\s*<time )", text)
    if not rows:
        return text
    *_, oldest = _MOMENT.findall(rows[-1])
    rows[-1], end, rest = rows[-1].partition("</ul>")
    return head + "".join(row for row in rows if oldest not in row) + end + rest


_MOMENT: Final = re.compile(r'<time datetime="[^"]+"')
PERMISSIONS: Final = ("entries:read", "entries:write", "projects:read", "projects:write", "teams:read")
Worlds = tuple[tuple[Product, Product], list[httpx2.AsyncClient]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def worlds(products: tuple[Product, Product]) -> AsyncIterator[Worlds]:
    async with open_clients(products) as clients:
        yield products, clients


ROUTES: Final = [
    route
    for route in web.ROUTES
    if isinstance(route, APIRoute)
    and route.endpoint.__module__.startswith(pages.__name__)
    and "GET" in (route.methods or ())
]
# The stream of events never ends: tests/integration/test_page_events.py says who is told what.
HOME: Final = "/"  # it leads to another page
STREAMS: Final = ("/events",)
# A value or some for each parameter of a page; a new one fails the test until it is here.
DAY: Final = (START + timedelta(days=1)).date().isoformat()
VALUES: Final[Mapping[str, Sequence[str]]] = {
    "act": ("key.create", "invite"),
    "user": ("bob", RANDOM),
    "since": (DAY,),
    "until": (DAY,),
    "before": (RANDOM,),
    "cursor": ("x",),
    "q": ("CANARY", "plan", "bob", "vault", ""),
    "item": (RANDOM,),
    "quiet": ("true",),
    "colour": ("kind", "place", "tool"),
    "month": (DAY[:7],),
    "whose": ("", "agent", "mine", "organisation"),
    "days": ("7", "90"),
    "turn": (RANDOM,),
    "again": (RANDOM,),
    "view": ("days", "decisions", "facts", "memories", "people", "entries", "table", "cards", "activity"),
    "on": (DAY,),
    "key": ("deploy_day", "colour"),
    "day": (DAY,),
    "shelf": ("notes", "facts", "trash", "waiting"),
    "tool": (TOOL,),
    "tag": ("CANARY", "ops"),
    "place": ("#general", "your entries"),
    "project": ("pbob", "palice"),
    "by": ("bob", "alice"),
    "sort": ("oldest", "changed"),
    "text": ("where is CANARY?",),
    "page": ("memory",),
}
MOST_IDS: Final = 4  # of a kind that are opened, and as many of others
# How long the person's own answer took is measured, and no two worlds agree on it.
MEASURED: Final = re.compile(r"(?<=It took )[0-9.,]+(?= s\. )")
# The ids of the audit log's own rows are random, and rows of one moment stand in the order of these.
AUDIT_ID: Final = re.compile(r'(?<=\{"id":")[0-9a-f-]{36}(?=","at":)|(?<=[?&;]cursor=)[^"&]+')
AUDITED: Final = "/admin"
_TEMPLATE: Final = re.compile(r"\{(\w+)\}")
_ID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_LINK: Final = re.compile(rf"(?:href|action|hx-get)=\"(/[a-z/]+?)/({_ID}|plans|default)(?=[\"/?])")


def parameters(route: APIRoute) -> set[str]:
    """The names of what a page is asked with, also through its dependencies."""
    found, waiting = set(), [route.dependant]
    while waiting:
        one = waiting.pop()
        found |= {parameter.alias for parameter in one.query_params}
        waiting += one.dependencies
    return found


async def ids_of(played: PlayedPages) -> dict[str, dict[str, set[str]]]:
    """The ids that each person is led to, by what stands before them in an address."""
    found: dict[str, dict[str, set[str]]] = {person: {} for person in PEOPLE}
    for person in PEOPLE:
        for route in ROUTES:
            if "{" in route.path or route.path in STREAMS:
                continue
            for before, id in _LINK.findall(await played.open(person, route.path)):
                found[person].setdefault(before, set()).add(id)
    return found


def paths(
    route: APIRoute, ids: Mapping[str, Mapping[str, set[str]]], viewer: str, invitation: str
) -> Iterator[tuple[str, str, bool]]:
    """The addresses of a page: each with the id in it, and whether it is of others alone."""
    if route.path.startswith("/static/"):
        yield from ((asset.path, "", False) for asset in assets().values() if asset.path.endswith((".css", ".js")))
        return
    if route.path == "/invite/{code}":
        yield from ((f"/invite/{code}", "", False) for code in (invitation, invitation[:-1] + "x", "x"))
        return
    if "{" not in route.path:
        yield route.path, "", False
        return
    before = route.path.partition("/{")[0]
    last = _TEMPLATE.findall(route.path)[-1]
    starts = [each for each in {before, *itertools.chain.from_iterable(ids.values())} if _fits(route, each)]
    for start in sorted(starts):
        mine = ids[viewer].get(start, set())
        everybodys = set().union(*(of.get(start, set()) for of in ids.values()))
        others = sorted(everybodys - mine)
        for id in [*sorted(mine)[:MOST_IDS], *others[:MOST_IDS], RANDOM]:
            rest = route.path[route.path.index(f"{{{last}}}") + len(last) + 2 :]
            yield f"{start}/{id}{rest}", id, id not in mine


def _fits(route: APIRoute, start: str) -> bool:
    """Whether an address that begins so, and goes on with an id, may be of a page."""
    shape = route.path[: route.path.rindex("/{")]
    return re.fullmatch(_TEMPLATE.sub(r"\\w+", shape), start) is not None and "\\w" not in start


def queries(route: APIRoute) -> Iterator[dict[str, str]]:
    """What a page is asked with: nothing, and each value of each parameter."""
    yield {}
    for name in sorted(parameters(route)):
        assert name in VALUES, f"{route.path} has a new parameter {name}: say in VALUES what it is asked with"
        for value in VALUES[name]:
            yield {name: value}


def unlike(one: str, two: str) -> str:
    """Where two pages begin to differ."""
    heads = [each.split("\n", 2) for each in (one, two)]
    if heads[0][2] != heads[1][2]:  # the length of the body differs then, too
        one, two = heads[0][2], heads[1][2]
    at = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    return f"'…{one[max(at - 160, 0) : at + 200]}' or '…{two[max(at - 160, 0) : at + 200]}'"


@pytest.mark.parametrize("viewer", PEOPLE)
async def test_what_somebody_may_not_read_changes_no_byte_of_any_page(worlds: Worlds, viewer: str) -> None:
    name = f"pages{viewer}"
    one, two = (PlayedPages(product, name, client) for product, client in zip(*worlds, strict=True))
    first, second = world_of(viewer, twin=False), world_of(viewer, twin=True)
    await both(one.play(first), two.play(second))
    # Both are read: what is read is written into the audit log, which admins see.
    ids, _ = await both(ids_of(one), ids_of(two))
    counts, wrong = Counter[str](), list[str]()
    secret = {f"zq{step.n}{variant}z" for step in STEPS if viewer not in step.readers for variant in "ab"}
    word = CANARY.search(next(step.words("a") for step in STEPS if viewer not in step.readers))
    assert word is not None
    for route in ROUTES:
        if route.path in STREAMS:
            continue
        for path, id, foreign in paths(route, ids, viewer, one.invitation):
            for query in queries(route):
                asked = str(httpx2.URL(path, params={k: v.replace("CANARY", word[0]) for k, v in query.items()}))
                for script in (False, True) if not query else (False,):
                    answers = await both(*(each.open(viewer, asked, script=script) for each in (one, two)))
                    counts[f"{route.path} {answers[0][:3]}"] += 1
                    if answers[0][:1] == "5":
                        wrong.append(f"{viewer} {asked} fails: {answers[0][:3]}")
                    if answers[0] != answers[1]:
                        wrong.append(f"{viewer} {asked}: {unlike(*answers)}")
                    found = (set(CANARY.findall("".join(answers))) & secret) - (
                        {word[0]} if word[0] in asked else set()
                    )
                    if found:
                        wrong.append(f"{viewer} {asked} shows {found}")
                    if foreign and id != RANDOM and answers[0][:3] != "200":
                        random = asked.replace(id, RANDOM)
                        absent, _ = await both(*(each.open(viewer, random, script=script) for each in (one, two)))
                        if (masked := answers[0].replace(id, RANDOM)) != absent:
                            wrong.append(f"{viewer} {asked}: not as a random one: {unlike(masked, absent)}")
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:12])
    opened = {kind.split()[0] for kind in counts if kind.endswith(" 200")}
    missing = {route.path for route in ROUTES} - opened - {*STREAMS, HOME}
    assert not {each for each in missing if viewer == ADMIN}, counts
