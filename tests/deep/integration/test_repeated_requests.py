"""A request that is sent again takes effect once, however late."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from composer.settings import Settings
from tests.support.api import bearer, key_of
from tests.support.harness import AppHarness, open_harness


async def did(
    client: httpx2.AsyncClient, method: str, path: str, headers: dict[str, str], **body: Any
) -> httpx2.Response:
    return await client.request(method, path, json=body or None, headers=headers)


@pytest.fixture
async def harness(settings: Settings) -> AsyncIterator[AppHarness]:
    async with open_harness(settings.model_copy(update={"requests_per_minute": 10_000})) as harness:
        yield harness


# docs/api.md: a request with an Idempotency-Key takes effect once in a day. One that ends what a former member shares,
# and came again late, ended what they had shared once more since.
async def test_what_ends_a_share_and_is_sent_again_late_ends_nothing_more(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    async def did(method: str, path: str, headers: dict[str, str], **body: Any) -> httpx2.Response:
        return await client.request(method, path, json=body or None, headers=headers)

    alice, bob = bearer(await key_of(harness, "alice")), bearer(await key_of(harness, "bob"))
    of_bob = (await did("GET", "/v1/whoami", bob)).json()["user"]
    team = f"/v1/teams/{(id := (await did('POST', '/v1/teams', alice, name='Ops')).json()['id'])}"
    entry = (await did("POST", "/v1/entries", bob, content="zqshared")).json()["id"]

    async def shares_and_leaves() -> None:
        assert (await did("POST", f"{team}/invites", alice, user=of_bob)).status_code == 201
        assert (await did("POST", f"{team}/accept", bob)).status_code == 204
        assert (await did("PUT", f"/v1/entries/{entry}/team", bob, team=id)).is_success
        assert (await did("POST", f"{team}/leave", bob)).status_code == 204

    await shares_and_leaves()
    once = alice | {"Idempotency-Key": "one"}
    assert (await did("DELETE", f"{team}/entries/{entry}", once)).status_code == 200
    await shares_and_leaves()
    assert (await did("DELETE", f"{team}/entries/{entry}", once)).status_code == 409
    assert (await did("GET", f"/v1/entries/{entry}", alice)).status_code == 200, "it is shared again"


# docs/api.md: a request with an Idempotency-Key takes effect once in a day. Changes of names, roles, settings and
# memberships took effect each time, and so did forgetting a session: one that came late undid what came after it.
async def test_a_change_of_who_is_in_something_that_is_sent_again_late_undoes_nothing(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice, bob = bearer(await key_of(harness, "alice")), bearer(await key_of(harness, "bob"))
    of_bob = (await did(client, "GET", "/v1/whoami", bob)).json()["user"]
    team = f"/v1/teams/{(await did(client, 'POST', '/v1/teams', alice, name='Ops')).json()['id']}"
    project = f"/v1/projects/{(await did(client, 'POST', '/v1/projects', alice, name='apollo')).json()['id']}"

    async def joins() -> None:
        assert (await did(client, "POST", f"{team}/invites", alice, user=of_bob)).status_code == 201
        assert (await did(client, "POST", f"{team}/accept", bob)).status_code == 204

    async def state() -> list[Any]:
        found = [
            await did(client, "GET", f"{path}{more}", alice) for path in (team, project) for more in ("", "/members")
        ]
        settings = await did(client, "GET", "/v1/settings", alice)
        return [each.json() for each in (*found, settings)]

    await joins()
    assert (await did(client, "PUT", f"{project}/members/{of_bob}", alice, role="write")).status_code == 202
    assert (await did(client, "POST", f"{project}/accept", bob)).status_code == 204
    role, member = f"{team}/members/{of_bob}", f"{project}/members/{of_bob}"
    # Whose, what, how it is undone, and by whom.
    steps: list[
        tuple[dict[str, str], str, str, dict[str, Any], list[tuple[dict[str, str], str, str, dict[str, Any]]]]
    ] = [
        (alice, "PATCH", team, {"name": "Dev"}, [(alice, "PATCH", team, {"name": "Sec"})]),
        (alice, "PATCH", role, {"role": "admin"}, [(alice, "PATCH", role, {"role": "member"})]),
        (alice, "DELETE", role, {}, []),
        (bob, "POST", f"{team}/leave", {}, []),
        (alice, "PATCH", project, {"name": "zeus"}, [(alice, "PATCH", project, {"name": "hera"})]),
        (alice, "PUT", member, {"role": "admin"}, [(alice, "PUT", member, {"role": "write"})]),
        (
            alice,
            "DELETE",
            member,
            {},
            [(alice, "PUT", member, {"role": "read"}), (bob, "POST", f"{project}/accept", {})],
        ),
        (alice, "PATCH", "/v1/settings", {"trash_days": 3}, [(alice, "PATCH", "/v1/settings", {"trash_days": 5})]),
    ]
    for n, (who, method, path, body, undoing) in enumerate(steps):
        once = who | {"Idempotency-Key": str(n)}
        first = await did(client, method, path, once, **body)
        assert first.is_success, first.text
        if undoing:
            for other, another, there, with_body in undoing:
                assert (await did(client, another, there, other, **with_body)).is_success
        else:
            await joins()
        before = await state()
        again = await did(client, method, path, once, **body)
        assert again.status_code == first.status_code, again.text
        assert await state() == before, (method, path)
        assert first.status_code == 204 or again.headers["idempotency-replayed"] == "true"


async def test_a_session_that_is_forgotten_again_by_a_repeat_keeps_what_was_said_since(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice = bearer(await key_of(harness, "alice"))
    once, path = alice | {"Idempotency-Key": "one"}, "/v1/chat/session/default"
    assert (await did(client, "POST", "/v1/chat", alice, content="zqfirst")).is_success
    first = await did(client, "DELETE", path, once)
    assert (await did(client, "POST", "/v1/chat", alice, content="zqsecond")).is_success
    again = await did(client, "DELETE", path, once)
    assert (again.status_code, again.json()) == (200, first.json()), "it has the receipt of what it forgot"
    said = (await did(client, "GET", "/v1/episodes", alice)).json()["items"]
    assert [each["content"] for each in said] == ["zqsecond"]


# docs/api.md: what a request is answered with that is sent again. Whoever missed the first answer was told that nothing
# had been there, or that there is no such entry.
async def test_who_missed_the_answer_to_forgetting_gets_its_receipt_by_asking_again(
    harness: AppHarness, client: httpx2.AsyncClient
) -> None:
    alice = bearer(await key_of(harness, "alice"))
    ids = [(await did(client, "POST", "/v1/entries", alice, content=f"zq{n}")).json()["id"] for n in range(2)]
    for n, (path, body) in enumerate(((f"/v1/entries/{ids[0]}/forget", {}), ("/v1/entries/forget", {"confirm": 1}))):
        answers = [await did(client, "POST", path, alice | {"Idempotency-Key": str(n)}, **body) for _ in range(2)]
        assert [each.status_code for each in answers] == [200, 200]
        assert answers[0].json() == answers[1].json()
        assert answers[0].json()["counts"] == {"memory": 1}
