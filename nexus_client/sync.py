"""The synchronous client, made from `nexus_client/aio.py`
by `python -m tests.support.client_sync`."""

import json
import random
import time
import uuid
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Final, Self, cast
from urllib.parse import quote

import httpx2

from nexus_client.errors import error_of
from nexus_client.types import Entry, Snippet, WrittenEntry

RETRIED: Final = frozenset({429, 502, 503, 504})
MAX_WAIT_SECONDS: Final = 60.0


class Nexus:
    """The API of one Nexus, with one key: of a person, or of an AI tool of theirs (then `agent_…` and the like alone).

    What fails for a moment is tried again, at most `retries` times: reads, and writes, which carry an idempotency key.
    Raises NexusError (nexus_client.errors). Use it as a context manager, or `close` it.
    """

    def __init__(self, url: str, key: str, *, timeout: float = 30.0, retries: int = 3) -> None:
        headers = {"Authorization": f"Bearer {key}", "Accept": "application/json"}
        self._http = httpx2.Client(base_url=url.rstrip("/"), headers=headers, timeout=timeout)
        self._retries = retries

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        params: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Any request: its JSON, or None where there is none. A POST gets an idempotency key of its own."""
        sent = dict(headers or {})
        if method == "POST":
            sent["Idempotency-Key"] = idempotency_key or uuid.uuid4().hex
        given = {name: value for name, value in (params or {}).items() if value is not None}
        for attempt in range(self._retries + 1):
            try:
                answer = self._http.request(method, path, json=body, params=given, headers=sent)
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
                    time.sleep(pause)
                    continue
            raise failure
        raise AssertionError

    # --- a person's entries ---------------------------------------------------------------------------------------

    def write(self, content: str, **values: Any) -> WrittenEntry:
        """POST /v1/entries: title, kind, key, tags, metadata, session, allowed_vendors, expires_at, project."""
        return cast(WrittenEntry, self.request("POST", "/v1/entries", body={"content": content, **values}))

    def entries(self, **filters: Any) -> Iterator[Entry]:
        """GET /v1/entries: all that fit, newest first, page by page. Filters: kind, tag, vendor, session, q, trashed,
        expired, team, project, since, before; `limit` is the size of a page."""
        for item in self._pages("/v1/entries", filters):
            yield cast(Entry, item)

    def entry(self, id: str, *, project: str | None = None) -> Entry:
        """GET /v1/entries/{id}. `project`, here and below: the isolated project that it is in."""
        return cast(Entry, self.request("GET", f"/v1/entries/{_part(id)}", params={"project": project}))

    def change(self, id: str, *, version: int | None = None, project: str | None = None, **values: Any) -> Entry:
        """PATCH /v1/entries/{id}: of this `version` alone, if it is given."""
        path, params = f"/v1/entries/{_part(id)}", {"project": project}
        return cast(Entry, self.request("PATCH", path, body=values, params=params, headers=_match(version)))

    def trash(self, id: str, *, version: int | None = None, project: str | None = None) -> None:
        """DELETE /v1/entries/{id}"""
        path, params = f"/v1/entries/{_part(id)}", {"project": project}
        self.request("DELETE", path, params=params, headers=_match(version))

    def restore(self, id: str, *, project: str | None = None) -> Entry:
        """POST /v1/entries/{id}/restore"""
        path, params = f"/v1/entries/{_part(id)}/restore", {"project": project}
        return cast(Entry, self.request("POST", path, params=params))

    def share(self, id: str, team: str) -> Entry:
        """PUT /v1/entries/{id}/team"""
        return cast(Entry, self.request("PUT", f"/v1/entries/{_part(id)}/team", body={"team": team}))

    def unshare(self, id: str) -> Entry:
        """DELETE /v1/entries/{id}/team"""
        return cast(Entry, self.request("DELETE", f"/v1/entries/{_part(id)}/team"))

    def forget(self, id: str, *, project: str | None = None) -> dict[str, Any]:
        """POST /v1/entries/{id}/forget: for good; the receipt."""
        path, params = f"/v1/entries/{_part(id)}/forget", {"project": project}
        return cast(dict[str, Any], self.request("POST", path, params=params))

    def forget_entries(self, **which: Any) -> dict[str, Any]:
        """POST /v1/entries/forget: kind, tag, vendor, project, older_than; Conflict says what to `confirm`."""
        return cast(dict[str, Any], self.request("POST", "/v1/entries/forget", body=which))

    def pending(self, *, project: str | None = None) -> list[dict[str, Any]]:
        """GET /v1/entries/pending"""
        found = self.request("GET", "/v1/entries/pending", params={"project": project})
        return cast(list[dict[str, Any]], found["items"])

    def approve(self, id: str, *, project: str | None = None) -> None:
        """POST /v1/entries/pending/{id}/approve"""
        path, params = f"/v1/entries/pending/{_part(id)}/approve", {"project": project}
        self.request("POST", path, params=params)

    def reject(self, id: str, *, project: str | None = None) -> None:
        """POST /v1/entries/pending/{id}/reject"""
        path, params = f"/v1/entries/pending/{_part(id)}/reject", {"project": project}
        self.request("POST", path, params=params)

    def export_entries(self, project: str | None = None) -> dict[str, Any]:
        """GET /v1/entries/export: all of one's own as one document, which `import_entries` takes."""
        return cast(dict[str, Any], self.request("GET", "/v1/entries/export", params={"project": project}))

    def import_entries(self, document: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        """POST /v1/entries/import: all of a document, or nothing; what became of each entry, by its `items`."""
        params = {"dry_run": "true"} if dry_run else None
        return cast(dict[str, Any], self.request("POST", "/v1/entries/import", body=document, params=params))

    def export(self) -> dict[str, Any]:
        """GET /v1/export: all that is stored of the person."""
        return cast(dict[str, Any], self.request("GET", "/v1/export"))

    # --- a tool's -------------------------------------------------------------------------------------------------

    def agent_write(self, content: str, **values: Any) -> WrittenEntry:
        """POST /v1/agent/entries"""
        return cast(WrittenEntry, self.request("POST", "/v1/agent/entries", body={"content": content, **values}))

    def agent_entries(self, **filters: Any) -> Iterator[Snippet]:
        """GET /v1/agent/entries: as `entries`, with the beginning of each text."""
        for item in self._pages("/v1/agent/entries", filters):
            yield cast(Snippet, item)

    def agent_entry(self, id: str, *, project: str | None = None) -> Entry:
        """GET /v1/agent/entries/{id}"""
        return cast(Entry, self.request("GET", f"/v1/agent/entries/{_part(id)}", params={"project": project}))

    def agent_latest(self, **filters: Any) -> Entry:
        """GET /v1/agent/entries/latest"""
        return cast(Entry, self.request("GET", "/v1/agent/entries/latest", params=filters))

    def agent_by_tag(self, tag: str, **filters: Any) -> Iterator[Snippet]:
        """GET /v1/agent/entries/by-tag/{name}"""
        for item in self._pages(f"/v1/agent/entries/by-tag/{_part(tag)}", filters):
            yield cast(Snippet, item)

    def agent_team_entries(self, team: str, **filters: Any) -> Iterator[Snippet]:
        """GET /v1/agent/team/{id}/entries"""
        for item in self._pages(f"/v1/agent/team/{_part(team)}/entries", filters):
            yield cast(Snippet, item)

    def agent_teams(self) -> list[dict[str, Any]]:
        """GET /v1/agent/teams"""
        return self._items("/v1/agent/teams")

    def agent_projects(self) -> list[dict[str, Any]]:
        """GET /v1/agent/projects"""
        return self._items("/v1/agent/projects")

    def agent_forget(self, id: str) -> dict[str, Any]:
        """POST /v1/agent/entries/{id}/forget"""
        return cast(dict[str, Any], self.request("POST", f"/v1/agent/entries/{_part(id)}/forget"))

    def agent_forget_entries(self, **which: Any) -> dict[str, Any]:
        """POST /v1/agent/forget: kind, older_than."""
        return cast(dict[str, Any], self.request("POST", "/v1/agent/forget", body=which))

    # --- teams ----------------------------------------------------------------------------------------------------

    def teams(self) -> list[dict[str, Any]]:
        """GET /v1/teams"""
        return self._items("/v1/teams")

    def create_team(self, name: str) -> str:
        """POST /v1/teams: the new team's id."""
        return str((self.request("POST", "/v1/teams", body={"name": name}))["id"])

    def team(self, id: str) -> dict[str, Any]:
        """GET /v1/teams/{id}"""
        return cast(dict[str, Any], self.request("GET", f"/v1/teams/{_part(id)}"))

    def rename_team(self, id: str, name: str) -> dict[str, Any]:
        """PATCH /v1/teams/{id}"""
        return cast(dict[str, Any], self.request("PATCH", f"/v1/teams/{_part(id)}", body={"name": name}))

    def delete_team(self, id: str) -> None:
        """DELETE /v1/teams/{id}"""
        self.request("DELETE", f"/v1/teams/{_part(id)}")

    def team_members(self, team: str) -> list[dict[str, Any]]:
        """GET /v1/teams/{id}/members"""
        return self._items(f"/v1/teams/{_part(team)}/members")

    def set_team_role(self, team: str, user: str, role: str) -> None:
        """PATCH /v1/teams/{id}/members/{user}"""
        self.request("PATCH", f"/v1/teams/{_part(team)}/members/{_part(user)}", body={"role": role})

    def remove_from_team(self, team: str, user: str) -> None:
        """DELETE /v1/teams/{id}/members/{user}"""
        self.request("DELETE", f"/v1/teams/{_part(team)}/members/{_part(user)}")

    def leave_team(self, team: str) -> None:
        """POST /v1/teams/{id}/leave"""
        self.request("POST", f"/v1/teams/{_part(team)}/leave")

    def unshare_of_former(self, team: str, entry: str) -> Entry:
        """DELETE /v1/teams/{id}/entries/{entry}"""
        return cast(Entry, self.request("DELETE", f"/v1/teams/{_part(team)}/entries/{_part(entry)}"))

    def invite(self, team: str, user: str) -> str:
        """POST /v1/teams/{id}/invites: the invitation's id."""
        return str((self.request("POST", f"/v1/teams/{_part(team)}/invites", body={"user": user}))["id"])

    def team_invites(self, team: str) -> list[dict[str, Any]]:
        """GET /v1/teams/{id}/invites"""
        return self._items(f"/v1/teams/{_part(team)}/invites")

    def revoke_invite(self, team: str, invite: str) -> None:
        """DELETE /v1/teams/{id}/invites/{invite}"""
        self.request("DELETE", f"/v1/teams/{_part(team)}/invites/{_part(invite)}")

    def invites(self) -> list[dict[str, Any]]:
        """GET /v1/invites"""
        return self._items("/v1/invites")

    def accept(self, team: str) -> None:
        """POST /v1/teams/{id}/accept"""
        self.request("POST", f"/v1/teams/{_part(team)}/accept")

    def decline(self, team: str) -> None:
        """POST /v1/teams/{id}/decline"""
        self.request("POST", f"/v1/teams/{_part(team)}/decline")

    # --- projects -------------------------------------------------------------------------------------------------

    def projects(self) -> list[dict[str, Any]]:
        """GET /v1/projects"""
        return self._items("/v1/projects")

    def create_project(self, name: str, *, isolated: bool = False) -> dict[str, Any]:
        """POST /v1/projects"""
        body = {"name": name, "isolated": isolated}
        return cast(dict[str, Any], self.request("POST", "/v1/projects", body=body))

    def project(self, id: str) -> dict[str, Any]:
        """GET /v1/projects/{id}"""
        return cast(dict[str, Any], self.request("GET", f"/v1/projects/{_part(id)}"))

    def rename_project(self, id: str, name: str) -> dict[str, Any]:
        """PATCH /v1/projects/{id}"""
        return cast(dict[str, Any], self.request("PATCH", f"/v1/projects/{_part(id)}", body={"name": name}))

    def delete_project(self, id: str, *, confirm: bool = False) -> dict[str, Any]:
        """DELETE /v1/projects/{id}: the receipt. Without `confirm` Conflict says what would happen."""
        params = {"confirm": "true"} if confirm else None
        return cast(dict[str, Any], self.request("DELETE", f"/v1/projects/{_part(id)}", params=params))

    def project_members(self, project: str) -> list[dict[str, Any]]:
        """GET /v1/projects/{id}/members"""
        return self._items(f"/v1/projects/{_part(project)}/members")

    def set_project_member(self, project: str, user: str, role: str) -> None:
        """PUT /v1/projects/{id}/members/{user}: with the role read, write or admin."""
        self.request("PUT", f"/v1/projects/{_part(project)}/members/{_part(user)}", body={"role": role})

    def remove_from_project(self, project: str, user: str) -> None:
        """DELETE /v1/projects/{id}/members/{user}"""
        self.request("DELETE", f"/v1/projects/{_part(project)}/members/{_part(user)}")

    # --- credentials ----------------------------------------------------------------------------------------------

    def whoami(self) -> dict[str, Any]:
        """GET /v1/whoami"""
        return cast(dict[str, Any], self.request("GET", "/v1/whoami"))

    def keys(self) -> list[dict[str, Any]]:
        """GET /v1/keys"""
        return self._items("/v1/keys")

    def make_key(self, **values: Any) -> dict[str, Any]:
        """POST /v1/keys: vendor, name, permissions, expires_at. Its text is shown this once."""
        return cast(dict[str, Any], self.request("POST", "/v1/keys", body=values))

    def revoke_key(self, id: str) -> None:
        """DELETE /v1/keys/{id}"""
        self.request("DELETE", f"/v1/keys/{_part(id)}")

    def web_sessions(self) -> list[dict[str, Any]]:
        """GET /v1/sessions"""
        return self._items("/v1/sessions")

    def end_web_session(self, id: str) -> None:
        """DELETE /v1/sessions/{id}"""
        self.request("DELETE", f"/v1/sessions/{_part(id)}")

    def logins(self) -> list[dict[str, Any]]:
        """GET /v1/logins"""
        return self._items("/v1/logins")

    def disconnect_login(self, id: str) -> None:
        """DELETE /v1/logins/{id}"""
        self.request("DELETE", f"/v1/logins/{_part(id)}")

    # --- settings and usage ---------------------------------------------------------------------------------------

    def settings(self) -> dict[str, Any]:
        """GET /v1/settings: one's own."""
        return cast(dict[str, Any], self.request("GET", "/v1/settings"))

    def change_settings(self, **values: Any) -> dict[str, Any]:
        """PATCH /v1/settings: recall, strategy, budget, trash_days, keep_days."""
        return cast(dict[str, Any], self.request("PATCH", "/v1/settings", body=values))

    def usage(self, months: int = 1) -> dict[str, Any]:
        """GET /v1/usage: one's own, of the last months."""
        return cast(dict[str, Any], self.request("GET", "/v1/usage", params={"months": months}))

    def health(self) -> dict[str, Any]:
        """GET /v1/health: how long it takes to store, list and erase an entry."""
        return cast(dict[str, Any], self.request("GET", "/v1/health"))

    # --- admins ---------------------------------------------------------------------------------------------------

    def admin_usage(self, months: int = 1) -> dict[str, Any]:
        """GET /v1/admin/usage: everyone's, of the last months, and the quotas."""
        return cast(dict[str, Any], self.request("GET", "/v1/admin/usage", params={"months": months}))

    def admin_users(self) -> Iterator[dict[str, Any]]:
        """GET /v1/admin/users: everyone, page by page."""
        return self._pages("/v1/admin/users", {})

    def admin_figures(self) -> dict[str, Any]:
        """GET /v1/admin/figures"""
        return cast(dict[str, Any], self.request("GET", "/v1/admin/figures"))

    # --- conversations and questions ------------------------------------------------------------------------------

    def chat(self, content: str, **values: Any) -> dict[str, Any]:
        """POST /v1/chat: say something to an agent and wait for its answer. Values: agent, session, project, id."""
        return cast(dict[str, Any], self.request("POST", "/v1/chat", body={"content": content, **values}))

    def chat_events(self, content: str, **values: Any) -> Iterator[tuple[str, Any]]:
        """The same while it is written: (name, data) of each event, such as ("chunk", …). It is not tried again."""
        headers = {"Accept": "text/event-stream", "Idempotency-Key": uuid.uuid4().hex}
        body = {"content": content, **values}
        with self._http.stream("POST", "/v1/chat", json=body, headers=headers, timeout=None) as answer:
            if not answer.is_success:
                answer.read()
                raise _failure(answer)
            name = "message"
            for line in answer.iter_lines():
                field, _, value = line.partition(":")
                if field == "event":
                    name = value.strip()
                elif field == "data":
                    yield name, json.loads(value)

    def turn(self, id: str) -> dict[str, Any]:
        """GET /v1/chat/turns/{turn}"""
        return cast(dict[str, Any], self.request("GET", f"/v1/chat/turns/{_part(id)}"))

    def sessions(self, **page: Any) -> dict[str, Any]:
        """GET /v1/chat/sessions"""
        return cast(dict[str, Any], self.request("GET", "/v1/chat/sessions", params=page))

    def episodes(self, **filters: Any) -> dict[str, Any]:
        """GET /v1/episodes"""
        return cast(dict[str, Any], self.request("GET", "/v1/episodes", params=filters))

    def forget_session(self, session: str, **which: Any) -> dict[str, Any]:
        """DELETE /v1/chat/session/{session}: with one agent, for good. `agent` and `project` say which."""
        path = f"/v1/chat/session/{_part(session)}"
        return cast(dict[str, Any], self.request("DELETE", path, params=which))

    def query(self, question: str, **values: Any) -> dict[str, Any]:
        """POST /v1/query: what is remembered about a question. Values: project, limit, budget, strategy, kinds, tags,
        answer."""
        return cast(dict[str, Any], self.request("POST", "/v1/query", body={"question": question, **values}))

    def agent_search(self, question: str, **values: Any) -> dict[str, Any]:
        """GET /v1/agent/search: what fits a question. Values: project, limit, budget, strategy, kind, tag."""
        return cast(dict[str, Any], self.request("GET", "/v1/agent/search", params={"q": question, **values}))

    def _items(self, path: str) -> list[dict[str, Any]]:
        return cast(list[dict[str, Any]], (self.request("GET", path))["items"])

    def _pages(self, path: str, filters: dict[str, Any]) -> Iterator[dict[str, Any]]:
        cursor: str | None = None
        while True:
            page = self.request("GET", path, params={**filters, "cursor": cursor})
            items: Sequence[dict[str, Any]] = page["items"]
            yield from items
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
