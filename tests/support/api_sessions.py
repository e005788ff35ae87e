"""Sessions over the API as tests ask in them: the use cases behind the routes, with no server."""

import secrets
import uuid
from dataclasses import dataclass, field
from typing import Any

from bot.web.sessions import ApiSessions, EventKind, StoredQuestion, TurnEvent, TurnView
from composer.app import App
from composer.memory.forget import RECEIPT_KEY_BYTES, Receipt
from composer.model import api_workspace
from composer.people.sessions.forgetting import forget_session
from composer.people.sessions.history import list_exchanges
from composer.people.sessions.opening import NewSessionMessage, agent_of
from composer.people.sessions.owner import SessionOwner
from composer.repositories.sessions import SessionExchange
from composer.visibility import Grants
from tests.support.harness import AppHarness

ALL_GRANTS = frozenset({Grants.READ_ENTRIES, Grants.READ_PROJECTS, Grants.WRITE_PROJECTS, Grants.READ_TEAMS})


@dataclass
class Sessions:
    """One process that serves sessions, on the harness's app unless another one is given."""

    harness: AppHarness
    app: App
    served: ApiSessions
    numbers: int = field(default=0)

    async def bearer(
        self, name: str, *, grants: frozenset[str] = ALL_GRANTS, workspace: str | None = None
    ) -> SessionOwner:
        """A person of the harness's workspace, by their name there."""
        here = self.harness.workspace(workspace)
        async with self.app.database.transaction(here.tenant_id, "read") as tx:
            user = await tx.people.find_user(here.platform, here.name, name)
        assert user is not None, f"{name} has said nothing yet"
        return SessionOwner(api_workspace(here.tenant_id, here.tenant), user.id, grants)

    def said(self, text: str, **options: Any) -> NewSessionMessage:
        self.numbers += 1
        id = options.pop("id", None) or f"q{self.numbers}"
        return NewSessionMessage(text, options.get("agent"), options.get("session", "s1"), options.get("project"), id)

    async def ask(self, bearer: SessionOwner, text: str, **options: Any) -> StoredQuestion:
        """Store a question; its answer is on its way."""
        self.harness.clock.tick()
        return await self.served.ask(bearer, self.said(text, **options))

    async def end(self, question: StoredQuestion) -> TurnEvent:
        """How a question ends."""
        return [event async for event in self.served.follow(question, valid)][-1]

    async def answer(self, bearer: SessionOwner, text: str, **options: Any) -> str:
        """Ask, and wait for the answer; then index everything."""
        event = await self.end(await self.ask(bearer, text, **options))
        assert event.kind is EventKind.ANSWER, event
        await self.app.turns.settle()
        await self.app.indexer.catch_up(bearer.workspace.tenant_id)
        return event.text

    async def view(self, bearer: SessionOwner, turn: uuid.UUID) -> TurnView:
        return await self.served.view(bearer, turn)

    async def forget(self, bearer: SessionOwner, agent: str | None, session: str, project: uuid.UUID | None) -> Receipt:
        """Forget a session with one agent."""
        tenant, now = bearer.workspace.tenant_id, self.app.clock.now()
        named = agent_of(self.app.directory.agents(tenant), agent)
        async with self.app.database.transaction(tenant, "alone") as tx:
            key = secrets.token_bytes(RECEIPT_KEY_BYTES)
            receipt = await forget_session(tx, self.app.settings.home, bearer, named, session, project, now, key)
        await self.app.forgotten(tenant, receipt)
        return receipt

    async def said_in(self, bearer: SessionOwner, **options: Any) -> list[SessionExchange]:
        """What a person said in their sessions, newest first."""
        async with self.app.database.transaction(bearer.workspace.tenant_id, "read") as tx:
            return list((await list_exchanges(tx, bearer, **options)).exchanges)


async def valid() -> bool:
    """A credential that stays valid."""
    return True


def serve_sessions(harness: AppHarness, app: App | None = None, *, look_seconds: float = 0.02) -> Sessions:
    """Serve sessions over the API in the process of a harness."""
    of = app or harness.app
    return Sessions(harness, of, ApiSessions(of, look_seconds=look_seconds))
