"""The facts that a person's permissions are judged by (composer/rights/relations.py)."""

import uuid
from collections.abc import Sequence

from composer.model import Conversation, Role
from composer.ports.database import Row, Statements
from composer.rights import project_names
from composer.rights.relations import ActorFacts, LinkedAccount
from composer.text.zones import zone_named
from composer.visibility import AccessContext, ProjectFacts


class Permissions:
    """Reads the facts that permissions are judged by."""

    def __init__(self, statements: Statements) -> None:
        self._sql = statements

    async def facts(self, conversation: Conversation, asker: uuid.UUID, projects: Sequence[str]) -> ActorFacts:
        """The facts as of now, in one query. `projects` are names that may be meant: the first of them that is one of
        the asker's projects counts."""
        slugs = [project_names.slug_of(name) for name in projects]
        row = await self._sql.fetch_one("actor_facts", conversation_id=conversation.id, asker_id=asker, slugs=slugs)
        assert row is not None  # the conversation was resolved before, and is never deleted
        access = AccessContext(
            Conversation(
                conversation.id,
                conversation.tenant_id,
                conversation.kind,
                row["name"],
                row["namespace"],
                row["private"],
                row["room_id"],
                conversation.thread,
                conversation.user_id,
                conversation.agent_id,
                row["project_id"],
                conversation.version,
            ),
            asker,
            row["asker_admin"],
            row["joined"],
            project=_current_project(row),
            linked={asker: tuple(row["linked_users"])} if row["linked_users"] else {},
            zone=zone_named(row["zone"]),
        )
        own = [
            ProjectFacts(id, slug, isolated, Role(role), admins=admins)
            for id, slug, isolated, role, admins in row["named_projects"]
        ]
        by_name = {name: tuple(p for p in own if project_names.names(name, p.slug, p.id)) for name in projects}
        project_name = next((name for name, found in by_name.items() if found), next(iter(projects), ""))
        known = {project.id: project.slug for project in (*own, *filter(None, [access.project]))}
        names = project_names.distinct_names(known.items())
        return ActorFacts(
            access,
            bool(row["opened_room"]),
            by_name.get(project_name, ()),
            project_name,
            given=row["pooled"],
            names=names,
        )

    async def account(self, user: uuid.UUID, other: uuid.UUID) -> LinkedAccount | None:
        """Another user as an account that may be linked to this one; None for an unknown one."""
        row = await self._sql.fetch_one("account_to_link", user_id=user, other_id=other)
        if row is None:
            return None
        return LinkedAccount(row["name"], row["platform"] or "", row["workspace"] or "", row["same_place"])


def _current_project(row: Row) -> ProjectFacts | None:
    """The project of the conversation."""
    if row["project_id"] is None:
        return None
    role = None if row["project_role"] is None else Role(row["project_role"])
    slug, isolated = row["project_slug"], row["project_isolated"]
    return ProjectFacts(row["project_id"], slug, isolated, role, admins=row["project_admins"])
