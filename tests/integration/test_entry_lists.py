"""Lists of entries: what may be read and fits every filter, newest first, each once over all pages."""

import uuid
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from composer.entries import entries, listing
from composer.entries.entries import Writer
from composer.errors import BadInput, NotFound, Refused
from composer.model import (
    Conversation,
    ConversationKind,
    Visibility,
    entries_namespace,
    project_namespace,
    team_namespace,
)
from composer.repositories.entries import EntryFilter
from composer.repositories.lineage import insert_lineage
from composer.repositories.ordering import Order
from composer.visibility import Grants, Readable
from tests.integration.test_teams import team_of
from tests.support.entries import OF_TOOL, Hub
from tests.support.harness import START
from tests.support.stored_rows import Rows, Tag


async def filled(hub: Hub) -> None:
    await hub.write("alice", "first about budgets", "claude", kind="factual", tags=["a", "b"], session="s1")
    await hub.write("alice", "second 100% sure", "cursor", kind="factual", tags=["a"], key="k_2")
    await hub.write("alice", "third", kind="note", tags=["b"], title="The BUDGET", session="s2")
    await hub.write("bob", "of bob", kind="factual", tags=["a"])


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, ["The BUDGET", "second 100% sure", "first about budgets"]),
        ({"kinds": ("factual",)}, ["second 100% sure", "first about budgets"]),
        ({"kinds": ("note", "factual")}, ["The BUDGET", "second 100% sure", "first about budgets"]),
        ({"tags": ("a", "b")}, ["first about budgets"]),
        ({"tags": ("b",)}, ["The BUDGET", "first about budgets"]),
        ({"origins": ("api",)}, ["The BUDGET"]),
        ({"origins": ("claude", "cursor")}, ["second 100% sure", "first about budgets"]),
        ({"session": "s1"}, ["first about budgets"]),
        ({"words": "budget"}, ["The BUDGET", "first about budgets"]),
        ({"words": "0% s"}, ["second 100% sure"]),
        ({"words": "k_2"}, ["second 100% sure"]),
        ({"words": "k%2"}, []),
        ({"words": "\\"}, []),
        ({"since": START + timedelta(hours=1)}, []),
        ({"until": START}, []),
        ({"trashed": True}, []),
    ],
)
async def test_each_filter_fits_what_it_says(hub: Hub, wanted: dict[str, Any], found: list[str]) -> None:
    await filled(hub)
    assert await hub.titles("alice", **wanted) == found
    async with hub.request("alice") as (tx, access):
        counts = await listing.counts(tx, access, EntryFilter(**wanted), hub.harness.clock.now())
    assert sum(each.count for each in counts) == len(found)


async def test_counts_are_by_kind_with_tokens(hub: Hub) -> None:
    await filled(hub)
    async with hub.request("alice") as (tx, access):
        counts = await listing.counts(tx, access, EntryFilter(), hub.harness.clock.now())
    assert [(each.kind, each.count, each.tokens) for each in counts] == [("factual", 2, 9), ("note", 1, 2)]


async def test_pages_show_each_entry_once_by_cursor_and_by_offset(hub: Hub) -> None:
    now = hub.harness.clock.tick()
    async with hub.request("alice") as (tx, access):
        for n in range(7):  # at one moment, so that ids decide
            await entries.write(tx, access, {"content": f"n{n}"}, Writer("alice"), f"p{n}", now)
    whole = await hub.titles("alice")
    assert sorted(whole) == [f"n{n}" for n in range(7)]
    seen: list[str] = []
    cursor: str | None = None
    async with hub.request("alice") as (tx, access):
        while True:
            page = await listing.page(tx, access, EntryFilter(), now, limit=3, cursor=cursor)
            seen += [entry.title for entry in page.entries]
            cursor = page.cursor
            if cursor is None:
                break
        assert seen == whole
        page = await listing.page(tx, access, EntryFilter(), now, limit=3, cursor=page.cursor or "x", offset=5)
        assert [entry.title for entry in page.entries] == whole[5:]
        for wrong in ({"limit": 0}, {"limit": 201}, {"offset": -1}, {"cursor": "x"}, {"cursor": "é"}, {"cursor": ""}):
            with pytest.raises(BadInput):
                await listing.page(tx, access, EntryFilter(), now, **wrong)


async def use(hub: Hub, name: str, id: uuid.UUID) -> None:
    """Make an answer to somebody of an entry."""
    hub.harness.clock.tick(60)
    turn = (await hub.harness.ask(name, "good morning", dm="nexus")).turn
    async with hub.harness.app.database.transaction(turn.tenant_id) as tx:
        await insert_lineage(tx._sql, [("turn", turn.id, "memory", id)])


@pytest.mark.parametrize("limit", [1, 2, 50])
async def test_lists_are_sorted_and_a_page_goes_on_where_the_one_before_ended(hub: Hub, limit: int) -> None:
    team = await team_of(hub, "alice", "bob")
    ids = {name: (await hub.write("alice", name)).entry.id for name in ("crane", "quay", "buoy")}
    await hub.change("alice", ids["quay"], tags=["x"])
    await use(hub, "alice", ids["buoy"])
    await use(hub, "alice", ids["crane"])
    await hub.share("alice", ids["quay"], team)
    await use(hub, "bob", ids["quay"])
    now = hub.harness.clock.now()
    names = {id: name for name, id in ids.items()}

    async def listed(who: str, sort: str) -> list[str]:
        found, cursor = list[str](), None
        async with hub.request(who) as (tx, access):
            while True:
                page = await listing.page(tx, access, EntryFilter(order=Order(sort)), now, limit=limit, cursor=cursor)
                found += [names[entry.id] for entry in page.entries]
                cursor = page.cursor
                if cursor is None:
                    return found

    for sort, expected in {
        "created": ["crane", "quay", "buoy"],
        "updated": ["crane", "buoy", "quay"],
        "used": ["quay", "buoy", "crane"],  # bob's answer is not alice's
    }.items():
        assert (await listed("alice", sort), await listed("alice", f"-{sort}")) == (expected, expected[::-1])
    assert await listed("bob", "-used") == ["quay"]


async def test_a_cursor_belongs_to_its_order_and_what_was_used_to_the_person(hub: Hub) -> None:
    await filled(hub)
    now = hub.harness.clock.now()
    async with hub.request("alice") as (tx, access):
        page = await listing.page(tx, access, EntryFilter(order=Order.LATEST_UPDATED), now, limit=1)
        for order in (Order.NEWEST, Order.LONGEST_UNCHANGED):
            with pytest.raises(BadInput):
                await listing.page(tx, access, EntryFilter(order=order), now, limit=1, cursor=page.cursor)
    async with hub.request("alice", "claude") as (tx, access):
        with pytest.raises(Refused):
            await listing.page(tx, access, EntryFilter(order=Order.LONGEST_UNUSED), now)


async def test_a_list_has_the_beginnings_of_texts_and_all_of_them_when_asked(hub: Hub) -> None:
    await hub.write("alice", " " + "x" * 5_000)
    (short,) = await hub.find("alice")
    (whole,) = await hub.find("alice", page={"whole": True})
    assert (len(short.values.text), short.size) == (listing.MAX_SNIPPET_CHARS, 5_001)
    assert (whole.content, whole.tokens) == (" " + "x" * 5_000, 1_251)


async def test_a_tool_lists_what_names_it_and_its_person_lists_all(hub: Hub) -> None:
    await hub.write("alice", "for all", "claude")
    await hub.write("alice", "for claude", "claude", vendors=["claude"])
    await hub.write("alice", "for cursor", vendors=["cursor"])
    assert await hub.titles("alice", "claude") == ["for claude", "for all"]
    assert await hub.titles("alice", "cursor") == ["for cursor", "for all"]
    assert await hub.titles("alice") == ["for cursor", "for claude", "for all"]


async def project_of(hub: Hub, name: str, *members: str, isolated: bool = False) -> uuid.UUID:
    flag = " --isolated" if isolated else ""
    await hub.harness.command("alice", f"/nexus project create {name}{flag}", dm="nexus")
    for member in members:
        await hub.user(member)
        await hub.harness.command("alice", f"/nexus project member add {name} {member} write", dm="nexus")
        await hub.harness.command(member, f"/nexus project accept {name}", dm="nexus")
    async with hub.harness.app.database.transaction(hub.harness.workspace().tenant_id) as tx:
        (found,) = await tx.projects.named(name)
    return found


async def test_what_is_written_for_a_project_its_members_list(hub: Hub) -> None:
    apollo = await project_of(hub, "apollo", "bob")
    await hub.write("alice", "for apollo", project=apollo)
    await hub.write("alice", "own")
    assert await hub.titles("bob") == ["for apollo"]
    assert await hub.titles("alice", project=apollo, page={"only_project": True}) == ["for apollo"]
    assert await hub.titles("carol") == []
    with pytest.raises(NotFound):
        await hub.titles("carol", project=apollo)
    async with hub.request("bob", "claude", grants=OF_TOOL - {Grants.READ_PROJECTS}) as (tx, access):
        assert (await listing.page(tx, access, EntryFilter(), hub.harness.clock.now())).entries == []


async def test_an_isolated_project_is_listed_only_when_it_is_named(hub: Hub) -> None:
    ares = await project_of(hub, "ares", isolated=True)
    await hub.write("alice", "inside", project=ares)
    await hub.write("alice", "outside")
    assert await hub.titles("alice") == ["outside"]
    assert await hub.titles("alice", project=ares) == ["inside"]


async def test_rows_that_may_not_be_read_change_no_list_and_no_count(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """As test_unreadable_rows.py: without the check in code, unreadable rows of the same words change nothing."""
    monkeypatch.setattr(Readable, "admits", lambda readable, row: True)
    alice, bob = await hub.user("alice"), await hub.user("bob")
    tenant, team, project = hub.harness.workspace().tenant_id, uuid.uuid4(), uuid.uuid4()
    raw = await asyncpg.connect(hub.harness.app.settings.database_url)
    place = Conversation(uuid.uuid4(), tenant, ConversationKind.DM, "x", "dm:x", user_id=alice, agent_id=uuid.uuid4())
    own = Tag(entries_namespace(alice), Visibility.PRIVATE, alice, ("claude",))
    hidden = [
        Tag(entries_namespace(bob), Visibility.PRIVATE, bob, ("claude",)),
        Tag(entries_namespace(alice), Visibility.PRIVATE, bob, ("claude",)),
        Tag(entries_namespace(alice), Visibility.PUBLIC, alice, ("claude",)),
        Tag(entries_namespace(alice), Visibility.PRIVATE, alice, ("cursor",)),
        Tag(team_namespace(team), Visibility.PRIVATE, bob, ("claude",)),
        Tag(project_namespace(project), Visibility.SHARED, bob, ("claude",)),
        Tag("room:other", Visibility.PUBLIC, alice, ("claude",)),
        Tag("global", Visibility.SHARED, alice, ("claude",)),
        Tag(f"profile:{bob}", Visibility.SHARED, bob, ("claude",)),
    ]
    hub.harness.clock.set(START + timedelta(days=2))

    async def read() -> Any:
        now = hub.harness.clock.now()
        async with hub.request("alice", "claude") as (tx, access):
            pages = [
                await listing.page(tx, access, wanted, now, limit=limit)
                for wanted in (
                    EntryFilter(),
                    EntryFilter(kinds=("fact",)),
                    EntryFilter(words="memory", order=Order.OLDEST),
                    EntryFilter(order=Order.LATEST_UPDATED),
                )
                for limit in (1, 50)
            ]
            return pages, await listing.counts(tx, access, EntryFilter(), now)

    try:
        rows = Rows(raw, tenant, place, uuid.uuid4())
        for n in range(3):
            await rows.insert(own, 10 * n)
        before = await read()
        assert [each.count for each in before[1]] == [3]
        for n, tag in enumerate(hidden):
            await rows.insert(tag, 10 * n + 1)
        assert await read() == before
        await rows.insert(own, 5)  # the control
        assert await read() != before
    finally:
        await raw.close()
