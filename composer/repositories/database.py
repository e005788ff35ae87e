"""One transaction of one tenant, with a repository for each noun."""

import uuid
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from composer.ports.database import Statements
from composer.repositories.api_keys import ApiKeys
from composer.repositories.api_requests import ApiRequests
from composer.repositories.audit import Audit, AuditSigner
from composer.repositories.commands import Commands
from composer.repositories.compactions import Compactions
from composer.repositories.connected_apps import ConnectedApps
from composer.repositories.connections import Connections
from composer.repositories.conversations import Conversations
from composer.repositories.deliveries import Deliveries
from composer.repositories.digests import Digests
from composer.repositories.entries import Entries
from composer.repositories.erasure import Erasure
from composer.repositories.explanations import Explanations
from composer.repositories.extraction_queue import ExtractionQueue
from composer.repositories.facts import Facts
from composer.repositories.gateway_exchanges import GatewayExchanges
from composer.repositories.gateway_turns import GatewayTurns
from composer.repositories.imports import Imports
from composer.repositories.landmarks import Landmarks
from composer.repositories.login_links import LoginLinks
from composer.repositories.maintenance import Maintenance
from composer.repositories.memories import Memories
from composer.repositories.messages import Messages
from composer.repositories.notices import Notices
from composer.repositories.openid_logins import OpenIdLogins
from composer.repositories.operations import OperationTotals
from composer.repositories.own_data import OwnData
from composer.repositories.people import People
from composer.repositories.permissions import Permissions
from composer.repositories.personal_settings import OwnSettings
from composer.repositories.posted_files import PostedFiles
from composer.repositories.projects import Projects
from composer.repositories.quarantine import Quarantine
from composer.repositories.recall import Recall
from composer.repositories.reminders import Reminders
from composer.repositories.scheduled import Scheduled
from composer.repositories.sessions import Sessions
from composer.repositories.setting_overrides import SettingOverrides
from composer.repositories.sharing import Sharing
from composer.repositories.structured import Structured
from composer.repositories.summaries import Summaries
from composer.repositories.teams import Teams
from composer.repositories.tenant_figures import TenantFigures
from composer.repositories.turns import Turns
from composer.repositories.usage import UsageLedger
from composer.repositories.voice_notes import StoredVoiceNotes
from composer.repositories.web_sessions import WebSessions


class Transaction:
    """A transaction of one tenant. `embedder` identifies the embedder whose vectors are stored and searched with (None:
    no vectors are). `signer` signs the rows of the audit log (None: nothing can be done that is recorded there)."""

    def __init__(
        self, statements: Statements, tenant_id: uuid.UUID, embedder: str | None, signer: AuditSigner | None = None
    ) -> None:
        self.api_requests = ApiRequests(statements)
        self.audit = Audit(statements, tenant_id, signer)
        self.api_keys = ApiKeys(statements, self.audit)
        self.commands = Commands(statements)
        self.compactions = Compactions(statements)
        self.connected_apps = ConnectedApps(statements, self.audit)
        self.connections = Connections(statements)
        self.conversations = Conversations(statements, tenant_id, self.audit)
        self.deliveries = Deliveries(statements)
        self.digests = Digests(statements)
        self.entries = Entries(statements, self.audit)
        self.erasure = Erasure(statements)
        self.explanations = Explanations(statements)
        self.extraction_queue = ExtractionQueue(statements)
        self.facts = Facts(statements)
        self.gateway_exchanges = GatewayExchanges(statements)
        self.gateway_turns = GatewayTurns(statements)
        self.imports = Imports(statements, self.audit)
        self.operations = OperationTotals(statements)
        self.own_data = OwnData(statements)
        self.own_settings = OwnSettings(statements, self.audit)
        self.landmarks = Landmarks(statements)
        self.login_links = LoginLinks(statements, self.audit)
        self.openid_logins = OpenIdLogins(statements, self.audit)
        self.maintenance = Maintenance(statements)
        self.memories = Memories(statements, embedder)
        self.messages = Messages(statements)
        self.notices = Notices(statements)
        self.people = People(statements, self.audit)
        self.posted_files = PostedFiles(statements)
        self.projects = Projects(statements, self.audit)
        self.sharing = Sharing(statements, self.audit)
        self.quarantine = Quarantine(statements)
        self.recall = Recall(statements, embedder)
        self.reminders = Reminders(statements)
        self.scheduled = Scheduled(statements)
        self.sessions = Sessions(statements)
        self.settings = SettingOverrides(statements, self.audit)
        self.permissions = Permissions(statements)
        self.structured = Structured(statements)
        self.summaries = Summaries(statements)
        self.teams = Teams(statements, self.audit)
        self.tenant_figures = TenantFigures(statements)
        self.turns = Turns(statements, tenant_id)
        self.usage = UsageLedger(statements)
        self.voice_notes = StoredVoiceNotes(statements)
        self.web_sessions = WebSessions(statements, self.audit)


class Database(Protocol):
    """The database. Raises Unavailable with one sentence when it does not answer."""

    def transaction(self, tenant_id: uuid.UUID, *, snapshot: bool = False) -> AbstractAsyncContextManager[Transaction]:
        """A transaction that sees one tenant. It commits when its block ends, and rolls back if that raises.
        `snapshot`: read-only, with all reads as of one moment."""
        ...

    def statement(self, tenant_id: uuid.UUID) -> AbstractAsyncContextManager[Transaction]:
        """One statement that sets its tenant itself, without a transaction around it. Any other one sees no tenant."""
        ...

    def installation(self) -> AbstractAsyncContextManager[Statements]:
        """Statements that see no tenant, for tables of the installation."""
        ...

    async def tenants(self) -> list[tuple[uuid.UUID, str]]:
        """Ids and slugs of all tenants."""
        ...
