"""Entries as one document: what is taken out comes back as it was, once, and a wrong document brings nothing in."""

import json
import threading
import uuid
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from bot.web.routes import exchange
from composer.app import App
from composer.entries import export, import_plan
from composer.entries.imports import MAX_ENTRIES, PORTION, import_entries
from composer.errors import Unavailable
from composer.memory.forget import Receipt
from composer.repositories.entries import Entry
from tests.support.api import bearer, key_of, person
from tests.support.entries import Hub
from tests.support.harness import AppHarness

ROOM = {"room": "general"}


def document(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"format": "nexus-entries", "version": 1, "entries": list(entries)}


async def exported(client: httpx2.AsyncClient, key: str, **params: str) -> dict[str, Any]:
    answer = await client.get("/v1/entries/export", params=params, headers=bearer(key))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def imported(
    client: httpx2.AsyncClient, key: str, sent: dict[str, Any], status: int = 200, **params: str
) -> dict[str, Any]:
    answer = await client.post("/v1/entries/import", json=sent, params=params, headers=bearer(key))
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


def outcomes(answer: dict[str, Any]) -> list[str]:
    return [each["outcome"] for each in answer["items"]]


async def listed(client: httpx2.AsyncClient, key: str, **params: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await client.get("/v1/entries", params=params, headers=bearer(key))).json()["items"]
    return items


async def month_of_alice(hub: Hub) -> None:
    """Entries of every kind: hers, a tool's, with everything that an entry may have; one is in the trash."""
    later = hub.harness.clock.now() + timedelta(days=90)
    await hub.write(
        "alice",
        "  We deploy on Fridays\r\nwith a \u202eword  ",
        title="Deploying",
        kind="decision",
        key="deploy",
        tags=["ops", "ops/eu"],
        metadata={"n": 1.5, "of": {"a": [1, None]}},
        session="plans",
        vendors=["claude"],
        expires_at=later,
    )
    await hub.write("alice", "Prefers dark roast", vendor="claude", key="deploy")
    gone = await hub.write("alice", "an old note")
    await hub.trash("alice", gone.entry.id)


async def test_what_is_exported_comes_back_for_somebody_else_as_it_was_and_once(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient
) -> None:
    await month_of_alice(hub)
    key, other = await key_of(harness, "alice"), await key_of(harness, "bob")
    taken = await exported(client, key)
    assert [each["content"] for each in taken["entries"]] == [
        "an old note",
        "Prefers dark roast",
        "  We deploy on Fridays\r\nwith a \u202eword  ",
    ]
    assert [each["trashed_at"] is None for each in taken["entries"]] == [False, True, True]
    first = await imported(client, other, taken)
    assert (outcomes(first), first["created"]) == (["created"] * 3, 3)
    back = await exported(client, other)
    own = ("id", "updated_at", "trashed_at")
    for before, after in zip(taken["entries"], back["entries"], strict=True):
        assert {k: v for k, v in after.items() if k not in own} == {k: v for k, v in before.items() if k not in own}
    assert [each["id"] for each in back["entries"]] == [each["id"] for each in first["items"]]
    again = await imported(client, other, taken)
    assert (outcomes(again), again["items"][0]["id"]) == (["unchanged"] * 3, first["items"][0]["id"])
    assert await exported(client, other) | {"made_at": 0} == back | {"made_at": 0}
    assert outcomes(await imported(client, key, taken)) == ["unchanged"] * 3
    assert outcomes(await imported(client, other, back)) == ["unchanged"] * 3


async def test_what_differs_is_replaced_and_its_old_words_are_gone(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient
) -> None:
    await month_of_alice(hub)
    key = await key_of(harness, "alice")
    taken = await exported(client, key)
    taken["entries"][2] |= {"content": "We deploy on Mondays", "tags": ["ops"], "title": None}
    answer = await imported(client, key, taken)
    assert (outcomes(answer), answer["replaced"]) == (["unchanged", "unchanged", "replaced"], 1)
    entry = (await client.get(f"/v1/entries/{taken['entries'][2]['id']}", headers=bearer(key))).json()
    assert (entry["content"], entry["tags"], entry["title"], entry["version"]) == (
        "We deploy on Mondays",
        ["ops"],
        "We deploy on Mondays",
        2,
    )
    await harness.app.indexer.catch_up(harness.workspace().tenant_id)
    asked = {"question": "Do we deploy on Fridays or on Mondays?"}
    found = (await client.post("/v1/query", json=asked, headers=bearer(key))).text
    assert "Mondays" in found
    assert "Fridays" not in found


async def test_what_was_thrown_away_since_is_restored(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient
) -> None:
    entry = (await hub.write("alice", "We deploy on Fridays")).entry
    key = await key_of(harness, "alice")
    taken = await exported(client, key)
    await hub.trash("alice", entry.id)
    assert outcomes(await imported(client, key, taken)) == ["replaced"]
    assert [each["id"] for each in await listed(client, key)] == [str(entry.id)]
    assert outcomes(await imported(client, key, taken)) == ["unchanged"]


async def test_a_document_throws_nothing_away(harness: AppHarness, hub: Hub, client: httpx2.AsyncClient) -> None:
    entry = (await hub.write("alice", "We deploy on Fridays")).entry
    key = await key_of(harness, "alice")
    await hub.trash("alice", entry.id)
    taken = await exported(client, key)
    await hub.restore("alice", entry.id)
    assert outcomes(await imported(client, key, taken)) == ["unchanged"]
    assert [each["id"] for each in await listed(client, key)] == [str(entry.id)]


async def test_a_dry_run_says_the_same_and_stores_nothing(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient
) -> None:
    await month_of_alice(hub)
    key = await key_of(harness, "alice")
    taken = await exported(client, key)
    taken["entries"][1]["tags"] = ["coffee"]
    taken["entries"].append({"content": "new"})
    planned = await imported(client, key, taken, dry_run="true")
    assert outcomes(planned) == ["unchanged", "replaced", "unchanged", "created"]
    assert "coffee" not in json.dumps(await exported(client, key))
    done = await imported(client, key, taken)
    assert done | {"dry_run": True} == planned
    assert outcomes(await imported(client, key, taken, dry_run="true")) == ["unchanged"] * 4


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"content": ""}, "`entries.1.content` is wrong: "),
    ({"content": "x", "colour": "red"}, "`entries.1.colour` is not known here."),
    ({"content": "x", "kind": "poem"}, "`entries.1.kind` is wrong: "),
    ({"content": " \n "}, "`entries.1` is wrong: The content is empty: write what is to be remembered."),
    ({"content": "x", "tags": [" "]}, "`entries.1` is wrong: A tag is a text of 1 to 64 characters."),
    ({"content": "x", "metadata": {"a": "b" * 10_001}}, "`entries.1` is wrong: The metadata has more than 10,000"),
    ({"content": "x", "allowed_vendors": ["a b"]}, "`entries.1` is wrong: In allowed_vendors, "),
    ({"content": "x", "created_at": "0001-01-01T00:00:00Z"}, "`entries.1` is wrong: "),
    ({"content": "x", "key": "first"}, "`entries.1` has the key of `entries.0`: leave one of them out."),
]


@pytest.mark.parametrize(("wrong", "sentence"), WRONG, ids=range(len(WRONG)))
async def test_a_wrong_entry_is_named_and_nothing_is_stored(
    harness: AppHarness, client: httpx2.AsyncClient, wrong: dict[str, Any], sentence: str
) -> None:
    key = await key_of(harness, "alice")
    for dry_run in ("true", "false"):
        sent = document({"content": "good", "key": "first"}, wrong)
        refused = await imported(client, key, sent, 422, dry_run=dry_run)
        assert refused["detail"].startswith(sentence), refused
        assert await listed(client, key) == []


async def test_a_document_of_another_format_version_or_size_is_refused(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    key = await key_of(harness, "alice")
    for wrong in ({"format": "nexus-export"}, {"version": 2}):
        field = next(iter(wrong))
        assert f"`{field}` is wrong" in (await imported(client, key, document() | wrong, 422))["detail"]
    many = document(*({"content": f"note {n}"} for n in range(MAX_ENTRIES + 1)))
    assert (await imported(client, key, many, 422))["detail"] == (
        "A document has at most 20,000 entries; this one has 20,001: divide it."
    )
    large = document(*({"content": "x" * 99_000} for _ in range(350)))
    assert (await imported(client, key, large, 413))["detail"] == (
        "The request's body is too large: 33,554,432 bytes are taken here."
    )
    assert await listed(client, key) == []


async def test_the_document_of_another_person_is_taken_in_as_ones_own_whether_they_still_have_it_or_not(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient
) -> None:
    hers = (await hub.write("alice", "We deploy on Fridays")).entry
    key, other = await key_of(harness, "alice"), await key_of(harness, "bob")
    nobodys = uuid.uuid4()
    sent = document({"id": str(hers.id), "content": "mine"}, {"id": str(nobodys), "content": "mine too"})
    answer = await imported(client, other, sent)
    assert outcomes(answer) == ["created", "created"]
    assert not {str(hers.id), str(nobodys)} & {each["id"] for each in answer["items"]}
    assert [each["content"] for each in await listed(client, key)] == ["We deploy on Fridays"]
    assert {each["owner"]["name"] for each in await listed(client, other)} == {"bob"}


async def test_what_is_new_is_shared_with_nobody_and_what_is_there_stays_where_it_is(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient
) -> None:
    key, other = await key_of(harness, "alice"), await key_of(harness, "bob")
    team = (await client.post("/v1/teams", json={"name": "Ops"}, headers=bearer(key))).json()["id"]
    entry = (await hub.write("alice", "We deploy on Fridays")).entry
    await client.put(f"/v1/entries/{entry.id}/team", json={"team": team}, headers=bearer(key))
    taken = await exported(client, key)
    assert taken["entries"][0]["shared"]["team"] == {"id": team, "name": "Ops"}
    taken["entries"][0]["content"] = "We deploy on Mondays"
    assert outcomes(await imported(client, key, taken)) == ["replaced"]
    (hers,) = await listed(client, key)
    assert (hers["content"], hers["shared"]["team"]["id"]) == ("We deploy on Mondays", team)
    await imported(client, other, taken)
    (his,) = await listed(client, other)
    assert his["shared"] == {"team": None, "project": None, "everyone": False, "former_member": False}


async def test_an_entry_of_a_key_replaces_what_the_same_writer_has_under_it(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient
) -> None:
    mine = (await hub.write("alice", "tea", key="drink")).entry
    tools = (await hub.write("alice", "dark roast", vendor="claude", key="drink")).entry
    key = await key_of(harness, "alice")
    sent = document(
        {"content": "coffee", "key": "drink"}, {"content": "light roast", "key": "drink", "origin": "claude"}
    )
    answer = await imported(client, key, sent)
    assert [each["id"] for each in answer["items"]] == [str(mine.id), str(tools.id)]
    assert outcomes(answer) == ["replaced", "replaced"]
    assert sorted(each["content"] for each in await listed(client, key)) == ["coffee", "light roast"]
    taken = await exported(client, key)
    taken["entries"][0]["key"] = taken["entries"][1]["key"] = None
    for each in taken["entries"]:
        each["key"] = "drink" if each["origin"] == "api" else None
    await hub.write("alice", "water", key="other")
    taken["entries"] = [each | {"key": "other"} for each in taken["entries"] if each["origin"] == "api"]
    refused = await imported(client, key, taken, 422)
    assert refused["detail"] == "`entries.0` has a key that another entry has by now: change one of them."


async def test_an_entry_whose_time_is_over_is_left_out(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    key = await key_of(harness, "alice")
    over = (harness.clock.now() - timedelta(days=1)).isoformat()
    answer = await imported(client, key, document({"content": "old", "expires_at": over}, {"content": "new"}))
    assert (outcomes(answer), answer["expired"]) == (["expired", "created"], 1)
    assert [each["content"] for each in await listed(client, key)] == ["new"]


async def test_what_was_forgotten_comes_back_by_an_import_under_a_new_id(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    key = await key_of(harness, "alice")
    sent = document({"id": str(uuid.uuid4()), "content": "We deploy on Fridays"})
    ids = []
    for _ in range(3):
        answer = await imported(client, key, sent)
        assert outcomes(answer) == ["created"]
        ids.append(answer["items"][0]["id"])
        assert outcomes(await imported(client, key, sent)) == ["unchanged"]
        await client.post(f"/v1/entries/{ids[-1]}/forget", headers=bearer(key))
    assert len(set(ids)) == 3


async def test_a_memory_that_was_said_in_a_chat_is_exported_and_unchanged_by_its_import(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    await harness.command("alice", "/nexus remember I like tea --everywhere --yes", **ROOM)
    key = await key_of(harness, "alice")
    taken = await exported(client, key)
    assert [(each["content"], each["shared"]["everyone"]) for each in taken["entries"]] == [("I like tea", True)]
    assert outcomes(await imported(client, key, taken)) == ["unchanged"]


async def test_only_ones_own_is_exported_and_of_an_isolated_project_only_by_its_name(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient
) -> None:
    key = await key_of(harness, "alice")
    bob = (await person(harness, "bob")).id
    projects = {}
    for name, isolated in (("apollo", False), ("ares", True)):
        made = await client.post("/v1/projects", json={"name": name, "isolated": isolated}, headers=bearer(key))
        projects[name] = made.json()["id"]
        member = f"/v1/projects/{projects[name]}/members/{bob}"
        assert (await client.put(member, json={"role": "write"}, headers=bearer(key))).status_code == 202
        await client.post(f"/v1/projects/{projects[name]}/accept", headers=bearer(await key_of(harness, "bob")))
        for who in ("alice", "bob"):
            await hub.write(who, f"{who} for {name}", project=uuid.UUID(projects[name]))
    await hub.write("alice", "alice for herself")
    assert [each["content"] for each in (await exported(client, key))["entries"]] == [
        "alice for herself",
        "alice for apollo",
    ]
    assert [each["content"] for each in (await exported(client, key, project="ares"))["entries"]] == ["alice for ares"]
    unknown = await client.get("/v1/entries/export?project=nix", headers=bearer(key))
    assert unknown.status_code == 404


async def test_a_key_that_may_not_read_and_write_entries_imports_nothing(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    for permission in ("entries:read", "entries:write"):
        key = await key_of(harness, "alice", permissions=[permission])
        assert (await imported(client, key, document({"content": "x"}), 403))["detail"].startswith("This key may not")
    none = await key_of(harness, "alice", permissions=["chat"])
    assert (await exported(client, none))["entries"] == []


async def test_an_export_that_its_key_does_not_outlive_is_broken_off(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        await hub.write("alice", f"note {n}")
    key, read_page = await key_of(harness, "alice"), export.read_page

    async def read_and_revoke(*given: Any) -> list[Entry]:
        async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
            keys = await tx.api_keys.of([(await person(harness, "alice")).id])
            await tx.api_keys.revoke([each.id for each in keys], harness.clock.now())
        return await read_page(*given)

    monkeypatch.setattr(exchange, "PAGE", 1)
    monkeypatch.setattr(exchange, "read_page", read_and_revoke)
    with pytest.raises(httpx2.RemoteProtocolError):
        await client.get("/v1/entries/export", headers=bearer(key))


async def test_what_is_forgotten_while_an_export_is_sent_is_not_in_it(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [(await hub.write("alice", f"note {n}")).entry.id for n in range(3)]
    key, read_page = await key_of(harness, "alice"), export.read_page

    async def read_and_forget(*given: Any) -> list[Entry]:
        found = await read_page(*given)
        await client.post(f"/v1/entries/{ids[1]}/forget", headers=bearer(key))
        return found

    monkeypatch.setattr(exchange, "PAGE", 1)
    monkeypatch.setattr(exchange, "read_page", read_and_forget)
    assert [each["content"] for each in (await exported(client, key))["entries"]] == ["note 2", "note 0"]


async def test_exports_and_imports_are_in_the_audit_log(
    harness: AppHarness, hub: Hub, client: httpx2.AsyncClient
) -> None:
    await month_of_alice(hub)
    key, alice = await key_of(harness, "alice"), (await person(harness, "alice")).id
    taken = await exported(client, key)
    await imported(client, key, taken, dry_run="true")
    await imported(client, key, taken)
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        rows = [row for row in await tx.audit.find(limit=100) if row.act in ("exported", "entries.imported")]
    assert {(row.act, row.actor, *sorted(row.details.items())) for row in rows} == {
        ("exported", alice, ("entries", 3)),
        ("entries.imported", alice, ("created", 0), ("expired", 0), ("replaced", 0), ("unchanged", 3)),
    }
    assert len(rows) == 2


async def test_all_of_a_person_is_exported_as_in_the_chat(harness: AppHarness, client: httpx2.AsyncClient) -> None:
    await harness.say("alice", "I live in Lisbon", dm="nexus")
    await harness.say("bob", "nothing of mine", **ROOM)
    key = await key_of(harness, "alice")
    await client.get("/v1/whoami", headers=bearer(key))
    await harness.app.credentials._last_use.settle()  # the next use is not stored, being within the same minute
    by_api = await client.get("/v1/export", headers=bearer(key))
    assert by_api.headers["content-disposition"] == 'attachment; filename="nexus-export.json"'
    in_chat = (await harness.command("alice", "/nexus export", dm="nexus")).file
    assert in_chat is not None
    later = {"made_at": None}
    assert by_api.json() | later == json.loads(in_chat.text) | later
    assert "I live in Lisbon" in by_api.text
    assert "nothing of mine" not in by_api.text
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        assert len([row for row in await tx.audit.find(limit=100) if row.act == "exported"]) == 2


async def test_a_key_that_gives_less_than_all_exports_none_of_it(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    needed = {"manage", "chat", "entries:read", "teams:read", "projects:read"}
    for missing in needed:
        key = await key_of(harness, "alice", permissions=sorted(needed - {missing}))
        refused = await client.get("/v1/export", headers=bearer(key))
        assert refused.status_code == 403
        assert missing in refused.json()["detail"]
    whole = await key_of(harness, "alice", permissions=sorted(needed))
    assert (await client.get("/v1/export", headers=bearer(whole))).status_code == 200


async def test_a_long_document_is_stored_in_portions_whole_and_once(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    key, count = await key_of(harness, "alice"), 2 * PORTION + 3
    many = document(*({"content": f"note {n}", "key": f"n{n}"} for n in range(count)))
    first = await imported(client, key, many)
    assert (first["created"], first["dry_run"], len(first["items"])) == (count, False, count)
    again = await imported(client, key, many)
    assert (again["created"], again["unchanged"]) == (0, count)
    assert [each["id"] for each in again["items"]] == [each["id"] for each in first["items"]]


async def test_a_long_document_with_a_wrong_entry_at_its_end_brings_nothing_in(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    key = await key_of(harness, "alice")
    wrong = document(*({"content": f"note {n}"} for n in range(PORTION + 1)), {"content": "x", "tags": ["a" * 500]})
    refused = await imported(client, key, wrong, 422)
    assert f"entries.{PORTION + 1}" in refused["detail"]
    assert await listed(client, key) == []


async def test_an_import_that_erases_nothing_empties_no_caches(
    harness: AppHarness, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, told = await key_of(harness, "alice"), []
    real = App.forgotten

    async def forgotten(app: App, tenant: uuid.UUID, receipt: Receipt) -> None:
        told.append(receipt)
        await real(app, tenant, receipt)

    monkeypatch.setattr(App, "forgotten", forgotten)
    sent = document(*({"content": f"entry {number}", "key": f"k{number}"} for number in range(PORTION + 3)))
    assert (await client.post("/v1/entries/import", json=sent, headers=bearer(key))).json()["created"] == PORTION + 3
    assert (await client.post("/v1/entries", json={"content": "new", "key": "n"}, headers=bearer(key))).is_success
    assert told == []
    sent["entries"][1]["content"] = "other words"
    assert (await client.post("/v1/entries/import", json=sent, headers=bearer(key))).json()["replaced"] == 1
    assert len(told) == 1


async def test_a_large_document_is_planned_beside_the_event_loop(
    harness: AppHarness, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, on_loop = await key_of(harness, "alice"), list[str]()
    loop = threading.get_ident()

    def watched(name: str) -> None:
        real = getattr(import_plan, name)

        def work(*args: Any) -> Any:
            if threading.get_ident() == loop:
                on_loop.append(name)
            return real(*args)

        monkeypatch.setattr(import_plan, name, work)

    for name in ("_name", "_ids", "_planned"):
        watched(name)
    sent = document(*({"content": f"entry {number}"} for number in range(PORTION + 1)))
    planned = await client.post("/v1/entries/import?dry_run=true", json=sent, headers=bearer(key))
    assert (planned.json()["created"], on_loop) == (PORTION + 1, [])


async def test_long_entries_are_stored_in_portions_and_one_that_stops_says_how_far_it_came(
    harness: AppHarness, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, portions = await key_of(harness, "alice"), list[int]()
    many = document(*({"content": f"note {n} " + "a b " * 10_000} for n in range(5)))

    async def counted(*args: Any, dry_run: bool) -> Any:
        if not dry_run:
            portions.append(len(args[2]))
            if len(portions) == 2:
                raise Unavailable("The database does not answer.")
        return await import_entries(*args, dry_run=dry_run)

    monkeypatch.setattr(exchange, "import_entries", counted)
    stopped = await imported(client, key, many, 503)
    assert stopped["detail"].startswith("The database does not answer. The first 2 of 5 entries are stored")
    assert len(await listed(client, key)) == 2
    rest = await imported(client, key, many)
    assert (rest["created"], rest["unchanged"]) == (3, 2)
    assert portions == [2, 2, 2, 2, 1]
    assert len(await listed(client, key)) == 5
