"""Codes that work once: in a link that signs its person in, to connect two accounts of one person, by which an app gets
its first tokens, and in a link by which somebody becomes a person of the tenant. Of a code only a digest is stored."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum

from composer.model import derived_id
from composer.ports.database import Statements
from composer.repositories.audit import Audit, AuditAct


class CodePurpose(StrEnum):
    """What a code is for."""

    LOGIN = "login"  # to sign in by a link; a person has one at most: a new one replaces it
    LINK = "link"  # shown to one account and entered with another one
    APP = "app"  # led back to a connected app
    INVITE = "invite"  # in a link by which somebody becomes a person of the tenant


@dataclass(frozen=True, slots=True)
class AppRequest:
    """What an app asked for when it got a code: the S256 of its secret, where it is led back to (`redirect_given`: it
    named that), and the address that its tokens are for."""

    challenge: str
    redirect_uri: str
    redirect_given: bool
    resource: str


@dataclass(frozen=True, slots=True)
class AppGrant:
    """What the code of an app is for: the app's key, what it may do, and what it asked for."""

    key_id: uuid.UUID
    permissions: tuple[str, ...]
    asked: AppRequest


@dataclass(frozen=True, slots=True)
class CodeOwner:
    """Whose a code is, and their name; `app` for an app's."""

    id: uuid.UUID
    name: str
    app: AppGrant | None


@dataclass(frozen=True, slots=True)
class OpenInvitation:
    """An invitation to the tenant that nobody has accepted yet. `name`: whom it is for; "": whoever has the link. `by`
    is the admin who made it; None: whoever runs Nexus, and who accepts it becomes an admin. `email`: whoever signs in
    by OpenID with that address accepts it; "": it has none."""

    digest: bytes
    name: str
    by: uuid.UUID | None
    by_name: str
    expires_at: datetime
    email: str = ""

    @property
    def id(self) -> uuid.UUID:
        """By which it is revoked. It says nothing of the code."""
        return derived_id("invitation", self.digest.hex())


class OneTimeCodes:
    """The codes of one tenant."""

    def __init__(self, statements: Statements, audit: Audit) -> None:
        self._sql = statements
        self._audit = audit

    async def store(
        self,
        purpose: CodePurpose,
        user: uuid.UUID,
        digest: bytes,
        expires_at: datetime,
        *,
        actor: uuid.UUID | None = None,
        app: tuple[uuid.UUID, AppRequest] | None = None,
    ) -> None:
        """Store a new code; of an app with its key and what it asked for. That somebody may sign in by it is
        recorded in the audit log. `actor` None: whoever runs Nexus asked for it."""
        await self._sql.execute(
            "one_time_code_store",
            purpose=str(purpose),
            user_id=user,
            digest=digest,
            expires_at=expires_at,
            key_id=None if app is None else app[0],
            asked=None if app is None else json.dumps(asdict(app[1])),
            replaces=purpose is CodePurpose.LOGIN,
        )
        if purpose is CodePurpose.LOGIN:
            await self._audit.record(AuditAct.LOGIN_LINK, actor=actor, users=[user])

    async def invite(
        self, digest: bytes, name: str, by: uuid.UUID | None, expires_at: datetime, email: str = ""
    ) -> OpenInvitation:
        """Store an invitation to the tenant, and record it in the audit log. One of whoever runs Nexus (`by` None)
        takes the place of the one before."""
        await self._sql.execute(
            "one_time_code_store",
            purpose=str(CodePurpose.INVITE),
            user_id=by,
            digest=digest,
            expires_at=expires_at,
            key_id=None,
            asked=json.dumps({"name": name, "email": email}),
            replaces=by is None,
        )
        made = OpenInvitation(digest, name, by, "", expires_at, email)
        await self._audit.record(AuditAct.PERSON_INVITED, actor=by, details={"invitation": str(made.id)})
        return made

    async def invitations(self, now: datetime, digest: bytes | None = None) -> list[OpenInvitation]:
        """The open invitations to the tenant, oldest first, or the one of a digest."""
        return await self._sql.fetch_as(OpenInvitation, "invitations_open", digest=digest, now=now)

    async def end_invitation(self, ended: OpenInvitation, *, revoked_by: uuid.UUID | None = None) -> bool:
        """Delete an invitation, which was accepted or revoked; False where it is gone."""
        row = await self._sql.fetch_one("one_time_codes_end", user_ids=[], digest=ended.digest, purposes=["invite"])
        if row is not None and revoked_by is not None:
            details = {"invitation": str(ended.id)}
            await self._audit.record(AuditAct.PERSON_INVITE_REVOKED, actor=revoked_by, details=details)
        return row is not None

    async def end(self, users: Sequence[uuid.UUID]) -> None:
        """End the links and codes that these users were given; recorded as signing them out where there were any."""
        purposes = ["login", "link", "app"]
        rows = await self._sql.fetch("one_time_codes_end", user_ids=list(users), digest=None, purposes=purposes)
        if rows:
            await self._audit.record(AuditAct.SIGNED_OUT, users=users, details={"codes": len(rows)})

    async def find(
        self, purpose: CodePurpose, digest: bytes, now: datetime, *, client: str = "", redeem: bool = False
    ) -> CodeOwner | None:
        """Whose a code is, which stays valid unless it is to `redeem`; None when it is unknown, used, replaced or
        expired, or is no code of the app `client`."""
        query = "one_time_code_redeem" if redeem else "one_time_code_find"
        row = await self._sql.fetch_one(query, purpose=str(purpose), digest=digest, now=now, client=client)
        if row is None:
            return None
        app = None
        if row["key_id"] is not None:
            app = AppGrant(row["key_id"], tuple(row["permissions"]), AppRequest(**json.loads(row["asked"])))
        return CodeOwner(row["id"], row["name"], app)
