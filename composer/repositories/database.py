"""One transaction of one tenant, with a repository for each noun."""

import uuid
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from typing import Protocol

from composer.ports.database import Mode, Statements
from composer.repositories.api_keys import ApiKeys
from composer.repositories.audit import Audit, AuditSigner
from composer.repositories.billing import BillingCustomers
from composer.repositories.compactions import Compactions
from composer.repositories.connected_apps import ConnectedApps
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
from composer.repositories.invites import Invites
from composer.repositories.landmarks import Landmarks
from composer.repositories.learning import LearningBatches
from composer.repositories.maintenance import Maintenance
from composer.repositories.memories import Memories
from composer.repositories.messages import Messages
from composer.repositories.notices import Notices
from composer.repositories.one_time_codes import OneTimeCodes
from composer.repositories.openid_logins import OpenIdLogins
from composer.repositories.operations import OperationTotals
from composer.repositories.own_data import OwnData
from composer.repositories.people import People
from composer.repositories.permissions import Permissions
from composer.repositories.posted_files import PostedFiles
from composer.repositories.projects import Projects
from composer.repositories.quarantine import Quarantine
from composer.repositories.recall import Recall
from composer.repositories.remembered import Remembered
from composer.repositories.reminders import Reminders
from composer.repositories.requests import Requests
from composer.repositories.scheduled import Scheduled
from composer.repositories.sessions import Sessions
from composer.repositories.setting_overrides import SettingOverrides
from composer.repositories.sharing import Sharing
from composer.repositories.structured import Structured
from composer.repositories.summaries import Summaries
from composer.repositories.teams import Teams
from composer.repositories.tenant_figures import TenantFigures
from composer.repositories.tool_reads import ToolReads
from composer.repositories.turns import Turns
from composer.repositories.unread_files import UnreadFiles
from composer.repositories.usage import UsageLedger
from composer.repositories.web_sessions import WebSessions
from composer.repositories.webhooks import Webhooks


class Transaction:
    """A transaction of one tenant. `embedder` identifies the embedder whose vectors are stored and searched with (None:
    no vectors are). `signer` signs the rows of the audit log (None: nothing can be done that is recorded there). A
    repository is made when it is first used: most transactions use a few of them."""

    def __init__(
        self,
        statements: Statements,
        tenant_id: uuid.UUID,
        embedder: str | None,
        signer: AuditSigner | None = None,
        mode: Mode = "read",
    ) -> None:
        self._sql = statements
        self._tenant_id = tenant_id
        self._embedder = embedder
        self._signer = signer
        self._mode = mode

    def require_alone(self) -> None:
        """Return if nothing else of the tenant is written while this transaction lasts. Raises RuntimeError, which is a
        bug of the caller."""
        if self._mode != "alone":
            raise RuntimeError(f"this has to be done in a transaction that is alone, not in one that is {self._mode!r}")

    async def serialize(self) -> None:
        """Wait until every other transaction of the tenant that has called this has ended: what one of them adds up or
        compares, no other one changes meanwhile. Of a tenant without a row, in which nothing was said yet, it waits for
        nobody."""
        await self._sql.execute("tenant_serialize")

    audit = cached_property[Audit](lambda tx: Audit(tx._sql, tx._tenant_id, tx._signer))
    api_keys = cached_property[ApiKeys](lambda tx: ApiKeys(tx._sql, tx.audit))
    billing = cached_property[BillingCustomers](lambda tx: BillingCustomers(tx._sql))
    compactions = cached_property[Compactions](lambda tx: Compactions(tx._sql))
    connected_apps = cached_property[ConnectedApps](lambda tx: ConnectedApps(tx._sql, tx.audit))
    conversations = cached_property[Conversations](lambda tx: Conversations(tx._sql, tx._tenant_id, tx.audit))
    deliveries = cached_property[Deliveries](lambda tx: Deliveries(tx._sql))
    digests = cached_property[Digests](lambda tx: Digests(tx._sql))
    entries = cached_property[Entries](lambda tx: Entries(tx._sql, tx.audit))
    erasure = cached_property[Erasure](lambda tx: Erasure(tx._sql))
    explanations = cached_property[Explanations](lambda tx: Explanations(tx._sql))
    extraction_queue = cached_property[ExtractionQueue](lambda tx: ExtractionQueue(tx._sql))
    facts = cached_property[Facts](lambda tx: Facts(tx._sql))
    gateway_exchanges = cached_property[GatewayExchanges](lambda tx: GatewayExchanges(tx._sql))
    gateway_turns = cached_property[GatewayTurns](lambda tx: GatewayTurns(tx._sql))
    imports = cached_property[Imports](lambda tx: Imports(tx._sql, tx.audit))
    operations = cached_property[OperationTotals](lambda tx: OperationTotals(tx._sql))
    own_data = cached_property[OwnData](lambda tx: OwnData(tx._sql))
    landmarks = cached_property[Landmarks](lambda tx: Landmarks(tx._sql))
    learning = cached_property[LearningBatches](lambda tx: LearningBatches(tx._sql))
    one_time_codes = cached_property[OneTimeCodes](lambda tx: OneTimeCodes(tx._sql, tx.audit))
    openid_logins = cached_property[OpenIdLogins](lambda tx: OpenIdLogins(tx._sql, tx.audit))
    maintenance = cached_property[Maintenance](lambda tx: Maintenance(tx._sql))
    memories = cached_property[Memories](lambda tx: Memories(tx._sql, tx._embedder))
    messages = cached_property[Messages](lambda tx: Messages(tx._sql))
    notices = cached_property[Notices](lambda tx: Notices(tx._sql))
    people = cached_property[People](lambda tx: People(tx._sql, tx._tenant_id, tx.audit))
    posted_files = cached_property[PostedFiles](lambda tx: PostedFiles(tx._sql))
    projects = cached_property[Projects](lambda tx: Projects(tx._sql, tx.audit))
    sharing = cached_property[Sharing](lambda tx: Sharing(tx._sql, tx.audit))
    quarantine = cached_property[Quarantine](lambda tx: Quarantine(tx._sql))
    recall = cached_property[Recall](lambda tx: Recall(tx._sql, tx._embedder))
    remembered = cached_property[Remembered](lambda tx: Remembered(tx._sql))
    reminders = cached_property[Reminders](lambda tx: Reminders(tx._sql))
    requests = cached_property[Requests](lambda tx: Requests(tx._sql))
    scheduled = cached_property[Scheduled](lambda tx: Scheduled(tx._sql))
    sessions = cached_property[Sessions](lambda tx: Sessions(tx._sql))
    settings = cached_property[SettingOverrides](lambda tx: SettingOverrides(tx._sql, tx.audit))
    permissions = cached_property[Permissions](lambda tx: Permissions(tx._sql))
    structured = cached_property[Structured](lambda tx: Structured(tx._sql))
    summaries = cached_property[Summaries](lambda tx: Summaries(tx._sql))
    invites = cached_property[Invites](lambda tx: Invites(tx._sql, tx.audit))
    teams = cached_property[Teams](lambda tx: Teams(tx._sql, tx.audit))
    tenant_figures = cached_property[TenantFigures](lambda tx: TenantFigures(tx._sql))
    tool_reads = cached_property[ToolReads](lambda tx: ToolReads(tx._sql))
    turns = cached_property[Turns](lambda tx: Turns(tx._sql, tx._tenant_id))
    usage = cached_property[UsageLedger](lambda tx: UsageLedger(tx._sql))
    unread_files = cached_property[UnreadFiles](lambda tx: UnreadFiles(tx._sql))
    web_sessions = cached_property[WebSessions](lambda tx: WebSessions(tx._sql, tx.audit))
    webhooks = cached_property[Webhooks](lambda tx: Webhooks(tx._sql, tx.audit))


class Database(Protocol):
    """The database. Raises Unavailable with one sentence when it does not answer."""

    def transaction(self, tenant_id: uuid.UUID, mode: Mode = "share") -> AbstractAsyncContextManager[Transaction]:
        """A transaction that sees one tenant. It commits when its block ends, and rolls back if that raises. One that
        is not `read` waits for those that it may not run beside, and raises Unavailable where that takes long; so none
        is begun within another one of the tenant."""
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

    async def tenants_with_open_work(self) -> list[uuid.UUID]:
        """The tenants that have open turns, or files to be read."""
        ...
