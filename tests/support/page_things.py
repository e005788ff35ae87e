"""Every route of the pages, with who may use it and a thing of somebody's that it is about: a page without a row here
fails its tests (tests/deep/integration/test_page_attacks.py)."""

import re
import secrets
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2
from fastapi.routing import APIRoute

from bot.commands.table import run_command
from bot.script.places import incoming, place_of
from bot.web import app as web
from bot.web import pages
from composer.model import Trust, Visibility, project_namespace
from composer.repositories.landmarks import Landmark, LandmarkState
from composer.repositories.openid_logins import LoginEntry
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.harness import AppHarness
from tests.support.pages import OWN, Person

ROUTES: Final = {
    f"{method} {route.path}": route
    for route in web.ROUTES
    if isinstance(route, APIRoute) and route.endpoint.__module__.startswith(pages.__name__)
    for method in route.methods or ()
}
ANYBODY: Final = "anybody"
PEOPLE: Final = "people who are signed in"
ADMINS: Final = "admins"
Ids = dict[str, str]


@dataclass
class Owner:
    """Somebody with a browser and a key, whose things the routes are about. All texts of theirs hold `canary`."""

    harness: AppHarness
    client: httpx2.AsyncClient
    name: str
    workspace: str | None
    person: Person
    key: dict[str, str]
    user: str
    canary: str
    made: int = 0
    partners: dict[str, "Owner"] = field(default_factory=dict)

    async def api(self, method: str, path: str, body: Mapping[str, Any] | None = None, key: Any = None) -> Any:
        """What the API answers them, or a tool of theirs; None for nothing."""
        answer = await self.client.request(method, path, json=body, headers=key or self.key)
        assert answer.status_code < 300, f"{method} {path}: {answer.text}"
        return answer.json() if answer.content else None

    async def tell(self, command: str) -> None:
        """Give a command in one's DM."""
        await self.harness.command(self.name, f"/nexus {command}", dm="nexus", workspace=self.workspace)

    def word(self) -> str:
        """A name that nothing has yet."""
        self.made += 1
        return f"{self.canary}{self.made}"

    async def partner(self, kind: str) -> "Owner":
        """Somebody else of the same organisation, who does the same for all things of theirs."""
        if kind not in self.partners:
            self.partners[kind] = await owner(self.harness, self.client, f"{kind}{self.word()}", self.workspace)
        return self.partners[kind]

    async def stranger(self) -> str:
        """The id of somebody new in the same organisation."""
        return str((await person(self.harness, self.word(), self.workspace)).id)


async def owner(
    harness: AppHarness, client: httpx2.AsyncClient, name: str, workspace: str | None = None, *, admin: bool = False
) -> Owner:
    """Somebody with a browser and a key."""
    await harness.say(name, "good morning", room="general", workspace=workspace)
    found = await person(harness, name, workspace)
    if admin:
        async with harness.app.database.transaction(harness.workspace(workspace).tenant_id) as tx:
            await tx.people.set_admin(found.id, True)
    cookie, key = await cookie_of(harness, name, workspace), await key_of(harness, name, workspace=workspace)
    browser = Person(client, cookie)
    await browser.page("/memory")
    return Owner(harness, client, name, workspace, browser, bearer(key), str(found.id), f"zq{name}{workspace or ''}")


# --- what there is of somebody: each makes a new one, and gives the ids by the names of parameters -------------------


async def entry(of: Owner) -> Ids:
    """An entry."""
    return {"id": (await of.api("POST", "/v1/entries", {"content": f"{of.word()} likes tea"}))["id"]}


async def entry_and_team(of: Owner) -> Ids:
    """An entry, and a team that it can be shared with."""
    return await entry(of) | {"team": (await team(of))["id"]}


async def trashed(of: Owner) -> Ids:
    """An entry in the trash."""
    made = await entry(of)
    await of.api("DELETE", f"/v1/entries/{made['id']}")
    return made


async def team(of: Owner) -> Ids:
    """A team with a member, somebody invited, and what a former member shares; and somebody who is not in it."""
    id = (await of.api("POST", "/v1/teams", {"name": of.word()}))["id"]
    await of.api("POST", f"/v1/teams/{id}/invites", {"user": await of.stranger()})
    [invite] = (await of.api("GET", f"/v1/teams/{id}/invites"))["items"]
    member, former = await of.partner("member"), await of.partner("former")
    for other in (member, former):
        await of.api("POST", f"/v1/teams/{id}/invites", {"user": other.user})
        await other.api("POST", f"/v1/teams/{id}/accept")
    shared = (await entry(former))["id"]
    await former.api("PUT", f"/v1/entries/{shared}/team", {"team": id})
    await of.api("DELETE", f"/v1/teams/{id}/members/{former.user}")
    about = {"user": member.user, "invite": invite["id"], "entry": shared, "stranger": await of.stranger()}
    return {"id": id} | about


async def joined_team(of: Owner) -> Ids:
    """A team of somebody else that they are in."""
    ids = await invited_to_team(of)
    await of.api("POST", f"/v1/teams/{ids['id']}/accept")
    return ids


async def invited_to_team(of: Owner) -> Ids:
    """A team that somebody else invites them to."""
    other = await of.partner("host")
    id = (await other.api("POST", "/v1/teams", {"name": of.word()}))["id"]
    await other.api("POST", f"/v1/teams/{id}/invites", {"user": of.user})
    return {"id": id}


async def project(of: Owner) -> Ids:
    """A project with a member."""
    other = await of.partner("member")
    id = (await of.api("POST", "/v1/projects", {"name": of.word()}))["id"]
    await of.api("PUT", f"/v1/projects/{id}/members/{other.user}", {"role": "read"})
    await other.api("POST", f"/v1/projects/{id}/accept?role=read")
    return {"id": id, "user": other.user}


async def invited_to_project(of: Owner) -> Ids:
    """A project that somebody else invites them to."""
    other = await of.partner("host")
    id = (await other.api("POST", "/v1/projects", {"name": of.word()}))["id"]
    await other.api("PUT", f"/v1/projects/{id}/members/{of.user}", {"role": "read"})
    return {"id": id}


async def room(of: Owner) -> Ids:
    """A private room that they alone are in."""
    name = of.word()
    where: Any = {"room": name, "private": True, "workspace": of.workspace}
    await of.harness.say(of.name, f"in {name} we drink tea", **where)
    for command in (f"fact set {name} tea --yes", f"landmark add {name} it is"):
        await of.harness.command(of.name, f"/nexus {command}", **where)
    listed = await of.person.page("/rooms")
    found = re.findall(rf'(?s)href="/rooms/([0-9a-f-]{{36}})">(?:(?!</a>).)*?{name}<', listed)
    return {"id": found[0]}


async def room_and_project(of: Owner) -> Ids:
    """A private room that they alone are in, and a project that it can be put into."""
    return await room(of) | {"project": (await project(of))["id"]}


async def room_in_project(of: Owner) -> Ids:
    """A room of theirs that is in a project of theirs."""
    ids = await room_and_project(of)
    answer = await of.person.press(f"/rooms/{ids['id']}/project", to=ids["project"])
    assert answer.status_code == 303, answer.text
    return {"id": ids["id"]}


async def decision_of_room(of: Owner) -> Ids:
    """A proposed decision of a private room that they alone are in."""
    name = of.word()
    await of.harness.say(of.name, f"We decided to use {name}.", room=name, private=True, workspace=of.workspace)
    return _decision(name, await of.person.page("/waiting"))


async def decision_of_project(of: Owner) -> Ids:
    """A proposed decision that is filed for a project of theirs."""
    word, made, now = of.word(), (await project(of))["id"], of.harness.clock.now()
    namespace, state = project_namespace(uuid.UUID(made)), LandmarkState.PROPOSED
    user = uuid.UUID(of.user)
    found = Landmark(uuid.uuid4(), namespace, Visibility.SHARED, user, f"We use {word}.", of.name, now, state)
    async with of.harness.app.database.transaction(of.harness.workspace(of.workspace).tenant_id) as tx:
        await tx.landmarks.add([found])
    return _decision(word, await of.person.page("/waiting"))


def _decision(word: str, waiting: str) -> Ids:
    """The ids of the address of the decision that has a word."""
    item = next(each for each in waiting.split("<li>") if word in each)
    [found] = set(re.findall(r"s/([0-9a-f-]{36})/decisions/([0-9a-f-]{36})", item))
    return {"id": found[0], "landmark": found[1]}


async def conversation(of: Owner) -> Ids:
    """A conversation with an answer."""
    told = await of.api("POST", "/v1/chat", {"content": f"what of {of.canary}?", "session": of.word()})
    await of.harness.app.turns.settle()
    [id] = re.findall(rf'href="/ask/([0-9a-f-]{{36}})"[^>]*>(?:(?!</a>).)*?{of.canary}{of.made}<', (
        await of.person.page("/ask")
    ).replace("\n", " "))  # fmt: skip
    return {"session": id, "turn": told["turn"]}


async def conversation_in_project(of: Owner) -> Ids:
    """A conversation, and a project in which another one can begin."""
    return {"session": (await conversation(of))["session"], "project": (await project(of))["id"]}


async def proposal(of: Owner) -> Ids:
    """What a tool of theirs wrote for a project of theirs."""
    made, word = (await project(of))["id"], of.word()
    allowed = ["entries:read", "entries:write", "projects:write"]
    tool = bearer(await key_of(of.harness, of.name, "claude", allowed, of.workspace))
    await of.api("POST", "/v1/agent/entries", {"content": f"{word} waits", "project": made}, tool)
    return await waiting(of, word)


async def waiting(of: Owner, word: str) -> Ids:
    """What waits with a word in it."""
    item = next(each for each in (await of.person.page("/waiting")).split("<li>") if f"{word} waits" in each)
    return {"id": re.findall(r"/waiting/([0-9a-f-]{36})/amend", item)[0]}


async def guests_words(of: Owner) -> Ids:
    """What a guest wrote in a room that they are an admin of."""
    word, here = of.word(), of.harness.workspace(of.workspace)
    await of.harness.say(of.name, "good morning", room=word, workspace=of.workspace)
    text, place = f"/nexus remember {word} waits", place_of(word, None, None)
    guest = incoming(here, place, f"guest{word}", text, of.harness.clock.tick(), trust=Trust.GUEST)
    await run_command(of.harness.app, here, guest)
    return await waiting(of, word)


async def opener(of: Owner) -> Ids:
    """A key."""
    await key_of(of.harness, of.name, "claude", workspace=of.workspace)
    listed = (await of.api("GET", "/v1/keys"))["items"]
    return {"kind": "keys", "id": listed[-1]["id"]}


async def browser(of: Owner) -> Ids:
    """A browser in which they are signed in."""
    await cookie_of(of.harness, of.name, of.workspace)
    return {"kind": "sessions", "id": (await of.api("GET", "/v1/sessions"))["items"][-1]["id"]}


async def account(of: Owner) -> Ids:
    """An account by which they sign in."""
    issuer, now = f"https://{of.word()}.example", of.harness.clock.now()
    login = LoginEntry(uuid.uuid4(), uuid.UUID(of.user), issuer, of.name, now, None)
    async with of.harness.app.database.transaction(of.harness.workspace(of.workspace).tenant_id) as tx:
        await tx.openid_logins.connect(login, secrets.token_bytes(8))
    return {"kind": "logins", "id": str(login.id)}


async def webhook(of: Owner) -> Ids:
    """A webhook that is on."""
    made = {"url": f"https://{of.word().lower()}.example/hook", "name": of.word(), "pages": ["memory"]}
    return {"kind": "webhooks", "id": (await of.api("POST", "/v1/webhooks", made))["id"]}


async def identity(of: Owner) -> Ids:
    """An account of theirs on a chat platform, by its id."""
    shown = await of.person.page("/rooms")
    return {"account": re.findall(r'name="account" value="([0-9a-f-]{36})"', shown)[0]}


async def orphan(of: Owner) -> Ids:
    """A project that has a member and no admin."""
    host, member = await of.partner("host"), await of.partner("member")
    id = (await host.api("POST", "/v1/projects", {"name": of.word()}))["id"]
    await host.api("PUT", f"/v1/projects/{id}/members/{member.user}", {"role": "write"})
    await member.api("POST", f"/v1/projects/{id}/accept?role=write")
    await host.api("POST", f"/v1/projects/{id}/leave?confirm=true")
    return {"id": id, "user": member.user}


async def somebody(of: Owner) -> Ids:
    """A person of the organisation, who has a key."""
    name = of.word()
    await key_of(of.harness, name, workspace=of.workspace)
    return {"user": str((await person(of.harness, name, of.workspace)).id)}


async def somebody_invited(of: Owner) -> Ids:
    """A person who came by an invitation, and is signed in nowhere: a number is added to a name that looks like
    another."""
    made = (await of.api("POST", "/v1/admin/invitations", {"name": of.word()}))["link"]
    code, name = made.rpartition("/")[2], of.word()
    answer = await of.client.post("/invite", data={"code": code, "name": name}, headers=OWN)
    of.client.cookies.clear()
    cookie = answer.headers["set-cookie"].partition("=")[2].partition(";")[0]
    browser = Person(of.client, cookie)
    await browser.page("/ask")
    await browser.press("/logout")
    found, cursor = list[dict[str, str]](), ""
    while cursor is not None and not any(each["name"].startswith(name) for each in found):
        page = await of.api("GET", f"/v1/admin/users?limit=50{cursor and f'&cursor={cursor}'}")
        found, cursor = page["items"], page["next"]
    return {"user": next(each["id"] for each in found if each["name"].startswith(name))}


async def invitation(of: Owner) -> Ids:
    """An invitation to the organisation, that somebody who is an admin made."""
    await of.api("POST", "/v1/admin/invitations", {"name": of.word()})
    return {"id": (await of.api("GET", "/v1/admin/invitations"))["items"][-1]["id"]}


async def customer(of: Owner) -> Ids:
    """What makes their organisation a customer of the provider that charges for plans."""
    await of.api("POST", "/v1/billing/checkout", {"plan": "team"})
    return {}


async def nothing(of: Owner) -> Ids:
    """Nothing that has an id."""
    return {}


Maker = Callable[[Owner], Awaitable[Ids]]


@dataclass(frozen=True)
class Row:
    """A route: who may use it, what it is about, and what its form holds besides; `<x>` stands for an id of the thing.
    `file`: the field that a file is sent in, if one is. `changes`: pressing it changes what is stored. `known`:
    parameters that name what others may know of (a person of the organisation, who is in a room with everybody);
    `alone`: ids that the form holds instead of the others."""

    who: str = PEOPLE
    of: Maker = nothing
    form: Mapping[str, str] = field(default_factory=dict)
    file: str = ""
    changes: bool = True
    known: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()


_ENTRIES: Final = '{"format": "nexus-entries", "version": 1, "entries": [{"content": "zqforged"}]}'
_NOBODYS: Final = "00000000-0000-0000-0000-000000000007"
ROWS: Final[Mapping[str, Row]] = {
    "GET /": Row(),
    "GET /admin": Row(ADMINS),
    "GET /admin/audit": Row(ADMINS),
    "GET /admin/audit/export": Row(ADMINS),
    "GET /admin/figures": Row(ADMINS),
    "GET /admin/import": Row(ADMINS),
    "GET /admin/people": Row(ADMINS),
    "GET /admin/people/{user}": Row(ADMINS, somebody),
    "GET /admin/places": Row(ADMINS),
    "GET /admin/settings": Row(ADMINS),
    "GET /ask": Row(),
    "GET /ask/conversations": Row(),
    "GET /ask/{session}": Row(of=conversation),
    "GET /events": Row(),
    "GET /find": Row(),
    "GET /invitations": Row(ADMINS),
    "GET /invite/{code}": Row(ANYBODY),
    "GET /memory": Row(),
    "GET /memory/add": Row(),
    "GET /memory/empty": Row(),
    "GET /memory/export": Row(),
    "GET /memory/import": Row(),
    "GET /memory/map": Row(),
    "GET /memory/timeline": Row(),
    "GET /memory/{id}": Row(of=entry),
    "GET /memory/{id}/forget": Row(of=entry),
    "GET /privacy": Row(),
    "GET /privacy/export": Row(),
    "GET /privacy/forget": Row(),
    "GET /projects/{id}": Row(of=project),
    "GET /projects/{id}/leave": Row(of=project),
    "GET /rooms": Row(),
    "GET /rooms/{id}": Row(of=room),
    "GET /rooms/{id}/project": Row(of=room_in_project),
    "GET /static/{digest}/{name}": Row(ANYBODY),
    "GET /team": Row(),
    "GET /team/{id}": Row(of=team),
    "GET /team/{id}/leave": Row(of=team),
    "GET /tools": Row(),
    "GET /tools/keys/{id}": Row(of=opener),
    "GET /tools/{kind}/{id}/end": Row(of=opener),
    "GET /usage": Row(),
    "GET /waiting": Row(),
    "GET /you": Row(),
    "POST /admin/audit/verify": Row(ADMINS, changes=False),
    "POST /admin/import/discard": Row(ADMINS, form={"id": _NOBODYS}),
    "POST /admin/import/file": Row(ADMINS, file="file"),
    "POST /admin/import/run": Row(ADMINS, form={"id": _NOBODYS, "channel": "C1"}),
    "POST /admin/import/undo": Row(ADMINS, form={"id": _NOBODYS}),
    "POST /admin/jobs/{name}": Row(ADMINS),
    "POST /admin/people/{user}/admin": Row(ADMINS, somebody, {"admin": "true"}),
    "POST /admin/people/{user}/disabled": Row(ADMINS, somebody, {"disabled": "true"}),
    "POST /admin/people/{user}/link": Row(ADMINS, somebody_invited),
    "POST /admin/people/{user}/sign-out": Row(ADMINS, somebody),
    "POST /admin/places/{id}/admin": Row(ADMINS, orphan, {"user": "<user>"}),
    "POST /admin/places/{id}/delete": Row(ADMINS, orphan),
    "POST /admin/settings": Row(ADMINS, form={"group": "retrieval", "name": "top_k", "value": "7"}),
    "POST /ask": Row(
        of=conversation_in_project, form={"text": "zqforged", "session": "<session>"}, file="files", alone=("project",)
    ),
    "POST /ask/turns/{turn}/rating": Row(of=conversation, form={"rating": "good"}),
    "POST /ask/turns/{turn}/stop": Row(of=conversation, changes=False),
    "POST /invitations": Row(ADMINS, form={"name": "zqforged"}),
    "POST /invitations/{id}/revoke": Row(ADMINS, invitation),
    "POST /invite": Row(ANYBODY),
    "POST /logout": Row(),
    "POST /memory": Row(form={"text": "zqforged"}),
    "POST /memory/bulk": Row(of=entry_and_team, form={"act": "share", "id": "<id>", "team": "<team>"}),
    "POST /memory/empty": Row(of=trashed, form={"confirm": "1"}),
    "POST /memory/import": Row(form={"dry_run": "false"}, file="file"),
    "POST /memory/{id}/edit": Row(of=entry, form={"text": "zqforged"}),
    "POST /memory/{id}/forget": Row(of=entry, form={"messages": "true"}),
    "POST /memory/{id}/restore": Row(of=trashed),
    "POST /memory/{id}/share": Row(of=entry_and_team, form={"team": "<team>"}),
    "POST /memory/{id}/trash": Row(of=entry),
    "POST /privacy/forget": Row(form={"confirm": "1000000", "sure": "true"}),
    "POST /privacy/opt-out": Row(form={"out": "true"}),
    "POST /projects": Row(form={"name": "zqforged"}),
    "POST /projects/{id}/accept": Row(of=invited_to_project, form={"role": "read"}),
    "POST /projects/{id}/decisions/{landmark}": Row(of=decision_of_project, form={"act": "accept"}),
    "POST /projects/{id}/decline": Row(of=invited_to_project),
    "POST /projects/{id}/leave": Row(of=project),
    "POST /projects/{id}/members": Row(of=project, form={"user": "<user>", "role": "write"}, known=("user",)),
    "POST /projects/{id}/members/{user}/remove": Row(of=project, known=("user",)),
    "POST /projects/{id}/rename": Row(of=project, form={"name": "zqforged"}),
    "POST /rooms/{id}/decisions/{landmark}": Row(of=decision_of_room, form={"act": "amend", "text": "zqforged"}),
    "POST /rooms/{id}/project": Row(of=room_and_project, form={"to": "<project>"}),
    "POST /rooms/in-dms": Row(of=identity, form={"account": "<account>", "on": "true"}),
    "POST /team": Row(form={"name": "zqforged"}),
    "POST /team/{id}/accept": Row(of=invited_to_team),
    "POST /team/{id}/decline": Row(of=invited_to_team),
    "POST /team/{id}/entries/{entry}/unshare": Row(of=team),
    "POST /team/{id}/invites": Row(of=team, form={"user": "<stranger>"}, known=("stranger",)),
    "POST /team/{id}/invites/{invite}/withdraw": Row(of=team),
    "POST /team/{id}/leave": Row(of=joined_team),
    "POST /team/{id}/members/{user}/remove": Row(of=team, known=("user",)),
    "POST /team/{id}/members/{user}/role": Row(of=team, form={"role": "admin"}, known=("user",)),
    "POST /team/{id}/rename": Row(of=team, form={"name": "zqforged"}),
    "POST /tools": Row(form={"vendor": "claude"}),
    "POST /tools/browser": Row(),
    "POST /tools/webhooks": Row(form={"url": "https://zqforged.example/", "told": "memory"}),
    "POST /tools/webhooks/{id}/switch": Row(of=webhook, form={"on": "false"}),
    "POST /tools/webhooks/{id}/test": Row(of=webhook),
    "POST /tools/{kind}/{id}/end": Row(of=account),
    "POST /usage/billing": Row(ADMINS, customer, changes=False),
    "POST /usage/plan": Row(ADMINS, form={"plan": "team"}, changes=False),
    "POST /waiting/all": Row(of=proposal, form={"act": "store", "id": "<id>"}),
    "POST /waiting/{id}/accept": Row(of=proposal),
    "POST /waiting/{id}/amend": Row(of=guests_words, form={"text": "zqamended"}),
    "POST /waiting/{id}/reject": Row(of=proposal),
    "POST /you": Row(form={"zone": "Asia/Tokyo"}),
}
PRIVATE: Final = {name: row for name, row in ROWS.items() if row.who != ANYBODY}


def path_of(name: str, ids: Ids) -> str:
    """The address of a route about a thing."""
    fixed = {"name": "audit", "code": "x", "digest": "x", "kind": "keys"}
    return re.sub(r"{(\w+)}", lambda found: (fixed | ids)[found[1]], name.partition(" ")[2])


def form_of(row: Row, ids: Ids, about: str = "") -> dict[str, str]:
    """What the form of a route about a thing holds, without its token. `about`: the id that it is to hold."""
    if about in row.alone:
        return {name: value for name, value in row.form.items() if "<" not in value} | {about: ids[about]}
    return {name: re.sub(r"^<(\w+)>$", lambda found: ids[found[1]], value) for name, value in row.form.items()}


def named_by(name: str) -> list[str]:
    """The ids that the address and the form of a route hold."""
    row = ROWS[name]
    in_path = [each for each in re.findall(r"{(\w+)}", name) if each not in ("kind", "name", "code", "digest")]
    return [*in_path, *re.findall(r"<(\w+)>", str(dict(row.form))), *row.alone]


def sent_with(row: Row, form: Mapping[str, Any]) -> dict[str, Any]:
    """How a form is sent: as a browser does."""
    files = {"files": {row.file: ("entries.json", _ENTRIES, "application/json")}} if row.file else {}
    return {"data": form, **files}
