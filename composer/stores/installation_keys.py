"""The keys of the installation that a database belongs to: a lost key is asked for, and never replaced unsaid."""

from composer.errors import Misconfigured
from composer.repositories.database import Database
from composer.settings import Settings
from composer.settings.server_urls import ServerUrl
from composer.stores.audit_keys import KEY_FILE, AuditKeyRing
from composer.stores.database.postgres import PostgresDatabase


async def key_ring(settings: Settings, url: ServerUrl) -> AuditKeyRing:
    """The keys of the audit log over a migrated database, as the service sees it. One is made where the log is empty.

    Raises Misconfigured when there is none here, but the log has signed rows, and as `AuditKeyRing.load`.
    """
    path = settings.home / KEY_FILE
    if settings.audit_key is None and not path.exists():
        database = await PostgresDatabase.open(url, connections=1)
        try:
            signed = await latest_keys(database)
        finally:
            await database.close()
        if signed:
            raise Misconfigured(
                f"{path}, the key of the audit log, is missing, and the log has rows that it signed: put your copy "
                "of it back, or set NEXUS_AUDIT_KEY. If it is lost for good, make a new one (openssl rand -hex 32 > "
                f"{path}); what the lost key signed can't be verified then."
            )
    return AuditKeyRing.load(settings)


async def latest_keys(database: Database) -> set[str]:
    """The ids of the keys that signed the end of each tenant's log, and its next row to seal; empty if none has any."""
    found = set[str]()
    for tenant, _ in await database.tenants():
        async with database.transaction(tenant, "read") as tx:
            end = await tx.audit.last_seal() or await tx.audit.anchor()
            found |= {row.key_id for row in (end, *await tx.audit.unsealed(1)) if row is not None}
    return found
