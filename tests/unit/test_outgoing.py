"""Requests to addresses that people name go to addresses of the public internet, which were checked, by https."""

from collections.abc import Sequence

import httpx2
import pytest

from bot.web.outgoing import NotPublic, OutgoingRequests

PUBLIC = "93.184.215.14"


class Asked(httpx2.AsyncBaseTransport):
    """Notes where requests go."""

    def __init__(self) -> None:
        self.to: list[tuple[str, str]] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.to.append((str(request.url), request.headers["host"]))
        return httpx2.Response(204)


async def asked_for(url: str, *addresses: str, hosts: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Where a request to an address goes, whose host leads to these addresses."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        return addresses

    transport = Asked()
    async with OutgoingRequests(1.0, resolve, transport, hosts).stream("POST", url, {}, b"{}") as answer:
        assert answer.status_code == 204
    return transport.to


async def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    asked = await asked_for("https://hook.example/x?y=1", PUBLIC)
    assert asked == [(f"https://{PUBLIC}/x?y=1", "hook.example")]


@pytest.mark.parametrize(
    "addresses",
    [
        (),
        ("127.0.0.1",),
        (PUBLIC, "10.0.0.1"),
        ("::1",),
        ("::ffff:127.0.0.1",),
        ("::127.0.0.1",),
        ("64:ff9b::7f00:1",),
        ("2002:7f00:1::",),
        ("fe80::1%eth0",),
        ("fd00::1",),
        ("169.254.169.254",),
        ("100.64.0.1",),
        ("0.0.0.0",),
        ("255.255.255.255",),
        ("224.0.0.1",),
    ],
)
async def test_nothing_is_asked_for_where_a_name_leads_to_an_address_that_is_not_public(
    addresses: Sequence[str],
) -> None:
    with pytest.raises(NotPublic):
        await asked_for("https://hook.example/x", *addresses)


async def test_only_to_a_named_host_it_goes_without_https_and_to_any_address() -> None:
    with pytest.raises(NotPublic):
        await asked_for("http://hook.example/x", PUBLIC)
    with pytest.raises(NotPublic):
        await asked_for("http://hook.example/x", PUBLIC, hosts=["n8n"])
    assert await asked_for("http://n8n:5678/x", "10.0.0.7", hosts=["n8n"]) == [("http://10.0.0.7:5678/x", "n8n:5678")]


async def test_a_name_that_there_is_not_is_told_like_one_that_is_not_public() -> None:
    async def unknown(host: str, port: int) -> Sequence[str]:
        raise OSError("Name or service not known")

    with pytest.raises(NotPublic):
        async with OutgoingRequests(1.0, unknown, Asked()).stream("POST", "https://hook.internal/x", {}, b"{}"):
            pass
