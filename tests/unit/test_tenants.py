"""Tenants: which one a workspace belongs to, and which settings it has."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composer.ingest.tenants import TenantDirectory
from composer.model import tenant_id
from composer.settings import RetrievalSettings, Settings, TenantSettings


def settings(**tenants: TenantSettings) -> Settings:
    return Settings(home=Path("/nowhere"), tenants=tenants)


def slug(directory: TenantDirectory, platform: str, name: str) -> str:
    workspace = directory.workspace(platform, name)
    assert workspace.tenant_id == tenant_id(workspace.tenant)
    return workspace.tenant


def test_the_settings_of_a_tenant_are_found_before_its_first_workspace_is_used() -> None:
    chosen = RetrievalSettings(strategy="recent", top_k=3, recall_tokens=500)
    directory = TenantDirectory(settings(acme=TenantSettings(workspaces=("T1",), retrieval=chosen)))
    found = directory.retrieval(tenant_id("acme"))
    assert (found.strategy, found.top_k, found.recall_tokens) == ("recent", 3, 500)
    assert directory.retrieval(tenant_id("other")).top_k == RetrievalSettings().top_k


@pytest.mark.parametrize("platform", ["console", "discord", "slack"])
def test_a_workspace_named_like_a_tenant_that_does_not_list_it_gets_a_tenant_of_its_own(platform: str) -> None:
    directory = TenantDirectory(settings(acme=TenantSettings(workspaces=("T1",))))
    assert slug(directory, platform, "acme") == f"{platform}:acme"
    assert slug(directory, platform, "T1") == "acme"


def test_an_empty_list_of_workspaces_has_none_and_a_missing_list_has_the_one_named_like_the_tenant() -> None:
    directory = TenantDirectory(settings(none=TenantSettings(workspaces=()), acme=TenantSettings(keep_days=3)))
    assert slug(directory, "console", "none") == "console:none"
    assert slug(directory, "console", "acme") == "acme"


def test_a_workspace_can_be_listed_with_its_platform() -> None:
    tenants = {"acme": TenantSettings(workspaces=("slack:T1", "discord:99", "console:local"))}
    tenants["other"] = TenantSettings(workspaces=("T1",))
    directory = TenantDirectory(settings(**tenants))
    assert slug(directory, "slack", "T1") == "acme"
    assert slug(directory, "discord", "99") == "acme"
    assert slug(directory, "console", "local") == "acme"
    assert slug(directory, "discord", "T1") == "other"
    assert slug(directory, "slack", "99") == "slack:99"
    assert slug(directory, "console", "slack:T1") == "console:slack:T1", "the name of another platform's workspace"


def test_unlisted_workspaces_of_two_platforms_with_one_name_are_two_tenants() -> None:
    directory = TenantDirectory(settings())
    own = {slug(directory, platform, "acme") for platform in ("console", "discord", "slack")}
    assert own == {"acme", "discord:acme", "slack:acme"}


def test_a_stored_workspace_keeps_its_tenant_unless_the_settings_of_that_tenant_leave_it_out() -> None:
    stored = [("T1", "slack", "T1"), ("99", "discord", "99"), ("acme", "slack", "acme")]
    directory = TenantDirectory(settings(acme=TenantSettings(workspaces=("T2",))), stored)
    assert slug(directory, "slack", "T1") == "T1"
    assert slug(directory, "discord", "99") == "99"
    assert slug(directory, "slack", "acme") == "slack:acme"
    assert slug(directory, "slack", "99") == "slack:99"
    assert slug(directory, "console", "99") == "console:99", "the plain name is another platform's tenant"


def test_a_terminal_workspace_with_a_colon_that_an_older_nexus_stored_keeps_its_tenant() -> None:
    directory = TenantDirectory(settings(), [("a:b", "console", "a:b"), ("slack:T9", "console", "slack:T9")])
    assert slug(directory, "console", "a:b") == "a:b"
    assert slug(directory, "console", "slack:T9") == "slack:T9"
    assert slug(directory, "console", "c:d") == "console:c:d"


def test_a_slack_workspace_never_gets_the_tenant_of_a_terminal_workspace_with_its_name() -> None:
    stored = [("slack:T9", "console", "slack:T9")]
    first = slug(TenantDirectory(settings(), stored), "slack", "T9")
    assert first == "slack:slack:T9"
    after_restart = TenantDirectory(settings(), [*stored, (first, "slack", "T9")])
    assert slug(after_restart, "slack", "T9") == first
    assert slug(after_restart, "console", "slack:T9") == "slack:T9"


async def test_stored_workspaces_are_read_at_startup() -> None:
    rows = {tenant_id("T1"): ("T1", [("slack", "T1")]), tenant_id("slack:T2"): ("slack:T2", [("slack", "T2")])}
    read: list[uuid.UUID] = []

    class StoredWorkspaces:
        async def tenants(self) -> list[tuple[uuid.UUID, str]]:
            return [(id, slug) for id, (slug, _) in rows.items()]

        @asynccontextmanager
        async def transaction(self, tenant: uuid.UUID, mode: str) -> AsyncIterator[Any]:
            async def workspaces() -> list[tuple[str, str]]:
                read.append(tenant)
                return rows[tenant][1]

            async def chosen() -> dict[str, str]:
                return {}

            yield SimpleNamespace(people=SimpleNamespace(workspaces=workspaces), settings=SimpleNamespace(all=chosen))

    stored: Any = StoredWorkspaces()
    directory = await TenantDirectory.load(settings(), stored)
    assert slug(directory, "slack", "T1") == "T1"
    assert slug(directory, "slack", "T2") == "slack:T2"
    assert read == [tenant_id("T1"), tenant_id("slack:T2")]


def test_the_listed_workspaces_of_a_platform_are_those_with_its_prefix_or_without_one() -> None:
    tenants = {"b": TenantSettings(workspaces=("discord:7", "slack:T1")), "a": TenantSettings(workspaces=("5", "T2"))}
    listed = settings(**tenants).listed_workspaces("discord")
    assert [name for name in listed if name.isdigit()] == ["7", "5"]
