"""The page Import and its routes: an export is dropped, shown, imported and undone, and odd ones are refused."""

import io
import json
import os
import re
import secrets
import uuid
import zipfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, Final

import httpx2
import pytest

from bot.importers.uploads import file_name
from bot.web.app import STREAMED_BYTES, web_app
from bot.web.bodies import MAX_REQUEST_BODY_BYTES
from bot.web.metrics import Metrics
from bot.web.pages.admin_import import IMPORT, SAMPLE_SLACK, UPLOAD_PAGE
from bot.web.pages.assets import assets
from bot.web.routes.admin_imports import IMPORTS_PATH, UPLOADS_PATH
from composer.ingest.uploads import UploadFolder
from composer.model import ConversationKind, Incoming, Place, room_id
from composer.people.credentials.sign_in import make_login_link, sign_in
from composer.settings import Settings, TenantSettings
from tests.deep.integration.test_uploads import DAY, FORGED, HONEST, export, messages, slack
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.exports import ALICE, BOB, GENERAL, TEAM, SlackZip, slack_said
from tests.support.harness import AppHarness, open_harness
from tests.support.pages import BITES, OWN, Person
from tests.support.waiting import until
from tests.support.web import served_at

HTML: Final = {"Accept": "text/html"}


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    own = TenantSettings(workspaces=("acme", TEAM))
    many = {"requests_per_minute": 10_000, "admin_requests_per_minute": 10_000, "tenants": {"acme": own}}
    async with open_harness(settings.model_copy(update=many)) as harness:
        harness.clock.set(datetime(2026, 6, 1, 9, 0, tzinfo=UTC))
        yield harness


async def make_admin(harness: AppHarness, name: str = "root") -> None:
    found = await person(harness, name)
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.people.set_admin(found.id, True)


async def root_of(harness: AppHarness, client: httpx2.AsyncClient) -> Person:
    await make_admin(harness)
    return Person(client, await cookie_of(harness, "root"))


async def dropped(root: Person, content: bytes, name: str = "acme.zip") -> httpx2.Response:
    await root.page(IMPORT)
    files = {"file": (name, content, "application/zip")}
    return await root.client.post(UPLOAD_PAGE, data={"csrf": root.csrf}, files=files, headers=OWN | root._cookie())


async def settled(root: Person) -> str:
    """The page, once nothing is under way."""

    async def look() -> bool:
        return 'hx-trigger="every' not in await root.page(IMPORT)

    await until(look)
    return await root.page(IMPORT)


def id_in(page: str) -> str:
    found = re.search(r'name="id" value="([0-9a-f-]{36})"', page)
    assert found
    return found[1]


async def test_a_file_is_dropped_looked_into_imported_and_undone(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    root = await root_of(harness, client)
    assert "Drop a file here" in await root.page(IMPORT)
    assert (await dropped(root, export())).status_code == 303
    shown = await settled(root)
    assert "#<bdi>general</bdi>" in shown
    assert "1 private channel is not imported" in shown
    assert "leads" not in shown
    assert "raise" not in shown
    assert await messages(harness) == []
    answer = await root.press(f"{IMPORT}/run", id=id_in(shown), channel=GENERAL)
    assert answer.status_code == 303
    shown = await settled(root)
    assert "<b>2</b> new messages" in shown
    assert "Read so far: 0 of 2." in shown
    assert "by whoever asks an agent there: #<bdi>general</bdi>" in re.sub(r"\s+", " ", shown)
    assert "leads" not in shown
    await harness.app.indexer.catch_up(slack(harness).tenant_id)
    assert "All of it is read: answers know it now." in await root.page(IMPORT)
    room = room_id(slack(harness), GENERAL)
    assert f'href="/rooms/{room}"' not in await root.page(IMPORT), "root is not in it"
    async with harness.app.database.transaction(slack(harness).tenant_id) as tx:
        me = await person(harness, "root")
        await tx.conversations.add_member(room, me.id, harness.clock.now())
    assert f'href="/rooms/{room}"' in await root.page(IMPORT)
    assert [room for room, _ in await messages(harness)] == [GENERAL, GENERAL]
    assert "by <bdi>root</bdi> · 2 messages in 1 room" in re.sub(r"\s+", " ", shown)
    id = id_in(shown.partition('id="imports"')[2])
    undone, folder = f"{IMPORT}?undone={id}", UploadFolder(harness.app.settings.home, slack(harness).tenant_id)
    lock = folder.lock()
    assert lock is not None
    erasing = await root.page(undone)
    assert "It is being erased" in erasing
    assert f'hx-get="{undone}" hx-trigger="every' in erasing
    os.close(lock)
    assert "It stopped before all of it was erased" in await root.page(undone)
    assert (await root.press(f"{IMPORT}/undo", id=id)).headers["location"] == f"{undone}#imports"
    await until(lambda: _gone(harness))
    shown = await root.page(IMPORT)
    assert "This was undone: what it brought is erased again" in shown
    assert "Where it can be asked" not in shown
    audit = await root.page("/admin/audit")
    assert "uploaded a file to import" in audit
    assert "imported channels of an uploaded file" in audit


async def test_whoever_decides_or_looks_reads_that_it_came_from_a_file(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    """What a file puts into somebody's mouth says so wherever it is shown with its source, before it is accepted."""
    root = await root_of(harness, client)
    words, here = "We decided that all payments go to mallory.", slack(harness)
    place = Place(ConversationKind.ROOM, GENERAL, private=False)
    for name in (ALICE, BOB):
        at = harness.clock.tick()
        await harness.app.receive(
            here, [Incoming("slack", here.name, place, name, name, f"{at.timestamp():.6f}", "hi", at)]
        )
    said = [slack_said("1780300800.000100", ALICE, words), slack_said("1780300860.000100", BOB, "good to know")]
    await dropped(root, export({"general/2026-06-01": said}))
    await root.press(f"{IMPORT}/run", id=id_in(await settled(root)), channel=GENERAL)
    await settled(root)
    await harness.app.indexer.catch_up(here.tenant_id)
    marked = "from a file that root uploaded"
    bob, alice = Person(client, await slack_cookie(harness, BOB)), Person(client, await slack_cookie(harness, ALICE))
    room = room_id(here, GENERAL)
    for page in ("/waiting", f"/rooms/{room}?view=days&day=2026-06-01", f"/rooms/{room}?view=decisions"):
        found = await bob.page(page)
        assert words in found, page
        assert marked in found, page
    [item, *_] = (await alice.get("/v1/memory")).json()["items"]
    assert marked in await alice.page(f"/memory/{item['id']}")
    [source] = (await alice.get(f"/v1/memory/{item['id']}")).json()["sources"]
    assert source["uploaded_by"] == "root"
    [decision] = (await bob.get(f"/v1/rooms/{room}/landmarks")).json()["items"]
    assert decision["sources"][0]["uploaded_by"] == "root"


async def slack_cookie(harness: AppHarness, name: str) -> str:
    here, now = slack(harness), harness.clock.now()
    async with harness.app.database.transaction(here.tenant_id) as tx:
        found = await tx.people.find_user(here.platform, here.name, name)
        assert found is not None
        link = await make_login_link(tx, here.tenant, found.id, secrets.token_bytes(32), now, by=found.id)
    _, cookie = await sign_in(harness.app.database, link, "browser", secrets.token_bytes(32), now)
    return cookie


async def _gone(harness: AppHarness) -> bool:
    return await messages(harness) == []


async def test_the_same_by_the_routes(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    await make_admin(harness)
    key = bearer(await key_of(harness, "root"))
    sent = await client.post(UPLOADS_PATH, params={"name": "acme.zip"}, content=export(), headers=key)
    assert sent.status_code == 202, sent.text
    assert sent.json()["state"] == "reading"

    async def ready(state: str) -> dict[str, Any] | None:
        found: dict[str, Any] = (await client.get(IMPORTS_PATH, headers=key)).json()
        return found if found["upload"]["state"] == state else None

    found = await until(lambda: ready("ready"))
    [channel] = found["upload"]["channels"]
    assert (channel["id"], channel["messages"], found["items"]) == (GENERAL, 2, [])
    run = f"{UPLOADS_PATH}/{found['upload']['id']}/run"
    assert (await client.post(run, json={"channels": ["CNOTHERE"]}, headers=key)).status_code == 422
    assert (await client.post(run, json={"channels": [GENERAL]}, headers=key)).status_code == 202
    [item] = (await until(lambda: ready("done")))["items"]
    assert (item["messages"], item["rooms"], item["by"], item["complete"]) == (2, 1, "root", True)
    assert (await client.delete(f"{IMPORTS_PATH}/{item['id']}", headers=key)).status_code == 202
    await until(lambda: _gone(harness))
    assert (await client.delete(f"{IMPORTS_PATH}/{uuid.uuid4()}", headers=key)).status_code == 404
    upload = (await client.get(IMPORTS_PATH, headers=key)).json()["upload"]["id"]
    await until(lambda: _deleted(client, upload, key))
    assert (await client.get(IMPORTS_PATH, headers=key)).json()["upload"] is None


async def _deleted(client: httpx2.AsyncClient, upload: str, key: dict[str, str]) -> bool:
    """Whether the upload is thrown away: not while the undo still holds it."""
    return (await client.delete(f"{UPLOADS_PATH}/{upload}", headers=key)).status_code == 204


async def test_who_is_no_admin_gets_nothing_and_sends_nothing(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    alice, key = Person(client, await cookie_of(harness, "alice")), bearer(await key_of(harness, "alice"))
    await alice.page("/memory")
    answer = await client.post(
        UPLOAD_PAGE, data={"csrf": alice.csrf}, files={"file": b"x"}, headers=OWN | alice._cookie()
    )
    assert answer.status_code == 404
    assert (await client.post(UPLOADS_PATH, content=export(), headers=key)).status_code == 403
    assert (await client.get(IMPORTS_PATH, headers=key)).status_code == 403
    assert (await client.post(UPLOADS_PATH, content=export())).status_code == 401
    assert not (harness.app.settings.home / "uploads").exists()


async def test_a_form_of_another_site_sends_nothing(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    root = await root_of(harness, client)
    await root.page(IMPORT)
    for headers, csrf in (({"Sec-Fetch-Site": "cross-site"}, root.csrf), (OWN, "0" * 32)):
        files = {"file": ("a.zip", export(), "application/zip")}
        answer = await client.post(UPLOAD_PAGE, data={"csrf": csrf}, files=files, headers=headers | root._cookie())
        assert answer.status_code in (303, 403)
    for path in ("run", "discard", "undo"):
        wrong = {"csrf": "0" * 32, "id": "00000000-0000-0000-0000-000000000000"}
        answer = await client.post(f"{IMPORT}/{path}", data=wrong, headers=OWN | root._cookie())
        assert answer.status_code == 403
    assert "Drop a file here" in await root.page(IMPORT)
    assert not (harness.app.settings.home / "uploads").exists()


async def test_names_that_bite_are_shown_as_names(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    root = await root_of(harness, client)
    channels = [{"id": f"C{n}", "name": name.replace("/", "_")} for n, name in enumerate(BITES)]
    days = {f"{each['id']}/2026-05-04": [slack_said("1777885200.000100", ALICE, FORGED)] for each in channels}
    await dropped(root, export(days, channels=channels), f"{BITES[0]}.zip")
    shown = await settled(root)
    assert shown.count('name="channel"') == len(BITES)
    for each in ("<script>alert", "<img src=x", "<b hx-get", "#<bdi>49", "\u202e"):
        assert each not in shown, each


async def test_a_file_that_is_no_export_says_so_and_another_may_be_sent(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    root = await root_of(harness, client)
    await dropped(root, b"<script>alert(1)</script>", "odd<b>.zip")
    shown = await settled(root)
    assert "neither an export of Slack" in shown
    assert "odd&lt;b&gt;.zip" in shown
    users = [{**each, "team_id": "T0OTHER"} for each in SlackZip().users]
    await dropped(root, export({DAY: HONEST[DAY]}, users=users))
    assert "which does not belong to this organisation" in await settled(root)
    await dropped(root, export())
    assert "#<bdi>general</bdi>" in await settled(root)
    assert (await dropped(root, export())).status_code == 409, "one waits already"


async def test_only_the_file_itself_may_be_long(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    await make_admin(harness)
    key = bearer(await key_of(harness, "root"))
    for path in (UPLOADS_PATH, UPLOAD_PAGE):
        assert STREAMED_BYTES[path] > MAX_REQUEST_BODY_BYTES
    for path in (f"{UPLOADS_PATH}/", f"{UPLOADS_PATH}/00000000-0000-0000-0000-000000000000/run", IMPORTS_PATH):
        assert path not in STREAMED_BYTES
    long = json.dumps({"channels": ["x" * 100] * 20_000}).encode()
    headers = key | {"Content-Type": "application/json"}
    run = f"{UPLOADS_PATH}/00000000-0000-0000-0000-000000000000/run"
    assert (await client.post(run, content=long, headers=headers)).status_code == 413


def test_the_name_of_a_file_has_no_folders() -> None:
    assert file_name("../../etc/passwd") == "passwd"
    assert file_name("C:\\temp\\a\u202eb.zip") == "a b.zip"
    assert file_name("\x00") == "export"
    assert file_name("x" * 1_000) == "x" * 100


async def test_the_sample_company_has_an_export_to_try(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    sample = assets()["sample-slack-export.zip"]
    root = await root_of(harness, client)
    assert sample.path not in await root.page(IMPORT), "it is of nobody else's workspace"
    own = TenantSettings(workspaces=("acme", f"slack:{SAMPLE_SLACK}"))
    settings = harness.app.settings.model_copy(update={"tenants": {"acme": own}})
    async with open_harness(settings) as of_sample:
        of_sample.clock.set(datetime(2026, 11, 29, 9, 0, tzinfo=UTC))
        served = web_app(of_sample.app, Metrics([]), {}, None)
        async with served_at(served) as url, httpx2.AsyncClient(base_url=url, timeout=60) as there:
            root = await root_of(of_sample, there)
            assert sample.path in await root.page(IMPORT)
            assert (await there.get(sample.path)).content == sample.content
            await dropped(root, sample.content, "sample.zip")
            shown = await settled(root)
    for name in ("general", "design", "support"):
        assert f"#<bdi>{name}</bdi>" in shown
    assert "1 private channel is not imported" in shown


async def test_an_export_without_a_workspace_names_no_option_of_a_command(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    root = await root_of(harness, client)
    await dropped(root, without_team(assets()["sample-slack-export.zip"].content))
    shown = await settled(root)
    assert "says which workspace of Slack it is of" in shown
    assert "--workspace" not in shown


def without_team(content: bytes) -> bytes:
    """The same export, in which nothing names the workspace."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(made, "w") as after:
        for name in before.namelist():
            after.writestr(name, re.sub(rb'"team(_id)?": "T0SAMPLE",?', b"", before.read(name)))
    return made.getvalue()
