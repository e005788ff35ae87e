"""The ends of the audit log's chains, as they are remembered beside the database."""

import uuid
from pathlib import Path

from composer.ports.audit import Head
from composer.stores.audit_keys import AuditHeadsFile


def test_an_earlier_end_never_replaces_a_later_one(tmp_path: Path) -> None:
    tenant, heads = uuid.uuid4(), AuditHeadsFile(tmp_path)
    for number in (2, 7, 5, 7):
        heads.set(tenant, Head(number, bytes([number, len(tmp_path.parts)])))
    assert heads.get(tenant) == Head(7, bytes([7, len(tmp_path.parts)]))
    heads.clear()
    heads.set(tenant, Head(1, b"a"))
    assert heads.get(tenant) == Head(1, b"a")
