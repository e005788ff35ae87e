"""Keys, web sessions and login links: whom they stand for, and that nothing else stands for anybody."""

import secrets
from collections import Counter
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from pydantic import SecretStr

from composer.errors import BadInput, NotFound, Refused
from composer.model import User, tenant_id
from composer.people.administration import set_disabled
from composer.people.credentials import keys, sign_in
from composer.people.credentials.issuing import KeyRequest, NewKey, create_key, delete_credentials, revoke
from composer.people.credentials.principal import EVERY_PERMISSION, TOOL_PERMISSIONS, KeyPermission, Principal, Source
from composer.repositories.audit import AuditAct
from composer.settings import Settings
from sql.loader import queries
from tests.support.databases import service_url
from tests.support.harness import AppHarness, open_harness
from tests.support.receiver import connection_of

OWNER_KEY, CLAUDE_KEY = "o" * 40, "c" * 40


async def person(harness: AppHarness, name: str = "alice", workspace: str = "acme") -> User:
    at = harness.workspace(workspace)
    async with harness.app.database.transaction(at.tenant_id) as tx:
        found = await tx.people.find_user(at.platform, at.name, name)
    if found is None:
        await harness.say(name, "hello", room="general", workspace=workspace)
        return await person(harness, name, workspace)
    return found


async def new_key(
    harness: AppHarness, name: str = "alice", vendor: str | None = "claude", workspace: str = "acme", **request: Any
) -> NewKey:
    at, user = harness.workspace(workspace), await person(harness, name, workspace)
    async with harness.app.database.transaction(at.tenant_id) as tx:
        return await create_key(
            tx,
            at.tenant,
            user,
            KeyRequest(vendor, **request),
            secrets.token_bytes(32),
            harness.clock.now(),
            by=user.id,
        )


async def signed_in(harness: AppHarness, name: str = "alice") -> str:
    """The cookie of a new web session."""
    at, user = harness.workspace(), await person(harness, name)
    now = harness.clock.now()
    async with harness.app.database.transaction(at.tenant_id) as tx:
        code = await sign_in.make_login_link(tx, at.tenant, user.id, secrets.token_bytes(32), now, by=user.id)
    harness.clock.tick(1)
    return (await redeem(harness, code))[1]


async def redeem(harness: AppHarness, code: str) -> tuple[object, str]:
    now = harness.clock.now()
    return await sign_in.sign_in(harness.app.database, code, "Firefox", secrets.token_bytes(32), now)


async def resolve(harness: AppHarness, bearer: str | None, cookie: str | None = None) -> Principal | None:
    return await harness.app.credentials.resolve(bearer, cookie)


async def acts(harness: AppHarness) -> list[str]:
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        return [event.act for event in reversed(await tx.audit.find(limit=100))]


# --- whom a credential stands for ------------------------------------------------------------------------------------


async def test_a_key_stands_for_its_person_and_tool(harness: AppHarness) -> None:
    made, alice = await new_key(harness), await person(harness)
    tenant = harness.workspace().tenant_id
    expected = Principal(
        tenant, alice.id, "claude", TOOL_PERMISSIONS, Source.KEY, made.entry.id, harness.workspace().tenant
    )
    assert await resolve(harness, made.text) == expected
    own = await new_key(harness, vendor=None)
    found = await resolve(harness, own.text)
    assert found is not None
    assert (found.user, found.vendor, found.permissions) == (alice.id, None, EVERY_PERMISSION - {KeyPermission.ADMIN})
    assert await acts(harness) == [AuditAct.KEY_CREATED] * 2


async def test_a_web_session_stands_for_its_person_and_counts_before_a_key(harness: AppHarness) -> None:
    cookie, bobs = await signed_in(harness), await new_key(harness, "bob")
    alice = await person(harness)
    found = await resolve(harness, bobs.text, cookie)
    assert found is not None
    assert (found.user, found.vendor, found.source) == (alice.id, None, Source.WEB_SESSION)
    behind = await resolve(harness, bobs.text, cookie[:-1] + "x")
    assert behind is not None
    assert behind.user == (await person(harness, "bob")).id, "a cookie that stands for nobody hides no key"
    assert await resolve(harness, cookie) is None, "a cookie is no key"
    assert await resolve(harness, None, bobs.text) is None, "a key is no cookie"
    assert await resolve(harness, None) is None


async def test_keys_of_the_settings_open_their_owners_memory(settings: Settings) -> None:
    given = {
        "owner": "acme/alice",
        "owner_key": SecretStr(OWNER_KEY),
        "tool_keys": {"claude": SecretStr(CLAUDE_KEY), "cursor": SecretStr("d" * 40)},
    }
    async with open_harness(settings.model_copy(update=given)) as harness:
        assert await resolve(harness, OWNER_KEY) is None, "nobody is called so yet"
        alice = await person(harness)
        own, tool = await resolve(harness, OWNER_KEY), await resolve(harness, CLAUDE_KEY)
        assert own is not None
        assert tool is not None
        assert (own.user, own.vendor, own.permissions) == (alice.id, None, EVERY_PERMISSION - {KeyPermission.ADMIN})
        assert (tool.user, tool.vendor, tool.permissions) == (alice.id, "claude", TOOL_PERMISSIONS)
        assert own.id != tool.id
        async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
            await tx.people.set_admin(alice.id, True)
        promoted = await resolve(harness, OWNER_KEY)
        assert promoted is not None
        assert promoted.permissions == EVERY_PERMISSION
        for wrong in (OWNER_KEY.upper(), OWNER_KEY[1:], f"{OWNER_KEY} ", "", OWNER_KEY + "o"):
            assert await resolve(harness, wrong) is None
        assert await resolve(harness, None, OWNER_KEY) is None


async def test_what_a_person_is_now_decides_and_not_what_they_were(harness: AppHarness) -> None:
    alice, tenant = await person(harness), harness.workspace().tenant_id
    async with harness.app.database.transaction(tenant) as tx:
        await tx.people.set_admin(alice.id, True)
    own, tool = await new_key(harness, vendor=None), await new_key(harness)
    with_admin = await resolve(harness, own.text)
    assert with_admin is not None
    assert with_admin.may(KeyPermission.ADMIN)
    async with harness.app.database.transaction(tenant, "alone") as tx:
        await tx.people.set_admin(alice.id, False)
        await tx.people.set_opted_out(alice.id, True)
    without, reading = await resolve(harness, own.text), await resolve(harness, tool.text)
    assert without is not None
    assert reading is not None
    assert not without.may(KeyPermission.ADMIN)
    assert without.may(KeyPermission.ENTRIES_WRITE)
    assert reading.permissions == TOOL_PERMISSIONS - {KeyPermission.ENTRIES_WRITE}, "nothing is stored of who opted out"


# --- what stands for nobody ------------------------------------------------------------------------------------------


async def wrong_keys(harness: AppHarness) -> dict[str, str]:
    """Texts that stand for nobody, by what is wrong with them."""
    made = (await new_key(harness)).text
    revoked = await new_key(harness)
    expired = await new_key(harness, expires_at=harness.clock.now() + timedelta(days=1))
    at = harness.workspace()
    async with harness.app.database.transaction(at.tenant_id) as tx:
        await tx.api_keys.revoke([revoked.entry.id], harness.clock.now())
    harness.clock.tick(25 * 3600)
    await person(harness, workspace="umbrella")
    secret = made[-64:]
    return {
        "forged": made[:-64] + secrets.token_hex(32),
        "one digit off": made[:-1] + ("0" if made[-1] != "0" else "1"),
        "revoked": revoked.text,
        "expired": expired.text,
        "of another tenant": f"nx_umbrella_{secret}",
        "of no tenant": f"nx_nowhere_{secret}",
        "upper case": made[:-64] + secret.upper(),
        "upper-case beginning": "NX" + made[2:],
        "leading space": f" {made}",
        "trailing space": f"{made} ",
        "line end": f"{made}\n",
        "NUL": f"{made}\0",
        "unicode digits": "".join(chr(0x660 + int(each)) if each.isdecimal() else each for each in made),
        "full-width": "".join(chr(0xFF10 + int(each)) if each.isdecimal() else each for each in made),
        "quotes": f'"{made}"',
        "prefix alone": keys.shown(made),
        "digest in place of the key": keys.digest(made).hex(),
        "empty": "",
        "very long": made + "0" * 100_000,
        "lone surrogate": made + "\ud800",
    }


async def test_every_wrong_key_stands_for_nobody_by_the_same_statement(
    harness: AppHarness, statements: Counter[str]
) -> None:
    wrong = await wrong_keys(harness)
    for name, text in wrong.items():
        statements.clear()
        assert await resolve(harness, text) is None, name
        del statements["tables_have_statistics"]  # asked every ten seconds, whatever is resolved
        assert statements == Counter({"api_key_find": 1}), name


async def test_every_wrong_cookie_stands_for_nobody_by_the_same_statement(
    harness: AppHarness, statements: Counter[str]
) -> None:
    cookie = await signed_in(harness)
    at = harness.workspace()
    async with harness.app.database.transaction(at.tenant_id) as tx:
        ended = await tx.web_sessions.of([(await person(harness)).id], harness.clock.now())
    assert len(ended) == 1
    for text in (cookie[:-1], cookie.upper(), f"{cookie} ", f"nxs_nowhere_{cookie[-64:]}", cookie[:-64] + "0" * 64, ""):
        statements.clear()
        assert await resolve(harness, None, text) is None
        del statements["tables_have_statistics"]
        assert statements == Counter({"web_session_find": 1})
    harness.clock.tick(30 * 24 * 3600 + 1)
    statements.clear()
    assert await resolve(harness, None, cookie) is None, "it has expired"
    del statements["tables_have_statistics"]
    assert statements == Counter({"web_session_find": 1})


async def test_ten_thousand_wrong_keys_leave_nothing_behind(harness: AppHarness, statements: Counter[str]) -> None:
    made = await new_key(harness)
    before = await rows(harness)
    statements.clear()
    for number in range(10_000):
        assert await resolve(harness, f"nx_{'acme' if number % 2 else f'tenant{number}'}_{number:064x}") is None
    del statements["tables_have_statistics"]
    assert statements == Counter({"api_key_find": 10_000})
    assert await rows(harness) == before
    assert harness.app.credentials._last_use._writing == {}
    found = await resolve(harness, made.text)
    assert found is not None
    assert found.id == made.entry.id


async def rows(harness: AppHarness) -> dict[str, int]:
    """Rows by table, of all tenants."""
    connection = await asyncpg.connect(harness.app.settings.database_url)
    try:
        tables = await connection.fetch(queries()["table_names"].sql)
        return {row[0]: await connection.fetchval(f'SELECT count(*) FROM "{row[0]}"') for row in tables}
    finally:
        await connection.close()


# --- what is stored --------------------------------------------------------------------------------------------------


async def test_no_secret_is_stored_and_no_list_shows_a_digest(harness: AppHarness) -> None:
    made, cookie = await new_key(harness, name="alice"), await signed_in(harness)
    connection = await asyncpg.connect(harness.app.settings.database_url)
    try:
        stored = [
            str(dict(row))
            for table in ("api_keys", "web_sessions", "one_time_codes", "audit_events")
            for row in await connection.fetch(f"SELECT * FROM {table}")
        ]
    finally:
        await connection.close()
    everything = "\n".join(stored)
    assert made.entry.prefix in everything
    assert made.text[-64:] not in everything
    assert cookie[-64:] not in everything
    at, alice = harness.workspace(), await person(harness)
    async with harness.app.database.transaction(at.tenant_id) as tx:
        sessions = await tx.web_sessions.of(None, harness.clock.now())
        listed = str([*await tx.api_keys.of([alice.id]), *await tx.api_keys.of(None), *sessions])
    assert listed.count(made.entry.prefix) == 2
    for digest in (keys.digest(made.text), keys.digest(cookie)):
        assert digest.hex() not in listed
        assert str(digest) not in listed


async def test_a_use_is_stored_at_most_once_a_minute_and_not_within_the_request(
    harness: AppHarness, statements: Counter[str]
) -> None:
    made, cookie = await new_key(harness), await signed_in(harness)
    at, alice = harness.workspace(), await person(harness)

    async def used() -> list[object]:
        await harness.app.credentials._last_use.settle()
        async with harness.app.database.transaction(at.tenant_id) as tx:
            sessions = await tx.web_sessions.of([alice.id], harness.clock.now())
            return [
                *(key.last_used_at for key in await tx.api_keys.of([alice.id])),
                *(s.last_used_at for s in sessions),
            ]

    assert await used() == [None, None]
    statements.clear()
    first = harness.clock.now()
    await resolve(harness, made.text)
    await resolve(harness, None, cookie)
    assert await used() == [first, first]
    harness.clock.tick(59)
    await resolve(harness, made.text)
    assert await used() == [first, first]
    harness.clock.tick(1)
    await resolve(harness, made.text)
    assert await used() == [harness.clock.now(), first]
    assert statements["credential_used"] == 3, "two of the key, one of the web session"


async def test_one_tenant_finds_no_credential_of_another(harness: AppHarness) -> None:
    made, cookie = await new_key(harness), await signed_in(harness)
    await person(harness, workspace="umbrella")
    async with harness.app.database.transaction(harness.workspace("umbrella").tenant_id) as tx:
        assert await tx.api_keys.find(keys.digest(made.text)) is None
        assert await tx.web_sessions.find(keys.digest(cookie)) is None
        assert await tx.api_keys.of(None) == []
        assert await tx.api_keys.revoke([made.entry.id], harness.clock.now()) == 0
    service = await asyncpg.connect(service_url(harness.app.settings.database_url))
    try:
        for table in ("api_keys", "web_sessions", "one_time_codes"):
            async with service.transaction():
                await service.execute(f"SET LOCAL nexus.tenant = '{tenant_id('umbrella')}'")
                assert await service.fetchval(f"SELECT count(*) FROM {table}") == 0
    finally:
        await service.close()
    assert await resolve(harness, made.text) is not None


# --- making and ending -----------------------------------------------------------------------------------------------


async def test_a_key_that_is_revoked_ends_at_the_next_request(harness: AppHarness) -> None:
    made, other = await new_key(harness), await new_key(harness, "bob")
    at, alice = harness.workspace(), await person(harness)
    now = harness.clock.tick()
    async with harness.app.database.transaction(at.tenant_id) as tx:
        for wrong in (other.entry.id.hex, "00000000"):
            with pytest.raises(NotFound, match="There is no key, web session or login"):
                await revoke(tx, wrong, [alice.id], now, by=alice.id)
        for wrong in ("", "zzzzzzzz", made.entry.id.hex[:7], "0" * 33):
            with pytest.raises(BadInput, match="An id has 8 to 32"):
                await revoke(tx, wrong, [alice.id], now, by=alice.id)
        assert (await revoke(tx, str(made.entry.id)[:12], [alice.id], now, by=alice.id)).id == made.entry.id
        with pytest.raises(NotFound):
            await revoke(tx, made.entry.id.hex, [alice.id], now, by=alice.id)
    assert await resolve(harness, made.text) is None
    assert await resolve(harness, other.text) is not None
    assert (await acts(harness))[-1] == AuditAct.KEY_REVOKED


async def test_a_web_session_ends_at_the_next_request(harness: AppHarness) -> None:
    cookie, alice = await signed_in(harness), await person(harness)
    found = await resolve(harness, None, cookie)
    assert found is not None
    harness.clock.tick()
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await revoke(tx, found.id.hex, [alice.id], harness.clock.now(), by=alice.id)
    assert await resolve(harness, None, cookie) is None
    assert await acts(harness) == [AuditAct.LOGIN_LINK, AuditAct.SIGNED_IN, AuditAct.SIGNED_OUT]


async def test_a_person_has_a_limited_number_of_keys_that_are_valid(harness: AppHarness) -> None:
    made = [await new_key(harness) for _ in range(50)]
    with pytest.raises(Refused, match="revoke one first"):
        await new_key(harness)
    async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
        await tx.api_keys.revoke([made[0].entry.id], harness.clock.now())
    await new_key(harness)


@pytest.mark.parametrize("vendor", ["nexus", "Claude", "claude code", "", "*", "a" * 33, "\u0441laude", "extracted"])
async def test_a_tool_has_a_plain_name_that_is_not_the_bots(harness: AppHarness, vendor: str) -> None:
    with pytest.raises(BadInput, match="no name of a tool"):
        await new_key(harness, vendor=vendor)


async def test_a_key_expires_at_a_time_to_come(harness: AppHarness) -> None:
    await person(harness)
    for wrong in (timedelta(), timedelta(days=-1), timedelta(days=4_000)):
        with pytest.raises(BadInput, match="expires at a time to come"):
            await new_key(harness, expires_at=harness.clock.now() + wrong)


async def test_a_login_link_works_once_and_for_five_minutes(harness: AppHarness) -> None:
    at, alice = harness.workspace(), await person(harness)

    async def link() -> str:
        now = harness.clock.now()
        async with harness.app.database.transaction(at.tenant_id) as tx:
            return await sign_in.make_login_link(tx, at.tenant, alice.id, secrets.token_bytes(32), now, by=None)

    code = await link()
    _, cookie = await redeem(harness, code)
    assert await resolve(harness, None, cookie) is not None
    refused = [code, code[:-1], f"nxl_umbrella_{code[-64:]}", "", cookie, "\ud800"]
    late = await link()
    harness.clock.tick(301)
    refused.append(late)
    replaced = await link()
    latest = await link()
    refused.append(replaced)
    for text in refused:
        with pytest.raises(NotFound, match="This link was used already"):
            await redeem(harness, text)
    harness.clock.tick(299)
    await redeem(harness, latest)


async def test_erasing_people_deletes_all_that_opens_their_memory(harness: AppHarness) -> None:
    made, cookie, bobs = await new_key(harness), await signed_in(harness), await new_key(harness, "bob")
    at, alice = harness.workspace(), await person(harness)
    now = harness.clock.now()
    async with harness.app.database.transaction(at.tenant_id) as tx:
        code = await sign_in.make_login_link(tx, at.tenant, alice.id, secrets.token_bytes(32), now, by=None)
    async with harness.app.database.transaction(at.tenant_id, "alone") as tx:
        assert await delete_credentials(tx, [alice.id]) == {"key": 1, "web session": 1, "login": 0, "webhook": 0}
    assert await resolve(harness, made.text) is None
    assert await resolve(harness, None, cookie) is None
    with pytest.raises(NotFound):
        await redeem(harness, code)
    assert await resolve(harness, bobs.text) is not None


async def test_each_look_up_uses_an_index(harness: AppHarness) -> None:
    at, values = harness.workspace(), {"digest": b"", "now": harness.clock.now()}
    values |= {
        "purpose": "login",
        "platform": "",
        "workspace": "",
        "client": "",
        "external_ids": [],
        "tenant_id": at.tenant_id,
    }
    async with harness.app.database.transaction(at.tenant_id) as tx:
        for name in (
            "api_key_find",
            "web_session_find",
            "one_time_code_redeem",
            "one_time_code_find",
            "identities_find",
        ):
            query = queries()[name]
            bound = query.bind({parameter: values[parameter] for parameter in query.parameters})
            plan = "\n".join(row[0] for row in await connection_of(tx).fetch(f"EXPLAIN {query.sql}", *bound))
            assert "Seq Scan" not in plan, plan
            assert "digest = " in plan or name == "identities_find", plan


async def test_a_credential_is_looked_up_by_one_statement_that_leaves_no_tenant_behind(harness: AppHarness) -> None:
    made, at, alice = await new_key(harness), harness.workspace(), await person(harness)
    cookie = await signed_in(harness)
    async with harness.app.database.statement(at.tenant_id) as tx:
        assert await tx.api_keys.of([alice.id]) == [], "a statement that sets no tenant sees none"
        found = await tx.api_keys.find(keys.digest(made.text))
        assert found is not None
        assert found.id == made.entry.id
        session = await tx.web_sessions.find(keys.digest(cookie))
        assert session is not None
        assert session.holder.user_id == alice.id
        assert await tx.api_keys.of([alice.id]) == [], "nor does the next one on its connection"
    async with harness.app.database.statement(tenant_id("another")) as tx:
        assert await tx.api_keys.find(keys.digest(made.text)) is None
        assert await tx.web_sessions.find(keys.digest(cookie)) is None


# docs/api.md: nothing opens the memory of who is disabled. Keys of the settings did.
async def test_keys_of_the_settings_open_nothing_of_who_is_disabled(settings: Settings) -> None:
    given = {"owner": "acme/alice", "owner_key": SecretStr(OWNER_KEY), "tool_keys": {"claude": SecretStr(CLAUDE_KEY)}}
    async with open_harness(settings.model_copy(update=given)) as harness:
        alice, root = await person(harness), await person(harness, "root")
        async with harness.app.database.transaction(harness.workspace().tenant_id) as tx:
            await tx.people.set_admin(root.id, True)
        assert await resolve(harness, OWNER_KEY) is not None
        for wanted in (True, False):
            async with harness.app.database.transaction(harness.workspace().tenant_id, "alone") as tx:
                await set_disabled(tx, root.id, alice.id, wanted, harness.clock.now())
            found = [await resolve(harness, each) is None for each in (OWNER_KEY, CLAUDE_KEY)]
            assert found == [wanted, wanted]
