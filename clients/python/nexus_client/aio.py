"""The asynchronous client. `sync.py` is made from this file (build_client.py)."""

import asyncio
import json
import random
import uuid
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Any, Final, Self, cast
from urllib.parse import quote

import httpx2

from nexus_client.errors import error_of
from nexus_client.types import Entry, Snippet, WrittenEntry

RETRIED: Final = frozenset({429, 502, 503, 504})
MAX_WAIT_SECONDS: Final = 60.0


class AsyncNexus:
    """The API of one Nexus, with one key: of a person, or of an AI tool of theirs (then `agent_…` and the like alone).

    What fails for a moment is tried again, at most `retries` times: reads, and writes, which carry an idempotency key.
    Raises NexusError (nexus_client.errors). Use it as a context manager, or `close` it.
    """

    def __init__(self, url: str, key: str, *, timeout: float = 30.0, retries: int = 3) -> None:
        headers = {"Authorization": f"Bearer {key}", "Accept": "application/json"}
        self._http = httpx2.AsyncClient(base_url=url.rstrip("/"), headers=headers, timeout=timeout)
        self._retries = retries

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        params: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        idempotency_key: str | None = None,
        content: bytes | None = None,
    ) -> Any:
        """Any request: its JSON, or None where there is none. All but a GET get an idempotency key of their own.
        `content` is sent as it is, in place of a `body` of JSON."""
        sent = dict(headers or {})
        if method != "GET":
            sent["Idempotency-Key"] = idempotency_key or uuid.uuid4().hex
        given = {name: value for name, value in (params or {}).items() if value is not None}
        for attempt in range(self._retries + 1):
            try:
                answer = await self._http.request(method, path, json=body, content=content, params=given, headers=sent)
            except httpx2.TransportError as error:
                failure = error_of(0, f"Nexus does not answer: {error}")
            else:
                if answer.is_success:
                    return answer.json() if answer.content else None
                failure = _failure(answer)
                if answer.status_code not in RETRIED:
                    raise failure
            if attempt < self._retries:
                pause = (
                    failure.retry_after if failure.retry_after is not None else 0.2 * 2**attempt * (1 + random.random())
                )
                if pause <= MAX_WAIT_SECONDS:
                    await asyncio.sleep(pause)
                    continue
            raise failure
        raise AssertionError

    # --- a person's entries ---------------------------------------------------------------------------------------

    async def write(self, content: str, **values: Any) -> WrittenEntry:
        """POST /v1/entries: title, kind, key, tags, metadata, session, allowed_vendors, expires_at, project."""
        return cast(WrittenEntry, await self.request("POST", "/v1/entries", body={"content": content, **values}))

    async def entries(self, **filters: Any) -> AsyncIterator[Entry]:
        """GET /v1/entries: all that fit, page by page. Filters: kind, tag, vendor, session, q, trashed, expired, team,
        project, since, before; `sort` is their order (`-created`), and `limit` the size of a page."""
        async for item in self._pages("/v1/entries", filters):
            yield cast(Entry, item)

    async def entry(self, id: str, *, project: str | None = None) -> Entry:
        """GET /v1/entries/{id}. `project`, here and below: the isolated project that it is in."""
        return cast(Entry, await self.request("GET", f"/v1/entries/{_part(id)}", params={"project": project}))

    async def versions(self, id: str, *, project: str | None = None) -> list[dict[str, Any]]:
        """GET /v1/entries/{id}/versions: who changed what when, the latest first."""
        path = f"/v1/entries/{_part(id)}/versions"
        found = await self.request("GET", path, params={"project": project})
        return cast(list[dict[str, Any]], found["items"])

    async def change(self, id: str, *, version: int | None = None, project: str | None = None, **values: Any) -> Entry:
        """PATCH /v1/entries/{id}: of this `version` alone, if it is given."""
        path, params = f"/v1/entries/{_part(id)}", {"project": project}
        return cast(Entry, await self.request("PATCH", path, body=values, params=params, headers=_match(version)))

    async def trash(self, id: str, *, version: int | None = None, project: str | None = None) -> None:
        """DELETE /v1/entries/{id}"""
        path, params = f"/v1/entries/{_part(id)}", {"project": project}
        await self.request("DELETE", path, params=params, headers=_match(version))

    async def restore(self, id: str, *, project: str | None = None) -> Entry:
        """POST /v1/entries/{id}/restore"""
        path, params = f"/v1/entries/{_part(id)}/restore", {"project": project}
        return cast(Entry, await self.request("POST", path, params=params))

    async def share(self, id: str, team: str) -> Entry:
        """PUT /v1/entries/{id}/team"""
        return cast(Entry, await self.request("PUT", f"/v1/entries/{_part(id)}/team", body={"team": team}))

    async def unshare(self, id: str) -> Entry:
        """DELETE /v1/entries/{id}/team"""
        return cast(Entry, await self.request("DELETE", f"/v1/entries/{_part(id)}/team"))

    async def forget(self, id: str, *, project: str | None = None) -> dict[str, Any]:
        """POST /v1/entries/{id}/forget: for good; the receipt."""
        path, params = f"/v1/entries/{_part(id)}/forget", {"project": project}
        return cast(dict[str, Any], await self.request("POST", path, params=params))

    async def forget_entries(self, **which: Any) -> dict[str, Any]:
        """POST /v1/entries/forget: kind, tag, vendor, project, older_than, trashed; Conflict says what to
        `confirm`."""
        return cast(dict[str, Any], await self.request("POST", "/v1/entries/forget", body=which))

    async def change_entries(self, ids: Sequence[str], act: str, *, team: str | None = None) -> list[dict[str, Any]]:
        """POST /v1/entries/bulk: trash, restore, share or unshare many; what became of each."""
        body = {"ids": list(ids), "act": act} | ({} if team is None else {"team": team})
        found = await self.request("POST", "/v1/entries/bulk", body=body)
        return cast(list[dict[str, Any]], found["items"])

    async def pending(self, *, project: str | None = None) -> list[dict[str, Any]]:
        """GET /v1/entries/pending"""
        found = await self.request("GET", "/v1/entries/pending", params={"project": project})
        return cast(list[dict[str, Any]], found["items"])

    async def approve(self, id: str, *, project: str | None = None) -> None:
        """POST /v1/entries/pending/{id}/approve"""
        path, params = f"/v1/entries/pending/{_part(id)}/approve", {"project": project}
        await self.request("POST", path, params=params)

    async def reject(self, id: str, *, project: str | None = None) -> None:
        """POST /v1/entries/pending/{id}/reject"""
        path, params = f"/v1/entries/pending/{_part(id)}/reject", {"project": project}
        await self.request("POST", path, params=params)

    async def export_entries(self, project: str | None = None) -> dict[str, Any]:
        """GET /v1/entries/export: all of one's own as one document, which `import_entries` takes."""
        return cast(dict[str, Any], await self.request("GET", "/v1/entries/export", params={"project": project}))

    async def import_entries(self, document: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        """POST /v1/entries/import: all of a document, or nothing; what became of each entry, by its `items`."""
        params = {"dry_run": "true"} if dry_run else None
        return cast(dict[str, Any], await self.request("POST", "/v1/entries/import", body=document, params=params))

    async def export(self) -> dict[str, Any]:
        """GET /v1/export: all that is stored of the person."""
        return cast(dict[str, Any], await self.request("GET", "/v1/export"))

    # --- all that is remembered of a person -----------------------------------------------------------------------

    async def memory(self, **filters: Any) -> AsyncIterator[dict[str, Any]]:
        """GET /v1/memory: all that fits, page by page. Filters: shelf, tool, author, tag, place, project, q, since,
        before; sort: newest, oldest or changed."""
        async for item in self._pages("/v1/memory", filters):
            yield item

    async def memory_item(self, id: str) -> dict[str, Any]:
        """GET /v1/memory/{id}: with who can be answered from it, where it came from, what used it, and which tools read
        it."""
        return cast(dict[str, Any], await self.request("GET", f"/v1/memory/{_part(id)}"))

    async def memory_labels(self) -> dict[str, Any]:
        """GET /v1/memory/labels: what a list can be narrowed down to, with counts."""
        return cast(dict[str, Any], await self.request("GET", "/v1/memory/labels"))

    async def memory_days(self, *, zone: str | None = None, **filters: Any) -> list[dict[str, Any]]:
        """GET /v1/memory/days: how much was learnt on each day of a time zone."""
        found = await self.request("GET", "/v1/memory/days", params={**filters, "zone": zone})
        return cast(list[dict[str, Any]], found["items"])

    async def memory_map(self, **filters: Any) -> list[dict[str, Any]]:
        """GET /v1/memory/map: the latest in two dimensions, by what they mean."""
        return cast(list[dict[str, Any]], (await self.request("GET", "/v1/memory/map", params=filters))["items"])

    # --- a tool's -------------------------------------------------------------------------------------------------

    async def agent_write(self, content: str, **values: Any) -> WrittenEntry:
        """POST /v1/agent/entries"""
        return cast(WrittenEntry, await self.request("POST", "/v1/agent/entries", body={"content": content, **values}))

    async def agent_entries(self, **filters: Any) -> AsyncIterator[Snippet]:
        """GET /v1/agent/entries: as `entries`, with the beginning of each text."""
        async for item in self._pages("/v1/agent/entries", filters):
            yield cast(Snippet, item)

    async def agent_entry(self, id: str, *, project: str | None = None) -> Entry:
        """GET /v1/agent/entries/{id}"""
        return cast(Entry, await self.request("GET", f"/v1/agent/entries/{_part(id)}", params={"project": project}))

    async def agent_latest(self, **filters: Any) -> Entry:
        """GET /v1/agent/entries/latest"""
        return cast(Entry, await self.request("GET", "/v1/agent/entries/latest", params=filters))

    async def agent_by_tag(self, tag: str, **filters: Any) -> AsyncIterator[Snippet]:
        """GET /v1/agent/entries/by-tag/{name}"""
        async for item in self._pages(f"/v1/agent/entries/by-tag/{_part(tag)}", filters):
            yield cast(Snippet, item)

    async def agent_team_entries(self, team: str, **filters: Any) -> AsyncIterator[Snippet]:
        """GET /v1/agent/team/{id}/entries"""
        async for item in self._pages(f"/v1/agent/team/{_part(team)}/entries", filters):
            yield cast(Snippet, item)

    async def agent_teams(self) -> list[dict[str, Any]]:
        """GET /v1/agent/teams"""
        return await self._items("/v1/agent/teams")

    async def agent_projects(self) -> list[dict[str, Any]]:
        """GET /v1/agent/projects"""
        return await self._items("/v1/agent/projects")

    async def agent_forget(self, id: str) -> dict[str, Any]:
        """POST /v1/agent/entries/{id}/forget"""
        return cast(dict[str, Any], await self.request("POST", f"/v1/agent/entries/{_part(id)}/forget"))

    async def agent_forget_entries(self, **which: Any) -> dict[str, Any]:
        """POST /v1/agent/forget: kind, older_than."""
        return cast(dict[str, Any], await self.request("POST", "/v1/agent/forget", body=which))

    # --- teams ----------------------------------------------------------------------------------------------------

    async def teams(self) -> list[dict[str, Any]]:
        """GET /v1/teams"""
        return await self._items("/v1/teams")

    async def create_team(self, name: str) -> str:
        """POST /v1/teams: the new team's id."""
        return str((await self.request("POST", "/v1/teams", body={"name": name}))["id"])

    async def team(self, id: str) -> dict[str, Any]:
        """GET /v1/teams/{id}"""
        return cast(dict[str, Any], await self.request("GET", f"/v1/teams/{_part(id)}"))

    async def rename_team(self, id: str, name: str) -> dict[str, Any]:
        """PATCH /v1/teams/{id}"""
        return cast(dict[str, Any], await self.request("PATCH", f"/v1/teams/{_part(id)}", body={"name": name}))

    async def delete_team(self, id: str) -> None:
        """DELETE /v1/teams/{id}"""
        await self.request("DELETE", f"/v1/teams/{_part(id)}")

    async def team_members(self, team: str) -> list[dict[str, Any]]:
        """GET /v1/teams/{id}/members"""
        return await self._items(f"/v1/teams/{_part(team)}/members")

    async def set_team_role(self, team: str, user: str, role: str) -> None:
        """PATCH /v1/teams/{id}/members/{user}"""
        await self.request("PATCH", f"/v1/teams/{_part(team)}/members/{_part(user)}", body={"role": role})

    async def remove_from_team(self, team: str, user: str) -> None:
        """DELETE /v1/teams/{id}/members/{user}"""
        await self.request("DELETE", f"/v1/teams/{_part(team)}/members/{_part(user)}")

    async def leave_team(self, team: str) -> None:
        """POST /v1/teams/{id}/leave"""
        await self.request("POST", f"/v1/teams/{_part(team)}/leave")

    async def unshare_of_former(self, team: str, entry: str) -> Entry:
        """DELETE /v1/teams/{id}/entries/{entry}"""
        return cast(Entry, await self.request("DELETE", f"/v1/teams/{_part(team)}/entries/{_part(entry)}"))

    async def invite(self, team: str, user: str) -> str:
        """POST /v1/teams/{id}/invites: the invitation's id."""
        return str((await self.request("POST", f"/v1/teams/{_part(team)}/invites", body={"user": user}))["id"])

    async def team_invites(self, team: str) -> list[dict[str, Any]]:
        """GET /v1/teams/{id}/invites"""
        return await self._items(f"/v1/teams/{_part(team)}/invites")

    async def revoke_invite(self, team: str, invite: str) -> None:
        """DELETE /v1/teams/{id}/invites/{invite}"""
        await self.request("DELETE", f"/v1/teams/{_part(team)}/invites/{_part(invite)}")

    async def invites(self) -> list[dict[str, Any]]:
        """GET /v1/invites"""
        return await self._items("/v1/invites")

    async def accept(self, team: str) -> None:
        """POST /v1/teams/{id}/accept"""
        await self.request("POST", f"/v1/teams/{_part(team)}/accept")

    async def decline(self, team: str) -> None:
        """POST /v1/teams/{id}/decline"""
        await self.request("POST", f"/v1/teams/{_part(team)}/decline")

    # --- projects -------------------------------------------------------------------------------------------------

    async def projects(self) -> list[dict[str, Any]]:
        """GET /v1/projects"""
        return await self._items("/v1/projects")

    async def create_project(self, name: str, *, isolated: bool = False) -> dict[str, Any]:
        """POST /v1/projects"""
        body = {"name": name, "isolated": isolated}
        return cast(dict[str, Any], await self.request("POST", "/v1/projects", body=body))

    async def project(self, id: str) -> dict[str, Any]:
        """GET /v1/projects/{id}"""
        return cast(dict[str, Any], await self.request("GET", f"/v1/projects/{_part(id)}"))

    async def rename_project(self, id: str, name: str) -> dict[str, Any]:
        """PATCH /v1/projects/{id}"""
        return cast(dict[str, Any], await self.request("PATCH", f"/v1/projects/{_part(id)}", body={"name": name}))

    async def delete_project(self, id: str, *, confirm: bool = False) -> dict[str, Any]:
        """DELETE /v1/projects/{id}: the receipt. Without `confirm` Conflict says what would happen."""
        params = {"confirm": "true"} if confirm else None
        return cast(dict[str, Any], await self.request("DELETE", f"/v1/projects/{_part(id)}", params=params))

    async def project_members(self, project: str) -> list[dict[str, Any]]:
        """GET /v1/projects/{id}/members"""
        return await self._items(f"/v1/projects/{_part(project)}/members")

    async def set_project_member(self, project: str, user: str, role: str) -> None:
        """PUT /v1/projects/{id}/members/{user}: with the role read, write or admin. Who is no member is invited."""
        await self.request("PUT", f"/v1/projects/{_part(project)}/members/{_part(user)}", body={"role": role})

    async def remove_from_project(self, project: str, user: str) -> None:
        """DELETE /v1/projects/{id}/members/{user}"""
        await self.request("DELETE", f"/v1/projects/{_part(project)}/members/{_part(user)}")

    async def project_invites(self, project: str) -> list[dict[str, Any]]:
        """GET /v1/projects/{id}/invites"""
        return await self._items(f"/v1/projects/{_part(project)}/invites")

    async def project_sessions(self, project: str, **which: Any) -> dict[str, Any]:
        """GET /v1/projects/{id}/sessions: the conversations of a project, one's own with their titles."""
        path = f"/v1/projects/{_part(project)}/sessions"
        return cast(dict[str, Any], await self.request("GET", path, params=which))

    async def project_facts(self, project: str, **which: Any) -> list[dict[str, Any]]:
        """GET /v1/projects/{id}/facts: as they hold, or held (on), or of one key all values (history)."""
        return cast(
            list[dict[str, Any]],
            (await self.request("GET", f"/v1/projects/{_part(project)}/facts", params=which))["items"],
        )

    async def project_landmarks(self, project: str) -> list[dict[str, Any]]:
        """GET /v1/projects/{id}/landmarks: its decisions"""
        return await self._items(f"/v1/projects/{_part(project)}/landmarks")

    async def settle_landmark(self, project: str, landmark: str, **values: Any) -> dict[str, Any]:
        """PATCH /v1/projects/{id}/landmarks/{landmark}: its `state` (`current` accepts, `retired` rejects) or `text`"""
        path = f"/v1/projects/{_part(project)}/landmarks/{_part(landmark)}"
        return cast(dict[str, Any], await self.request("PATCH", path, body=values))

    async def privacy(self) -> dict[str, Any]:
        """GET /v1/privacy: how much is stored of oneself, and when the audit log was last verified."""
        return cast(dict[str, Any], await self.request("GET", "/v1/privacy"))

    async def activity(self) -> list[dict[str, Any]]:
        """GET /v1/activity: what others lately shared, set and decided."""
        return await self._items("/v1/activity")

    async def people(self, q: str) -> list[dict[str, Any]]:
        """GET /v1/people: whom one may invite, by how a word of their name begins."""
        return cast(list[dict[str, Any]], (await self.request("GET", "/v1/people", params={"q": q}))["items"])

    async def agents(self) -> list[dict[str, Any]]:
        """GET /v1/agents: whom one may ask, with `agent` of a question."""
        return await self._items("/v1/agents")

    async def connecting(self) -> dict[str, Any]:
        """GET /v1/connect: the addresses, what to paste into which tool, and which models the gateway offers."""
        return cast(dict[str, Any], await self.request("GET", "/v1/connect"))

    async def gateway_requests(self, limit: int = 50) -> list[dict[str, Any]]:
        """GET /v1/gateway/requests: what the gateway put into requests of one's tools, and learns from."""
        found = await self.request("GET", "/v1/gateway/requests", params={"limit": limit})
        return cast(list[dict[str, Any]], found["items"])

    async def reminders(self) -> list[dict[str, Any]]:
        """GET /v1/reminders"""
        return await self._items("/v1/reminders")

    async def cancel_reminder(self, id: str) -> None:
        """DELETE /v1/reminders/{id}"""
        await self.request("DELETE", f"/v1/reminders/{_part(id)}")

    async def accept_project(self, project: str, role: str | None = None) -> None:
        """POST /v1/projects/{id}/accept. `role`: the one that was shown; Conflict for another."""
        await self.request("POST", f"/v1/projects/{_part(project)}/accept", params={"role": role})

    async def decline_project(self, project: str) -> None:
        """POST /v1/projects/{id}/decline"""
        await self.request("POST", f"/v1/projects/{_part(project)}/decline")

    async def leave_project(self, project: str, *, confirm: bool = False) -> None:
        """POST /v1/projects/{id}/leave. Without `confirm` the only admin gets Conflict, which says what would come."""
        params = {"confirm": "true"} if confirm else None
        await self.request("POST", f"/v1/projects/{_part(project)}/leave", params=params)

    # --- credentials ----------------------------------------------------------------------------------------------

    async def whoami(self) -> dict[str, Any]:
        """GET /v1/whoami"""
        return cast(dict[str, Any], await self.request("GET", "/v1/whoami"))

    async def keys(self) -> list[dict[str, Any]]:
        """GET /v1/keys"""
        return await self._items("/v1/keys")

    async def key_activity(self, id: str, **which: Any) -> dict[str, Any]:
        """GET /v1/keys/{id}/activity: what a tool wrote, what it read, and how often it asked."""
        return cast(dict[str, Any], await self.request("GET", f"/v1/keys/{_part(id)}/activity", params=which))

    async def make_key(self, **values: Any) -> dict[str, Any]:
        """POST /v1/keys: vendor, name, permissions, expires_at. Its text is shown this once."""
        return cast(dict[str, Any], await self.request("POST", "/v1/keys", body=values))

    async def revoke_key(self, id: str) -> None:
        """DELETE /v1/keys/{id}"""
        await self.request("DELETE", f"/v1/keys/{_part(id)}")

    async def webhooks(self) -> list[dict[str, Any]]:
        """GET /v1/webhooks"""
        return await self._items("/v1/webhooks")

    async def make_webhook(self, url: str, **values: Any) -> dict[str, Any]:
        """POST /v1/webhooks: name, pages, of. Its secret is shown this once."""
        return cast(dict[str, Any], await self.request("POST", "/v1/webhooks", body={"url": url, **values}))

    async def switch_webhook(self, id: str, on: bool) -> dict[str, Any]:
        """PATCH /v1/webhooks/{id}: on or off."""
        return cast(dict[str, Any], await self.request("PATCH", f"/v1/webhooks/{_part(id)}", body={"on": on}))

    async def try_webhook(self, id: str) -> dict[str, Any]:
        """POST /v1/webhooks/{id}/test: send a ping; how it was answered."""
        return cast(dict[str, Any], await self.request("POST", f"/v1/webhooks/{_part(id)}/test"))

    async def delete_webhook(self, id: str) -> None:
        """DELETE /v1/webhooks/{id}"""
        await self.request("DELETE", f"/v1/webhooks/{_part(id)}")

    async def web_sessions(self) -> list[dict[str, Any]]:
        """GET /v1/sessions"""
        return await self._items("/v1/sessions")

    async def end_web_session(self, id: str) -> None:
        """DELETE /v1/sessions/{id}"""
        await self.request("DELETE", f"/v1/sessions/{_part(id)}")

    async def logins(self) -> list[dict[str, Any]]:
        """GET /v1/logins"""
        return await self._items("/v1/logins")

    async def disconnect_login(self, id: str) -> None:
        """DELETE /v1/logins/{id}"""
        await self.request("DELETE", f"/v1/logins/{_part(id)}")

    # --- settings and usage ---------------------------------------------------------------------------------------

    async def settings(self) -> dict[str, Any]:
        """GET /v1/settings: one's own."""
        return cast(dict[str, Any], await self.request("GET", "/v1/settings"))

    async def change_settings(self, **values: Any) -> dict[str, Any]:
        """PATCH /v1/settings: recall, strategy, budget, trash_days, keep_days."""
        return cast(dict[str, Any], await self.request("PATCH", "/v1/settings", body=values))

    async def usage(self, months: int = 1) -> dict[str, Any]:
        """GET /v1/usage: one's own, of the last months."""
        return cast(dict[str, Any], await self.request("GET", "/v1/usage", params={"months": months}))

    async def model_usage(self, by: str = "day", **days: str) -> dict[str, Any]:
        """GET /v1/usage/models: by day, agent, room, person, kind or model. Days: since, until."""
        return cast(dict[str, Any], await self.request("GET", "/v1/usage/models", params={"by": by, **days}))

    async def billing(self) -> dict[str, Any]:
        """GET /v1/billing: the plan of the workspace, and what has been paid. For admins."""
        return cast(dict[str, Any], await self.request("GET", "/v1/billing"))

    async def buy_plan(self, plan: str) -> str:
        """POST /v1/billing/checkout: the address of the provider's page."""
        return str((await self.request("POST", "/v1/billing/checkout", body={"plan": plan}))["url"])

    async def manage_billing(self) -> str:
        """POST /v1/billing/portal: the address of the provider's page."""
        return str((await self.request("POST", "/v1/billing/portal"))["url"])

    async def health(self) -> dict[str, Any]:
        """GET /v1/health: how long it takes to store, list and erase an entry."""
        return cast(dict[str, Any], await self.request("GET", "/v1/health"))

    # --- admins ---------------------------------------------------------------------------------------------------

    async def admin_usage(self, months: int = 1) -> dict[str, Any]:
        """GET /v1/admin/usage: everyone's, of the last months, and the quotas."""
        return cast(dict[str, Any], await self.request("GET", "/v1/admin/usage", params={"months": months}))

    async def admin_model_usage(self, by: str = "day", **days: str) -> dict[str, Any]:
        """GET /v1/admin/usage/models: everyone's. Days: since, until."""
        return cast(dict[str, Any], await self.request("GET", "/v1/admin/usage/models", params={"by": by, **days}))

    def admin_users(self) -> AsyncIterator[dict[str, Any]]:
        """GET /v1/admin/users: everyone, page by page."""
        return self._pages("/v1/admin/users", {})

    def admin_projects(self, **filters: Any) -> AsyncIterator[dict[str, Any]]:
        """GET /v1/admin/projects: all, with figures, page by page. Filters: q, orphaned."""
        return self._pages("/v1/admin/projects", filters)

    def admin_teams(self, **filters: Any) -> AsyncIterator[dict[str, Any]]:
        """GET /v1/admin/teams: all, with figures, page by page. Filters: q, orphaned."""
        return self._pages("/v1/admin/teams", filters)

    async def appoint_project_admin(self, project: str, user: str) -> None:
        """PUT /v1/admin/projects/{id}/admin: make a member of a project without an admin its admin."""
        await self.request("PUT", f"/v1/admin/projects/{_part(project)}/admin", body={"user": user})

    async def appoint_team_admin(self, team: str, user: str) -> None:
        """PUT /v1/admin/teams/{id}/admin: make a member of a team without an admin its admin."""
        await self.request("PUT", f"/v1/admin/teams/{_part(team)}/admin", body={"user": user})

    async def delete_orphaned_project(self, project: str) -> dict[str, Any]:
        """DELETE /v1/admin/projects/{id}: one without an admin."""
        path = f"/v1/admin/projects/{_part(project)}"
        return cast(dict[str, Any], await self.request("DELETE", path, params={"confirm": True}))

    async def delete_orphaned_team(self, team: str) -> dict[str, Any]:
        """DELETE /v1/admin/teams/{id}: one without an admin."""
        path = f"/v1/admin/teams/{_part(team)}"
        return cast(dict[str, Any], await self.request("DELETE", path, params={"confirm": True}))

    async def admin_figures(self) -> dict[str, Any]:
        """GET /v1/admin/figures"""
        return cast(dict[str, Any], await self.request("GET", "/v1/admin/figures"))

    async def admin_figures_by_day(self, days: int = 30) -> dict[str, Any]:
        """GET /v1/admin/figures/days: answers and their seconds, what came in and was learnt, and what waits now."""
        return cast(dict[str, Any], await self.request("GET", "/v1/admin/figures/days", params={"days": days}))

    async def person_invitations(self) -> list[dict[str, Any]]:
        """GET /v1/admin/invitations: to the organisation, that nobody has accepted yet."""
        return await self._items("/v1/admin/invitations")

    async def invite_person(self, name: str = "", *, email: str = "") -> dict[str, Any]:
        """POST /v1/admin/invitations: a link by which somebody joins, which is shown this once."""
        body = {"name": name, "email": email}
        return cast(dict[str, Any], await self.request("POST", "/v1/admin/invitations", body=body))

    async def revoke_person_invitation(self, id: str) -> None:
        """DELETE /v1/admin/invitations/{id}"""
        await self.request("DELETE", f"/v1/admin/invitations/{_part(id)}")

    async def admin_user(self, user: str) -> dict[str, Any]:
        """GET /v1/admin/users/{user}: somebody, and how much opens their memory."""
        return cast(dict[str, Any], await self.request("GET", f"/v1/admin/users/{_part(user)}"))

    async def change_user(self, user: str, *, admin: bool) -> dict[str, Any]:
        """PATCH /v1/admin/users/{user}: make somebody an admin, or not."""
        body = {"admin": admin}
        return cast(dict[str, Any], await self.request("PATCH", f"/v1/admin/users/{_part(user)}", body=body))

    async def link_user(self, user: str) -> dict[str, Any]:
        """POST /v1/admin/users/{user}/link: a link that signs in who came by an invitation and has no browser left."""
        return cast(dict[str, Any], await self.request("POST", f"/v1/admin/users/{_part(user)}/link"))

    async def sign_user_out(self, user: str) -> dict[str, Any]:
        """POST /v1/admin/users/{user}/sign-out: end all keys, apps and browsers of somebody."""
        return cast(dict[str, Any], await self.request("POST", f"/v1/admin/users/{_part(user)}/sign-out"))

    async def admin_health(self) -> list[dict[str, Any]]:
        """GET /v1/admin/health: what is wrong first."""
        return cast(list[dict[str, Any]], (await self.request("GET", "/v1/admin/health"))["items"])

    async def admin_jobs(self) -> list[dict[str, Any]]:
        """GET /v1/admin/jobs"""
        return cast(list[dict[str, Any]], (await self.request("GET", "/v1/admin/jobs"))["items"])

    async def run_job(self, name: str) -> None:
        """POST /v1/admin/jobs/{name}/run: begin a run, which goes on by itself."""
        await self.request("POST", f"/v1/admin/jobs/{_part(name)}/run")

    async def admin_backups(self) -> list[dict[str, Any]]:
        """GET /v1/admin/backups: newest first."""
        return cast(list[dict[str, Any]], (await self.request("GET", "/v1/admin/backups"))["items"])

    async def history_imports(self) -> dict[str, Any]:
        """GET /v1/admin/imports: the file that was sent last, with what is in it, and what was imported."""
        return cast(dict[str, Any], await self.request("GET", "/v1/admin/imports"))

    async def upload_history(self, name: str, content: bytes) -> dict[str, Any]:
        """POST /v1/admin/imports/uploads: an export of Slack or DiscordChatExporter, of which nothing is stored yet."""
        path, params = "/v1/admin/imports/uploads", {"name": name}
        return cast(dict[str, Any], await self.request("POST", path, content=content, params=params))

    async def run_history_import(self, id: str, channels: Sequence[str] | None = None) -> dict[str, Any]:
        """POST /v1/admin/imports/uploads/{id}/run: import these channels of the file (None: all), by their ids."""
        body = {"channels": None if channels is None else [*channels]}
        path = f"/v1/admin/imports/uploads/{_part(id)}/run"
        return cast(dict[str, Any], await self.request("POST", path, body=body))

    async def discard_history_upload(self, id: str) -> None:
        """DELETE /v1/admin/imports/uploads/{id}: throw the file away."""
        await self.request("DELETE", f"/v1/admin/imports/uploads/{_part(id)}")

    async def undo_history_import(self, id: str) -> None:
        """DELETE /v1/admin/imports/{id}: erase what an import brought; it goes on by itself."""
        await self.request("DELETE", f"/v1/admin/imports/{_part(id)}")

    async def admin_settings(self) -> dict[str, Any]:
        """GET /v1/admin/settings: what is set in the workspace."""
        return cast(dict[str, Any], await self.request("GET", "/v1/admin/settings"))

    async def change_admin_settings(self, *, confirm: bool = False, **values: Any) -> dict[str, Any]:
        """PATCH /v1/admin/settings: strategy, top_k, recall_tokens, summary_tokens, retention_days; and keep_days,
        prompt_days, usage_days: without `confirm` Conflict says what those would erase."""
        params = {"confirm": "true"} if confirm else None
        return cast(dict[str, Any], await self.request("PATCH", "/v1/admin/settings", body=values, params=params))

    def audit(self, **filters: Any) -> AsyncIterator[dict[str, Any]]:
        """GET /v1/admin/audit: rows, newest first, page by page. Filters: since, until, act, user."""
        return self._pages("/v1/admin/audit", filters)

    async def verify_audit(self) -> dict[str, Any]:
        """GET /v1/admin/audit/verification: whether the log is whole."""
        return cast(dict[str, Any], await self.request("GET", "/v1/admin/audit/verification"))

    # --- conversations and questions ------------------------------------------------------------------------------

    async def chat(self, content: str, **values: Any) -> dict[str, Any]:
        """POST /v1/chat: say something to an agent and wait for its answer. Values: agent, session, project, id."""
        return cast(dict[str, Any], await self.request("POST", "/v1/chat", body={"content": content, **values}))

    async def stop_turn(self, turn: str) -> None:
        """POST /v1/chat/turns/{turn}/stop: an answer that is being written."""
        await self.request("POST", f"/v1/chat/turns/{_part(turn)}/stop")

    async def rate_turn(self, turn: str, rating: str) -> None:
        """PUT /v1/chat/turns/{turn}/rating: good, bad or none."""
        await self.request("PUT", f"/v1/chat/turns/{_part(turn)}/rating", body={"rating": rating})

    async def chat_events(self, content: str, **values: Any) -> AsyncIterator[tuple[str, Any]]:
        """POST /v1/chat/stream, the same while it is written: (name, data) of each event, such as ("chunk", …). It is
        not tried again."""
        async for each in self._events("/v1/chat/stream", {"content": content, **values}):
            yield each

    async def query_events(self, question: str, **values: Any) -> AsyncIterator[tuple[str, Any]]:
        """POST /v1/query/stream: what `query` finds, and its answer while it is written."""
        async for each in self._events("/v1/query/stream", {"question": question, **values}):
            yield each

    async def changes(self, page: str, seconds: int, **which: Any) -> AsyncIterator[tuple[str, Any]]:
        """GET /v1/events: ("changed", {}) as soon as something has changed that a page (`memory`, …) shows, for so many
        seconds. `of`: the id of one room, team or project."""
        async for each in self._events("/v1/events", params={"page": page, "seconds": seconds, **which}):
            yield each

    async def _events(
        self, path: str, body: dict[str, Any] | None = None, params: dict[str, Any] | None = None
    ) -> AsyncIterator[tuple[str, Any]]:
        method, headers = ("POST", {"Idempotency-Key": uuid.uuid4().hex}) if params is None else ("GET", {})
        sent = {"json": body} if params is None else {"params": params}
        async with self._http.stream(method, path, headers=headers, timeout=None, **sent) as answer:
            if not answer.is_success:
                await answer.aread()
                raise _failure(answer)
            name = "message"
            async for line in answer.aiter_lines():
                field, _, value = line.partition(":")
                if field == "event":
                    name = value.strip()
                elif field == "data":
                    yield name, json.loads(value)

    async def turn(self, id: str) -> dict[str, Any]:
        """GET /v1/chat/turns/{turn}"""
        return cast(dict[str, Any], await self.request("GET", f"/v1/chat/turns/{_part(id)}"))

    async def sessions(self, **page: Any) -> dict[str, Any]:
        """GET /v1/chat/sessions"""
        return cast(dict[str, Any], await self.request("GET", "/v1/chat/sessions", params=page))

    async def session(self, id: str) -> dict[str, Any]:
        """GET /v1/chat/sessions/{id}: a session, with its summaries."""
        return cast(dict[str, Any], await self.request("GET", f"/v1/chat/sessions/{_part(id)}"))

    async def episodes(self, **filters: Any) -> dict[str, Any]:
        """GET /v1/episodes"""
        return cast(dict[str, Any], await self.request("GET", "/v1/episodes", params=filters))

    async def forget_session(self, session: str, **which: Any) -> dict[str, Any]:
        """DELETE /v1/chat/session/{session}: with one agent, for good. `agent` and `project` say which."""
        path = f"/v1/chat/session/{_part(session)}"
        return cast(dict[str, Any], await self.request("DELETE", path, params=which))

    async def query(self, question: str, **values: Any) -> dict[str, Any]:
        """POST /v1/query: what is remembered about a question. Values: project, limit, budget, strategy, kinds, tags,
        answer."""
        return cast(dict[str, Any], await self.request("POST", "/v1/query", body={"question": question, **values}))

    async def agent_search(self, question: str, **values: Any) -> dict[str, Any]:
        """GET /v1/agent/search: what fits a question. Values: project, limit, budget, strategy, kind, tag."""
        return cast(dict[str, Any], await self.request("GET", "/v1/agent/search", params={"q": question, **values}))

    async def _items(self, path: str) -> list[dict[str, Any]]:
        return cast(list[dict[str, Any]], (await self.request("GET", path))["items"])

    async def _pages(self, path: str, filters: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        cursor: str | None = None
        while True:
            page = await self.request("GET", path, params={**filters, "cursor": cursor})
            items: Sequence[dict[str, Any]] = page["items"]
            for item in items:
                yield item
            cursor = page["next"]
            if cursor is None:
                return


def _part(text: str) -> str:
    """A text as one part of a path. Dots alone would lead to another one."""
    return quote(str(text), safe="") if str(text).strip(".") else str(text).replace(".", "%2E")


def _match(version: int | None) -> dict[str, str]:
    return {} if version is None else {"If-Match": f'"{version}"'}


def _failure(answer: httpx2.Response) -> Any:
    try:
        detail = str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        detail = f"Nexus answered {answer.status_code}."
    after = answer.headers.get("retry-after", "")
    return error_of(answer.status_code, detail, float(after) if after.isdecimal() else None)
