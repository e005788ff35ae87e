"""The gateway's addresses by every kind of viewer."""

import secrets
from datetime import timedelta

import httpx2

from composer.people.credentials.issuing import KeyRequest, create_key
from composer.settings import Settings
from tests.support.api import bearer, cookie_of, key_of, person
from tests.support.gateway import ROUTES, GatewayStage, gateway_stage


async def _ask(stage: GatewayStage, route: tuple[str, str], headers: dict[str, str]) -> httpx2.Response:
    method, path = route
    async with httpx2.AsyncClient(timeout=60) as client:
        url = stage.url + path.replace("{name:path}", "gpt-4o")
        return await client.request(method, url, json=ROUTES[route], headers=headers)


async def _ended_keys(stage: GatewayStage) -> list[str]:
    """A key of a tool that was revoked, and one that has expired."""
    here, found = stage.harness.workspace(), await person(stage.harness, "alice")
    now, texts = stage.harness.clock.now(), []
    async with stage.harness.app.database.transaction(here.tenant_id) as tx:
        for name in ("revoked", "expired"):
            request = KeyRequest("cursor", name, None, now + timedelta(hours=1))
            made = await create_key(tx, here.tenant, found, request, secrets.token_bytes(32), now, by=found.id)
            texts.append(made.text)
            if name == "revoked":
                await tx.api_keys.revoke([made.entry.id], now, found.id)
    stage.harness.clock.tick(7_200)
    return texts


async def test_who_brings_no_valid_credential_gets_one_and_the_same_answer(settings: Settings) -> None:
    async with gateway_stage(settings) as stage:
        cookie = await cookie_of(stage.harness, "alice")
        viewers = [{}, bearer("nx_acme_" + "0" * 64), bearer("sk-1"), {"Cookie": f"nexus={cookie}"}]
        viewers += [bearer(text) for text in await _ended_keys(stage)]
        viewers += [{"api-key": await key_of(stage.harness, "alice", "cursor")}]
        answers = set()
        for route in ROUTES:
            for viewer in viewers if route[0] == "POST" else [v for v in viewers if "Cookie" not in v]:
                answer = await _ask(stage, route, viewer)
                assert answer.status_code == 401, (route, viewer)
                answers.add(answer.content)
        assert len(answers) == 1
        assert stage.upstream.requests == []


async def test_people_and_tools_use_it_by_the_permission_and_nobody_else(settings: Settings) -> None:
    async with gateway_stage(settings) as stage:
        for vendor in (None, "cursor"):
            whole = bearer(await key_of(stage.harness, "alice", vendor))
            permissions = sorted({"entries:read", "entries:write", "teams:read", "projects:read"})
            before = bearer(await key_of(stage.harness, "alice", vendor, permissions))
            alone = bearer(await key_of(stage.harness, "alice", vendor, ["gateway"]))
            for route in ROUTES:
                assert (await _ask(stage, route, whole)).status_code == 200, route
                assert (await _ask(stage, route, alone)).status_code == 200, route
                refused = await _ask(stage, route, before)
                assert (refused.status_code, refused.json()["error"]["code"]) == (403, "permission_denied")
