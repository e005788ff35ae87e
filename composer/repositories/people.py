"""The tenant and its people: users, their identities on the platforms, and the links between them."""

import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

from composer.model import API, DEFAULT_SETTINGS, Agent, PersonalSettings, Role, Trust, User
from composer.ports.database import Statements
from composer.repositories.audit import Audit, AuditAct
from composer.repositories.conversations import ConversationRow, locked_conversations
from composer.text.zones import zone_named
from composer.visibility import EntryAccess, ProjectFacts

NAMELESS: Final = "someone"  # stands where an erased name stood; the person's next message brings it back


@dataclass(frozen=True, slots=True)
class Identity:
    """The user behind a platform's id. Nothing of someone who `opted_out` is stored. `trust`: what the platform said of
    them when it last did, and of which time; None: it has not yet."""

    user_id: uuid.UUID
    opted_out: bool
    name: str
    trust: Trust | None = None
    trust_stated_at: datetime | None = None

    @property
    def nameless(self) -> bool:
        """Whether their name was erased."""
        return self.name == NAMELESS


@dataclass(frozen=True, slots=True)
class StatedTrust:
    """What a platform says of a person, member or guest, as of a time, and the name of their time zone ("": it does not
    say, or it is no zone)."""

    trust: Trust
    at: datetime
    timezone: str = ""


@dataclass(frozen=True, slots=True)
class KnownPerson:
    """Somebody whom one may invite: one of their users, its name, and the chat platforms that it is on."""

    id: uuid.UUID
    name: str
    platforms: tuple[str, ...]


class People:
    """The tenant, its agents and its users. Platforms name users by external ids."""

    def __init__(self, statements: Statements, tenant_id: uuid.UUID, audit: Audit) -> None:
        self._sql = statements
        self._tenant_id = tenant_id
        self._audit = audit

    async def ensure_tenant(
        self,
        slug: str,
        platform: str,
        workspace: str,
        agents: Sequence[Agent],
        now: datetime,
        external_ids: Sequence[str] = (),
        conversations: Sequence[uuid.UUID] = (),
        senders: Collection[str] = (),
    ) -> tuple[dict[str, Identity], dict[uuid.UUID, ConversationRow]]:
        """Create the tenant and its agents if they do not exist, and lock conversations as
        `Conversations.lock` does: none of them if one of the senders is to be created yet, which comes first. Returns
        those of the people whom the workspace knows, by external id, and the rows of the conversations."""
        row = await self._sql.fetch_one(
            "tenant_ensure",
            slug=slug,
            platform=platform,
            workspace=workspace,
            agent_ids=[agent.id for agent in agents],
            agent_slugs=[agent.slug for agent in agents],
            agent_names=[agent.name for agent in agents],
            now=now,
            external_ids=list(external_ids),
            ids=list(conversations),
            sender_ids=list(senders),
        )
        if row is None:
            return {}, {}
        people = {external_id: _identity(*identity) for external_id, *identity in row["people"]}
        return people, locked_conversations(row["conversations"], self._tenant_id)

    async def workspaces(self) -> list[tuple[str, str]]:
        """(platform, name) of the tenant's workspaces."""
        return [(row["platform"], row["workspace"]) for row in await self._sql.fetch("workspaces_all")]

    async def ensure_users(
        self,
        platform: str,
        workspace: str,
        people: Mapping[str, tuple[uuid.UUID, str]],
        now: datetime,
        stated: Mapping[str, StatedTrust] | None = None,
    ) -> None:
        """Create users that do not exist: (id, name) by external id. `stated`: what the platform says of some."""
        stated = stated or {}
        await self._sql.execute(
            "users_ensure",
            platform=platform,
            workspace=workspace,
            external_ids=list(people),
            ids=[user for user, _ in people.values()],
            names=[name for _, name in people.values()],
            trusts=[str(stated[name].trust) if name in stated else None for name in people],
            stated_at=[stated[name].at if name in stated else None for name in people],
            timezones=[_zone(stated[name]) if name in stated else None for name in people],
            now=now,
        )

    async def set_trust(self, platform: str, workspace: str, stated: Mapping[str, StatedTrust]) -> list[uuid.UUID]:
        """Record what a platform says of people, by external id. Who is not known yet, and of whom it has said
        something of a later time, stay as they are. Returns the users who are in another time zone now."""
        ids = sorted(stated)
        rows = await self._sql.fetch(
            "identities_set_trust",
            platform=platform,
            workspace=workspace,
            external_ids=ids,
            trusts=[str(stated[id].trust) for id in ids],
            stated_at=[stated[id].at for id in ids],
            timezones=[_zone(stated[id]) for id in ids],
        )
        return [row["moved"] for row in rows if row["moved"] is not None]

    async def find_user_ids(self, platform: str, workspace: str, external_ids: Sequence[str]) -> dict[str, uuid.UUID]:
        """User ids by external id. Unknown ones are left out."""
        rows = await self._sql.fetch(
            "identities_find", platform=platform, workspace=workspace, external_ids=list(external_ids)
        )
        return {row["external_id"]: row["id"] for row in rows}

    async def known_in(self, platform: str, workspace: str) -> tuple[str, ...]:
        """The ids on a platform of everybody who is known in a workspace."""
        rows = await self._sql.fetch("identities_of_workspace", platform=platform, workspace=workspace, holding=False)
        return tuple(row["external_id"] for row in rows)

    async def holders(self, platform: str, workspace: str) -> tuple[str, ...]:
        """The ids on the platform of everybody known in a workspace whose memory a key, a web session, a login, a
        login link or a code that links accounts opens, or of which a webhook is told."""
        rows = await self._sql.fetch("identities_of_workspace", platform=platform, workspace=workspace, holding=True)
        return tuple(row["external_id"] for row in rows)

    async def chat_accounts(self, user: uuid.UUID, dm: uuid.UUID | None) -> list[tuple[str, str, str]]:
        """The accounts of a person on chat platforms, as (platform, workspace, id there). With a conversation as `dm`
        none, unless it is a DM of this user that reads rooms."""
        rows = await self._sql.fetch("chat_accounts", user_id=user, dm_id=dm)
        return [(row["platform"], row["workspace"], row["external_id"]) for row in rows]

    async def find_user(self, platform: str, workspace: str, external_id: str) -> User | None:
        """The user behind a platform's id."""
        return await self._sql.fetch_one_as(
            User, "identities_find", platform=platform, workspace=workspace, external_ids=[external_id]
        )

    async def home(self, user: uuid.UUID) -> tuple[str, str] | None:
        """The platform and the workspace in which a user is known, apart from the API; a chat platform before the
        terminal. None for an unknown user."""
        row = await self._sql.fetch_one("user_home", user_id=user)
        return None if row is None else (row["platform"], row["workspace"])

    async def trust(self, user: uuid.UUID) -> Trust:
        """How far a user is trusted over the API, which does not know it: as each of their platforms said when it last
        did. A guest where nothing is known of it."""
        return await self._trust([user], homes=False)

    async def least_trust(self, users: Sequence[uuid.UUID]) -> Trust:
        """How far the person who is all of these users is trusted: as platforms say of all of their accounts there. A
        guest where none says it."""
        return await self._trust(users, homes=True)

    async def _trust(self, users: Sequence[uuid.UUID], *, homes: bool) -> Trust:
        trusted = await self._sql.fetch_value("users_trusted", user_ids=list(users), homes=homes)
        return Trust.MEMBER if trusted else Trust.GUEST

    async def names(self, users: Sequence[uuid.UUID]) -> dict[uuid.UUID, str]:
        """Names by user id."""
        return {row["id"]: row["name"] for row in await self._sql.fetch("users_get", ids=list(users))}

    async def find_known(
        self,
        beginning: str,
        own: Sequence[uuid.UUID],
        *,
        rooms: Sequence[uuid.UUID],
        teams: Sequence[uuid.UUID],
        projects: Sequence[uuid.UUID],
        public: bool,
        limit: int,
    ) -> list[KnownPerson]:
        """The people a word of whose name begins so (in lower case), by name, without the users `own`: who is in one of
        these rooms, teams and projects, and with `public` in a public room, or on no chat platform."""
        return await self._sql.fetch_as(
            KnownPerson,
            "people_known",
            beginning=beginning,
            user_ids=list(own),
            room_ids=list(rooms),
            team_ids=list(teams),
            project_ids=list(projects),
            public=public,
            nameless=NAMELESS,
            limit=limit,
        )

    async def every_name(self) -> list[str]:
        """The names of everybody in the tenant."""
        return [row["name"] for row in await self._sql.fetch("names_all")]

    async def admins(self) -> list[tuple[uuid.UUID, str, bool]]:
        """(id, name, whether they have ever signed in to the web pages) of the tenant's admins, oldest first."""
        rows = await self._sql.fetch("admins_list")
        return [(row["id"], row["name"], row["signed_in"]) for row in rows]

    async def join(self, slug: str, user: uuid.UUID, name: str, invitation: uuid.UUID, now: datetime) -> None:
        """Create a person who was invited, as a member whom the API knows."""
        stated = {str(user): StatedTrust(Trust.MEMBER, now)}
        await self.ensure_users(API, slug, {str(user): (user, name)}, now, stated)
        details = {"invitation": str(invitation)}
        await self._audit.record(AuditAct.PERSON_JOINED, actor=user, users=[user], details=details)

    async def is_admin(self, user: uuid.UUID) -> bool:
        """Whether a user is an admin of the tenant; False for an unknown one."""
        return any(row["admin"] for row in await self._sql.fetch("users_get", ids=[user]))

    async def stored_names(self, users: Sequence[uuid.UUID]) -> list[str]:
        """Every name under which something of these people is stored."""
        return [row["name"] for row in await self._sql.fetch("names_stored", user_ids=list(users))]

    async def messages_mentioning(self, users: Sequence[uuid.UUID]) -> list[uuid.UUID]:
        """Ids of the messages that mention any of these people."""
        return [row["id"] for row in await self._sql.fetch("messages_mentioning", user_ids=list(users))]

    async def blank_names(self, users: Sequence[uuid.UUID], names: Sequence[str]) -> None:
        """Replace the names of users, also where they settled a landmark."""
        await self._sql.execute("users_blank_names", user_ids=list(users), names=list(names), blank=NAMELESS)

    async def restore_names(self, names: Mapping[uuid.UUID, str]) -> None:
        """Name users again whose names were erased."""
        await self._sql.execute("users_restore_names", ids=list(names), names=list(names.values()), blank=NAMELESS)

    async def set_admin(self, user: uuid.UUID, admin: bool) -> None:
        """Make a user an admin of the tenant, or no longer one: then the invitations that they made end for good,
        and all links that sign in others."""
        await self._sql.execute(
            "user_set", user_id=user, admin=admin, reads_rooms=None, settings=None, settings_at=None
        )
        await self._audit.record(AuditAct.ADMIN_GRANTED if admin else AuditAct.ADMIN_REVOKED, users=[user])

    async def disabled_since(self, user: uuid.UUID) -> datetime | None:
        """Since when a person is disabled, with any user that they are; None if they are not."""
        found: datetime | None = await self._sql.fetch_value("user_disabled", user_id=user)
        return found

    async def set_disabled(self, user: uuid.UUID, disabled_at: datetime | None) -> None:
        """Disable a person, with all users that they are, or (None) enable them again."""
        await self._sql.execute("person_set", user_id=user, opted_out=None, disabled_at=disabled_at)
        act = AuditAct.PERSON_ENABLED if disabled_at is None else AuditAct.PERSON_DISABLED
        await self._audit.record(act, users=[user])

    async def has_opted_out(self, users: Sequence[uuid.UUID]) -> bool:
        """Whether a person, who has these users, has opted out of being stored."""
        return any(row["opted_out"] for row in await self._sql.fetch("users_get", ids=list(users)))

    async def set_opted_out(self, user: uuid.UUID, opted_out: bool) -> None:
        """Record that a person opted out of being stored, or in again, with all users that they are."""
        await self._sql.execute("person_set", user_id=user, opted_out=opted_out, disabled_at=None)
        await self._audit.record(AuditAct.PERSON_OPTED_OUT if opted_out else AuditAct.PERSON_OPTED_IN, users=[user])

    async def set_reads_rooms(self, user: uuid.UUID, reads_rooms: bool) -> None:
        """Record whether this user's own DMs read the rooms that they are in. Linked users keep their own setting: what
        somebody sees on one platform, they did not ask to see on the other."""
        await self._sql.execute(
            "user_set", user_id=user, admin=None, reads_rooms=reads_rooms, settings=None, settings_at=None
        )
        await self._audit.record(AuditAct.PERSON_ROOMS_ON if reads_rooms else AuditAct.PERSON_ROOMS_OFF, users=[user])

    async def set_own(self, user: uuid.UUID, own: PersonalSettings, changed: Sequence[str], now: datetime) -> None:
        """Set everything that a person, by one of their users, has set for themselves. `changed` names the fields that
        are new. It is read with the facts that access is judged by (`entry_access`), so that it holds for the next
        request, in every process."""
        values = {name: value for name, value in asdict(own).items() if name != "changed_at"}
        await self._sql.execute(
            "user_set", user_id=user, admin=None, reads_rooms=None, settings=json.dumps(values), settings_at=now
        )
        details = dict.fromkeys(changed, True)
        await self._audit.record(AuditAct.OWN_SETTINGS, actor=user, users=[user], details=details)

    async def serialize(self, users: Sequence[uuid.UUID]) -> None:
        """Wait until every other transaction that has called this for a person, who has these users, has ended: what
        one of them counts, no other one adds to meanwhile."""
        await self._sql.execute("user_serialize", user_id=min(users))

    async def linked_users(self, users: Sequence[uuid.UUID]) -> dict[uuid.UUID, tuple[uuid.UUID, ...]]:
        """The other users of the same person, for each user that has any."""
        found: dict[uuid.UUID, tuple[uuid.UUID, ...]] = {}
        for row in await self._sql.fetch("users_linked", user_ids=list(users)):
            found[row["id"]] = (*found.get(row["id"], ()), row["other"])
        return found

    async def entry_access(
        self,
        tenant_id: uuid.UUID,
        user: uuid.UUID,
        vendor: str,
        grants: frozenset[str],
        project: uuid.UUID | None = None,
    ) -> EntryAccess | None:
        """The facts that access to a person's entries is judged by, as of now; None for an unknown user. `vendor`,
        `grants` and `project` are as in EntryAccess."""
        row = await self._sql.fetch_one("entry_access", user_id=user)
        if row is None:
            return None
        own = DEFAULT_SETTINGS
        if row["settings"] is not None:
            own = PersonalSettings(**json.loads(row["settings"]), changed_at=row["settings_at"])
        return EntryAccess(
            tenant_id,
            user,
            vendor,
            grants,
            tuple(row["linked"]),
            tuple(row["teams"]),
            tuple(row["shared_with"]),
            tuple(ProjectFacts(id, slug, isolated, Role(role)) for id, slug, isolated, role in row["projects"]),
            project,
            own,
            row["name"],
            zone_named(own.timezone or row["platform_zone"]),
        )

    async def link(self, user: uuid.UUID, other: uuid.UUID) -> bool:
        """Make two users, with all users linked to them, one person. Returns whether that person has opted out: with
        one of the users means with all."""
        rows = await self._sql.fetch("users_link", user_id=user, other_id=other)
        await self._audit.record(AuditAct.PERSON_LINKED, users=[user, other])
        return any(row["opted_out"] for row in rows)

    async def unlink(self, user: uuid.UUID) -> None:
        """Make a user a person of their own again. Whoever opted out stays so, as each of the users."""
        await self._sql.execute("users_unlink", user_id=user)
        await self._audit.record(AuditAct.PERSON_UNLINKED, users=[user])


def _zone(said: StatedTrust) -> str | None:
    return said.timezone if zone_named(said.timezone) else None


def _identity(
    user_id: uuid.UUID, opted_out: bool, name: str, trust: str | None, stated_at: datetime | None
) -> Identity:
    return Identity(user_id, opted_out, name, None if trust is None else Trust(trust), stated_at)
