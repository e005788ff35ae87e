"""What somebody may not read changes nothing on any page that they open: not a byte of a page, header or status.

Every page of the app's own route table is opened by eight people of two organisations, each in a world and in its twin,
which differs only in what that person may not read: there it was not done at all or, for an admin, who sees what is
done in their organisation, but none of its words, in other words of the same length.
"""

import asyncio
import hashlib
import itertools
import re
import uuid
from base64 import b64encode
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any, Final

import httpx2
import pytest
import pytest_asyncio
from fastapi.routing import APIRoute

from bot.commands.table import run_command
from bot.script.places import incoming, place_of
from bot.web import app as web
from bot.web import pages
from bot.web import watching as streams
from bot.web.credentials import COOKIE_ON_LOCALHOST
from bot.web.event_stream import HEARTBEAT
from bot.web.pages.assets import assets
from bot.web.pages.events import RECONNECT
from bot.web.watching import CHANGED_EVENT
from composer.model import Incoming, Trust, Workspace, api_workspace
from composer.people.credentials import keys
from composer.people.credentials.invitations import INVITATION_LIFETIME, accept
from composer.people.credentials.issuing import KeyRequest, create_key
from composer.people.credentials.keys import CredentialKind
from composer.people.credentials.sign_in import make_login_link, sign_in
from composer.people.watching import WatchedPage
from composer.people.webhooks import TOLD_PAGES
from composer.repositories.webhooks import Webhook
from tests.property.entry_product import open_clients
from tests.property.product import WHICH, Product, both
from tests.support.api import bearer
from tests.support.harness import START
from tests.support.pages import OWN, SCRIPT
from tests.support.receiver import connection_of
from tests.support.waiting import until

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
TOLD: Final = ("write", "note", "trash", "share")  # what the person's own memory shows at once
OF_EVERYTHING: Final = "bob"  # has some of everything: all that they may read is on some page of theirs
END: Final = START + timedelta(days=3)
RANDOM: Final = str(uuid.UUID(int=7))
TOOL: Final = "claude"
ELSEWHERE_OF_BOB: Final = "uma"  # an account on another platform
NIGHT: Final = timedelta(days=2, hours=6)
CANARY: Final = re.compile(r"zq\d+[ab]z")


@dataclass(frozen=True, slots=True)
class PageStep:
    """What somebody does, with words that `readers` alone may read. `how`: say, tell (a command), write (an entry),
    trash (one that is thrown away), share (one with a team), note (an entry of a tool of theirs), team, join (a team),
    chat (with a file; in a project), rate (the answer to that), link (an account elsewhere). `of`: whose team it
    is, or the account."""

    n: int
    by: str
    how: str
    text: str
    readers: frozenset[str]
    where: Mapping[str, object] = field(default_factory=dict)
    project: str = ""
    of: str = ""

    def words(self, variant: str) -> str:
        """The text, whose canary says who put it there."""
        return self.text.replace("CANARY", f"zq{self.n}{variant}z")


MAIN: Final = frozenset(person for person, tenant in PEOPLE.items() if tenant == "main")
OTHER: Final = frozenset(PEOPLE) - MAIN
PUBLIC: Final[dict[str, Any]] = {"room": "general"}


def _steps() -> Iterator[PageStep]:
    numbers = itertools.count(1)

    def step(
        by: str, how: str, text: str, readers: Sequence[str], project: str = "", of: str = "", **where: Any
    ) -> PageStep:
        return PageStep(next(numbers), by, how, text, frozenset({by, *readers}), where, project, of)

    both_of_them = ("bob", "carol")
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
        yield step(person, "say", "In this thread it is CANARY.", (), thread="t", **vault)
        yield step(person, "say", "We decided that the launch is CANARY.", (), **vault)
        yield step(person, "say", "We decided to paint CANARY in here.", (), **vault)
        yield step(person, "tell", "/nexus fact set deploy_day CANARY --yes", (), **vault)
        yield step(person, "tell", "/nexus landmark add we chose CANARY here --yes", (), **vault)
        yield step(person, "tell", "/nexus remember the key is CANARY --yes", (), dm="nexus")
        yield step(person, "tell", "/nexus fact set colour CANARY --yes", (), dm="nexus")
        if person != GUEST:
            yield step(person, "write", "The plan CANARY of my own.", ())
            yield step(person, "note", "A tool noted CANARY of them.", ())
            yield step(person, "trash", "The old CANARY of mine.", ())
            yield step(person, "chat", "What of CANARY?", ())
            yield step(person, "rate", "good", ())
            together = both_of_them if person == "bob" else ()
            yield step(person, "tell", f"/nexus project create p{person}", together, dm="nexus")
            yield step(person, "team", "The team CANARY", together)
            yield step(person, "write", "The project CANARY goes on.", together, f"p{person}")
            yield step(person, "note", "A tool proposes CANARY for it.", (), f"p{person}")
    crypt: dict[str, Any] = {"room": "crypt", "private": True}
    yield step("bob", "say", "The crypt holds CANARY.", both_of_them, **crypt)
    yield step("carol", "say", "It does hold CANARY.", both_of_them, **crypt)
    # What two of them have together: a team, a project that a room of theirs is pooled into, an account elsewhere.
    yield step("carol", "join", "", both_of_them, of="bob")
    for person in both_of_them:
        yield step(person, "share", "We share CANARY as a team.", both_of_them, of="bob")
    yield step("bob", "tell", "/nexus project member add pbob carol write", both_of_them, dm="nexus")
    yield step("carol", "tell", "/nexus project accept pbob", both_of_them, dm="nexus")
    yield step("bob", "tell", "/nexus project assign pbob --pool --yes", both_of_them, **crypt)
    yield step("carol", "say", "Into the pool goes CANARY.", both_of_them, **crypt)
    vault = {"room": "vault-bob", "private": True}  # of the project, too, but carol is not in it
    yield step("bob", "tell", "/nexus project assign pbob --yes", (), **vault)
    yield step("alice", "tell", "/nexus project assign palice --yes", (), room="vault-alice", private=True)
    yield step("carol", "tell", "/nexus fact set pooled CANARY --project --yes", both_of_them, **crypt)
    yield step("carol", "write", "The project of two has CANARY.", both_of_them, "pbob")
    yield step("carol", "chat", "What of all that?", both_of_them, "pbob")
    yield step("bob", "link", "My knee is CANARY.", (), of=ELSEWHERE_OF_BOB)
    yield step("alice", "say", "In the thread of all: CANARY.", tuple(MAIN), thread="t", **PUBLIC)
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
    opts_out: bool = True
    ids: dict[tuple[str, str], str] = field(default_factory=dict)  # of what people made, and of themselves

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
            if person == OPTED_OUT and self.opts_out:
                await self._tell(person, "/nexus opt-out --yes", "opt-out", {"dm": "nexus"})
            if person != BY_LINK:  # what tools read stands on the pages Tools and My memory
                await self._send("GET", "/v1/agent/entries?limit=100", None, self._bearer(person, TOOL))
        await self.product._night(self.name, ("main", "other"), int(NIGHT.total_seconds()))
        self.product.harness.clock.set(END)
        for tenant in ("main", "other"):
            await self.product.harness.app.indexer.catch_up(self.product.workspace(self.name, tenant).tenant_id)
        await self._settle()

    async def _set_up(self, person: str) -> None:
        here, app = self.product.workspace(self.name, PEOPLE[person]), self.product.harness.app
        async with app.database.transaction(here.tenant_id) as tx:
            user = await tx.people.find_user(here.platform, here.name, person)
            assert user is not None
            self.ids["person", person] = str(user.id)
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
        self.cookies[BY_LINK] = await accept(
            app.database, here, agents, code, BY_LINK, "browser", secret, START, has_accounts=False
        )

    async def _do(self, step: PageStep, words: str) -> None:
        id, own = f"step {step.n}", self._bearer(step.by)
        match step.how:
            case "say":
                await self._say(step.by, words, id, step.where)
            case "tell":
                await self._tell(step.by, words, id, step.where)
            case "link":
                await self._link(step, words)
            case "chat":
                file = {
                    "name": f"{words.split()[2]}.txt",
                    "content": b64encode(f"In a file: {words}".encode()).decode(),
                }
                said = {"content": words, "session": "plans", "id": id, "files": [file]}
                said |= {"project": step.project} if step.project else {}
                told = await self._send("POST", "/v1/chat", said, own)
                await self.product.harness.app.turns.settle()
                self.ids["turn", step.by] = told["turn"]
            case "rate":
                await self._send("PUT", f"/v1/chat/turns/{self.ids['turn', step.by]}/rating", {"rating": words}, own)
            case "team":
                once = own | {"Idempotency-Key": id}
                self.ids["team", step.by] = (await self._send("POST", "/v1/teams", {"name": words}, once))["id"]
            case "join":
                team, asked = self.ids["team", step.of], {"user": self.ids["person", step.by]}
                await self._send(
                    "POST", f"/v1/teams/{team}/invites", asked, self._bearer(step.of) | {"Idempotency-Key": id}
                )
                await self._send("POST", f"/v1/teams/{team}/accept", None, own)
            case _:
                await self._write(step, words, id)
        await self.product.harness.app.indexer.catch_up(self.product.workspace(self.name, PEOPLE[step.by]).tenant_id)

    async def _write(self, step: PageStep, words: str, id: str) -> None:
        body = {"content": words, "tags": [words.split()[2]], "key": id} | (
            {"project": step.project} if step.project else {}
        )
        note = step.how == "note"
        headers = self._bearer(step.by, TOOL if note else "") | {"Idempotency-Key": id}
        made = await self._send("POST", "/v1/agent/entries" if note else "/v1/entries", body, headers)
        if step.how == "trash":
            await self._send("DELETE", f"/v1/entries/{made['id']}", None, self._bearer(step.by))
        if step.how == "share":
            team = {"team": self.ids["team", step.of]}
            await self._send("PUT", f"/v1/entries/{made['id']}/team", team, self._bearer(step.by))

    async def _link(self, step: PageStep, words: str) -> None:
        """Connect an account on another platform, with which something was remembered before."""
        await self._run(step.of, f"/nexus remember {words}", f"of step {step.n}", {"dm": "nexus"})
        given = await self._run(step.by, "/nexus link", f"code of step {step.n}", {"dm": "nexus"})
        code = given.partition("/nexus link ")[2].split()[0]
        await self._run(step.of, f"/nexus link {code} --yes", f"step {step.n}", {"dm": "nexus"})

    async def _say(self, person: str, text: str, id: str, where: Mapping[str, object]) -> None:
        here, app = self._here(person), self.product.harness.app
        said = self._incoming(person, text, id, where)
        await app.receive(here, [said])
        await app.turns.settle()

    async def _tell(self, person: str, text: str, id: str, where: Mapping[str, object]) -> None:
        await self._run(person, text, id, where)

    async def _run(self, person: str, text: str, id: str, where: Mapping[str, object]) -> str:
        said = self._incoming(person, text, id, where)
        answer = await run_command(self.product.harness.app, self._here(person), said)
        assert not answer.confirm, answer.text
        return answer.text

    def _here(self, person: str) -> Workspace:
        return self.product.workspace(self.name, PEOPLE.get(person, "main"), "" if person in PEOPLE else person)

    def _incoming(self, person: str, text: str, id: str, where: Mapping[str, object]) -> Incoming:
        here, now = self._here(person), self.product.harness.clock.now()
        private = bool(where.get("private")) or None
        room, dm, thread = (None if where.get(kind) is None else str(where[kind]) for kind in ("room", "dm", "thread"))
        place = place_of(room, dm, None, thread, private, platform=here.platform)
        said = incoming(here, place, person, text, now, id=id)
        return replace(said, sender_trust=Trust.GUEST if person == GUEST else Trust.MEMBER)

    def _bearer(self, person: str, tool: str = "") -> dict[str, str]:
        return OWN | self._cookie(person) if person == BY_LINK else bearer(self.keys[person, tool])

    async def _send(self, method: str, path: str, body: Mapping[str, object] | None, headers: dict[str, str]) -> Any:
        answer = await self.client.request(method, path, json=body, headers=headers)
        assert answer.status_code < 300, f"{method} {path}: {answer.text}"
        await self._settle()
        return answer.json() if answer.content else None

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
HOME: Final = "/"  # it leads to another page
STREAMS: Final = ("/events",)  # they never end: watched by themselves, below
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
    "to": (RANDOM,),
    "show": ("project", "team", "orphaned"),
    "colour": ("kind", "place", "tool"),
    "month": (DAY[:7],),
    "whose": ("", "agent", "mine", "organisation"),
    "days": ("7", "90"),
    "turn": (RANDOM,),
    "done": ("accept", "store", "erase", "decline"),
    "many": ("3",),
    "undone": (RANDOM,),
    "room": (RANDOM,),
    "kind": ("memory", "entry"),
    "again": (RANDOM,),
    "view": ("days", "decisions", "facts", "memories", "people", "entries", "sessions", "table", "cards", "activity"),
    "on": (DAY,),
    "key": ("deploy_day", "colour"),
    "day": (DAY,),
    "shelf": ("notes", "facts", "trash", "waiting"),
    "tool": (TOOL,),
    "tag": ("CANARY", "ops"),
    "place": ("#general", "your entries"),
    "project": ("pbob", "palice"),
    "by": ("bob", "alice", RANDOM),
    "sort": ("created", "-updated", "-used"),
    "text": ("where is CANARY?",),
    "page": ("memory", "1", "2"),
    "of": (RANDOM,),
}
MOST_IDS: Final = 4  # of a kind that are opened, and as many of others
ALWAYS: Final = frozenset(
    {"view"}
)  # parameters that every id is asked with; the others: the first of one's own and of others
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


@dataclass(frozen=True, slots=True)
class Address:
    """An address of a page, with the id in it. `foreign`: it is of others alone; `first`: the first of its kind."""

    path: str
    id: str = ""
    foreign: bool = False
    first: bool = True


def paths(
    route: APIRoute, ids: Mapping[str, Mapping[str, set[str]]], viewer: str, invitation: str
) -> Iterator[Address]:
    """The addresses of a page."""
    if route.path.startswith("/static/"):
        yield from (Address(asset.path) for asset in assets().values() if asset.path.endswith((".css", ".js")))
        return
    if route.path == "/invite/{code}":
        yield from (Address(f"/invite/{code}") for code in (invitation, invitation[:-1] + "x", "x"))
        return
    if "{" not in route.path:
        yield Address(route.path)
        return
    before = route.path.partition("/{")[0]
    last = _TEMPLATE.findall(route.path)[-1]
    starts = [each for each in {before, *itertools.chain.from_iterable(ids.values())} if _fits(route, each)]
    for start in sorted(starts):
        mine = ids[viewer].get(start, set())
        everybodys = set().union(*(of.get(start, set()) for of in ids.values()))
        others = sorted(everybodys - mine)
        rest = route.path[route.path.index(f"{{{last}}}") + len(last) + 2 :]
        for ids_of_some in (sorted(mine)[:MOST_IDS], others[:MOST_IDS], [RANDOM]):
            yield from (Address(f"{start}/{id}{rest}", id, id not in mine, n == 0) for n, id in enumerate(ids_of_some))


def _fits(route: APIRoute, start: str) -> bool:
    """Whether an address that begins so, and goes on with an id, may be of a page."""
    shape = route.path[: route.path.rindex("/{")]
    return re.fullmatch(_TEMPLATE.sub(r"\\w+", shape), start) is not None and "\\w" not in start


def queries(route: APIRoute, address: Address) -> Iterator[dict[str, str]]:
    """What a page is asked with: nothing, and each value of each parameter."""
    yield {}
    names = parameters(route)
    for name in sorted(names if address.first else names & ALWAYS):
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
    counts, wrong, shown = Counter[str](), list[str](), set[str]()
    secret = {f"zq{step.n}{variant}z" for step in STEPS if viewer not in step.readers for variant in "ab"}
    word = CANARY.search(next(step.words("a") for step in STEPS if viewer not in step.readers))
    assert word is not None
    for route in ROUTES:
        if route.path in STREAMS:
            continue
        for address in paths(route, ids, viewer, one.invitation):
            for query in queries(route, address):
                asked = str(
                    httpx2.URL(address.path, params={k: v.replace("CANARY", word[0]) for k, v in query.items()})
                )
                for script in (False, True) if not query else (False,):
                    answers = await both(*(each.open(viewer, asked, script=script) for each in (one, two)))
                    counts[f"{route.path} {answers[0][:3]}"] += 1
                    if answers[0][:1] == "5":
                        wrong.append(f"{viewer} {asked} fails: {answers[0][:3]}")
                    if answers[0] != answers[1]:
                        wrong.append(f"{viewer} {asked}: {unlike(*answers)}")
                    words = set(CANARY.findall("".join(answers)))
                    shown |= words
                    found = (words & secret) - ({word[0]} if word[0] in asked else set())
                    if found:
                        wrong.append(f"{viewer} {asked} shows {found}")
                    if address.foreign and address.id != RANDOM and answers[0][:3] != "200":
                        random = asked.replace(address.id, RANDOM)
                        absent, _ = await both(*(each.open(viewer, random, script=script) for each in (one, two)))
                        if (masked := answers[0].replace(address.id, RANDOM)) != absent:
                            wrong.append(f"{viewer} {asked}: not as a random one: {unlike(masked, absent)}")
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:12])
    if viewer == OF_EVERYTHING:
        mine = [step for step in STEPS if viewer in step.readers and "CANARY" in step.text and step.by != OPTED_OUT]
        assert not [step for step in mine if f"zq{step.n}az" not in shown], "nothing is compared of what is not shown"
        assert {step.how for step in mine} >= {"say", "tell", "write", "trash", "share", "note", "team", "chat", "link"}
    opened = {kind.split()[0] for kind in counts if kind.endswith(" 200")}
    missing = {route.path for route in ROUTES} - opened - {*STREAMS, HOME}
    assert not {each for each in missing if viewer == ADMIN}, counts


# --- events -----------------------------------------------------------------------------------------------------------


@dataclass
class Watched:
    """What an open page of somebody is told."""

    told: bytes = b""
    head: str = ""

    @property
    def changes(self) -> int:
        """How often it was told that something has changed."""
        return self.told.count(CHANGED_EVENT)

    @property
    def rest(self) -> bytes:
        """All that it was told, but for the stream's own beginning and signs of life."""
        return self.told.removeprefix(RECONNECT).replace(HEARTBEAT, b"")


@asynccontextmanager
async def watching(played: PlayedPages, person: str, page: str) -> AsyncIterator[Watched]:
    """A page that is open, without a server."""
    watched, cookie = Watched(), played._cookie(person)["Cookie"]
    asked = {"host": "localhost", "sec-fetch-site": "same-origin", "cookie": cookie}
    scope: dict[str, Any] = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": STREAMS[0],
    }
    scope |= {"raw_path": STREAMS[0].encode(), "query_string": f"page={page}".encode(), "root_path": ""}
    scope |= {"headers": [(name.encode(), value.encode()) for name, value in asked.items()], "state": {}}
    scope |= {"client": ("127.0.0.1", 1), "server": ("localhost", 80)}

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        watched.told += message.get("body", b"")
        if message["type"] == "http.response.start":
            watched.head = f"{message['status']} {sorted(message['headers'])}"

    WHICH.set(played.product.url)
    app: Any = played.client._transport
    task = asyncio.create_task(app.app(scope, receive, send))
    try:
        await until(lambda: watched.told.startswith(RECONNECT))
        yield watched
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("viewer", PEOPLE)
async def test_what_somebody_may_not_read_tells_no_open_page_of_theirs(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch, viewer: str
) -> None:
    """In one world others do some of everything while the person's pages are open, and in its twin nothing. Each of
    them has a page open, too, by which it is seen that all who are to be told have been. A webhook of the person is
    told nothing either, and of what they do themselves the same in both."""
    monkeypatch.setattr(streams, "PAUSE_SECONDS", 0.0)
    name = f"events{viewer}"
    one, two = (PlayedPages(product, name, client, opts_out=False) for product, client in zip(*worlds, strict=True))
    shared = [(step, step.words("a")) for step in STEPS if viewer in step.readers and len(step.readers) == 2]
    await both(one.play(shared), two.play(shared))
    rooms = await both(others_rooms(one, viewer), others_rooms(two, viewer))
    await both(have_a_webhook(one, viewer), have_a_webhook(two, viewer))
    await both(sent_to(one, viewer), sent_to(two, viewer))
    async with AsyncExitStack() as stack:
        pages = [
            [
                await stack.enter_async_context(watching(played, viewer, page))
                for page in (*WatchedPage, *(f"{WatchedPage.ROOMS}&of={room}" for room in of_others))
            ]
            for played, of_others in zip((one, two), rooms, strict=True)
        ]
        assert [each.head for each in pages[0]] == [each.head for each in pages[1]]
        witnesses = {
            person: await stack.enter_async_context(watching(one, person, WatchedPage.MEMORY))
            for person in PEOPLE
            if person != viewer
        }
        for step in STEPS:
            if viewer in step.readers:
                continue
            WHICH.set(one.product.url)
            one.product.harness.clock.set(START + timedelta(days=1, minutes=step.n))
            witness, before = witnesses[step.by], witnesses[step.by].changes
            await one._do(step, step.words("a"))
            if step.how in TOLD:
                await until(partial(told_since, [witness], before))
        assert await both(sent_to(one, viewer), sent_to(two, viewer)) == [[], []]
        loud = [n for n, page in enumerate(WatchedPage) if viewer in ADMINS and page is WatchedPage.PEOPLE]
        silent = [each for told in pages for n, each in enumerate(told) if n not in loud]
        assert {each.rest for each in silent} == {b""}, "admins see who comes"
        for played, open_pages in zip((one, two), pages, strict=True):
            WHICH.set(played.product.url)
            played.product.harness.clock.set(END)
            await do_own(played, viewer)
            told = [each for page, each in zip(WatchedPage, open_pages, strict=False) if own_is_told(viewer, page)]
            await until(partial(told_since, told, 0))
        first, second = await both(sent_to(one, viewer), sent_to(two, viewer))
        assert first == second != []
        assert {each.rest.replace(CHANGED_EVENT, b"") for each in (*pages[0], *pages[1])} == {b""}


async def have_a_webhook(played: PlayedPages, viewer: str) -> None:
    """A webhook of the person that is told of all that is told, but for what admins see of who comes."""
    here, app = played.product.workspace(played.name, PEOPLE[viewer]), played.product.harness.app
    told = tuple(page.value for page in TOLD_PAGES if page is not WatchedPage.PEOPLE)
    user, now = uuid.UUID(await id_of(played, viewer)), played.product.harness.clock.now()
    hook = Webhook(uuid.uuid4(), user, "hook", "https://hook.example", told, None, app.webhooks.key_id, now)
    async with app.database.transaction(here.tenant_id) as tx:
        await tx.webhooks.insert(hook)


async def sent_to(played: PlayedPages, viewer: str) -> Sequence[str]:
    """What is sent to the webhooks of the person now."""
    WHICH.set(played.product.url)
    app, user, bodies = played.product.harness.app, uuid.UUID(await id_of(played, viewer)), list[str]()

    async def post(url: str, headers: Mapping[str, str], body: bytes) -> str:
        bodies.append(body.decode())
        return "204"

    for due in await app.webhooks.due():
        if due.user == user:
            await app.webhooks.send(due, post)
    return bodies


async def id_of(played: PlayedPages, person: str) -> str:
    """The id of the user that a person is signed in as."""
    found = await played.client.get("/v1/whoami", headers=OWN | played._cookie(person))
    return str(found.json()["user"])


def told_since(watched: Sequence[Watched], before: int) -> bool:
    """Whether all were told more often than before that something has changed."""
    return all(each.changes > before for each in watched)


def own_is_told(viewer: str, page: WatchedPage) -> bool:
    """Whether something of what they do themselves is shown on a page: of people to admins alone, and on that of jobs
    nothing, since nobody starts one."""
    return page is not WatchedPage.ADMIN and (page is not WatchedPage.PEOPLE or viewer in ADMINS)


async def others_rooms(played: PlayedPages, viewer: str) -> Sequence[str]:
    """The ids of private rooms of everybody else, in which they have said hello."""
    WHICH.set(played.product.url)
    found = list[str]()
    for person in PEOPLE:
        if person in (viewer, BY_LINK):
            continue
        where: dict[str, Any] = {"room": f"vault-{person}", "private": True}
        await played._say(person, f"hello in the vault of {person}", "hello to all", where)
        here = played.product.workspace(played.name, PEOPLE[person])
        async with played.product.harness.app.database.transaction(here.tenant_id) as tx:
            room = await connection_of(tx).fetchval("SELECT id FROM conversations WHERE name = $1", where["room"])
        found.append(str(room))
    return found


async def do_own(played: PlayedPages, viewer: str) -> None:
    """Do something of each kind that pages show, as the person themselves."""
    await played._do(own_step(viewer), own_step(viewer).text)
    own = played._bearer(viewer)
    await played._send("POST", "/v1/chat", {"content": "hello again", "id": "own"}, own)
    await played.product.harness.app.turns.settle()
    for path in ("teams", "projects"):
        await played._send("POST", f"/v1/{path}", {"name": "ours"}, own | {"Idempotency-Key": path})
    here, app = played.product.workspace(played.name, PEOPLE[viewer]), played.product.harness.app
    now, browser = played.product.harness.clock.now(), OWN | played._cookie(viewer)
    user = uuid.UUID((await played.client.get("/v1/whoami", headers=browser)).json()["user"])
    async with app.database.transaction(here.tenant_id) as tx:
        link = await make_login_link(tx, here.tenant, user, played._secret(f"again {viewer}"), now, by=user)
    await sign_in(app.database, link, "another browser", played._secret(f"web again {viewer}"), now)
    if viewer in ADMINS:
        await played._send("POST", "/v1/admin/invitations", {"name": "grace"}, browser)


def own_step(viewer: str) -> PageStep:
    """Something of their own that their open pages show."""
    how = "tell" if viewer == GUEST else "write"
    text = "/nexus remember I do like tea --yes" if viewer == GUEST else "I do like tea."
    return PageStep(len(STEPS) + 1, viewer, how, text, frozenset({viewer}), {"dm": "nexus"})
