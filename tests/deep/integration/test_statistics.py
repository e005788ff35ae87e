"""The planner's statistics: samples of what columns hold, which stay when the rows are gone. They hold no word of
anybody."""

import re
from typing import Final

import asyncpg
import pytest

from bot.console.doctor import check_receipt
from composer.settings import Settings
from tests.support.api import key_of
from tests.support.entries import Hub
from tests.support.harness import AppHarness

# Of tenants' tables: columns of texts that hold words and ids of ours, or of platforms, and no text of a person.
OURS: Final = frozenset(
    {
        "act",
        "adapter",
        "external_id",
        "item_kind",
        "kind",
        "namespace",
        "platform",
        "role",
        "source_kind",
        "state",
        "tier",
        "trust",
        "vendors",
        "visibility",
        "workspace",
    }
)
OF_NUMBERS: Final = frozenset(
    {
        "uuid",
        "uuid[]",
        "integer",
        "bigint",
        "smallint",
        "boolean",
        "date",
        "numeric",
        "double precision",
        "timestamp with time zone",
        "interval",
        "xid8",
        "pg_snapshot",
    }
)
SAMPLES: Final = (
    "SELECT s.tablename || '.' || s.attname AS column, to_jsonb(s)::text AS sample FROM pg_stats AS s "
    "WHERE s.schemaname = 'public'"
)


@pytest.fixture
def hub(harness: AppHarness) -> Hub:
    return Hub(harness)


async def test_no_column_of_words_is_sampled(raw: asyncpg.Connection) -> None:
    """A new column of texts has to be listed here and in sql/schema.sql, or is not sampled."""
    rows = await raw.fetch(
        "SELECT c.relname, a.attname, format_type(a.atttypid, NULL) AS type, a.attstattarget AS target "
        "FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
        "WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'm', 'p') "
        "AND EXISTS (SELECT FROM pg_attribute AS t WHERE t.attrelid = c.oid AND t.attname = 'tenant_id')"
    )
    sampled = {
        f"{row['relname']}.{row['attname']}"
        for row in rows
        if row["target"] != 0 and row["type"] not in OF_NUMBERS and row["attname"] not in OURS
    }
    assert sampled == set()
    assert {row["attname"] for row in rows if row["target"] == 0} >= {"text", "title", "content", "value", "embedding"}


async def test_no_index_of_an_expression_and_no_other_statistics_sample_words(raw: asyncpg.Connection) -> None:
    """Each would have statistics of its own. Those of times hold no words."""
    assert (
        await raw.fetch("""
        SELECT i.indexrelid::regclass::text FROM pg_index AS i JOIN pg_attribute AS a ON a.attrelid = i.indexrelid
        WHERE i.indexprs IS NOT NULL AND i.indrelid >= 16384 AND i.indkey[a.attnum - 1] = 0
              AND a.atttypid <> 'timestamptz'::regtype
    """)
        == []
    )
    assert await raw.fetch("SELECT 1 FROM pg_statistic_ext") == []


async def test_what_people_write_is_in_no_statistics_before_and_after_it_is_forgotten(
    harness: AppHarness, hub: Hub, raw: asyncpg.Connection, settings: Settings
) -> None:
    await harness.command("alice", "/nexus project create zqslug", dm="nexus")
    for n in range(12):
        await harness.say(f"zqname{n % 3}", f"zqword{n % 5} the salary is zqpay{n % 2}", room="zqroom")
        await harness.say("alice", f"zqdm{n % 4} I like zqtea{n}", dm="nexus")
        await hub.write("alice", f"zqnote{n}", title="zqtitle", tags=("zqtag",), metadata={"zqkey": "zqvalue"})
    await harness.command("alice", "/nexus fact set zqfact.code zq4711", dm="nexus")
    await harness.command("alice", "/nexus landmark add zqlandmark flies", room="zqroom")
    await harness.command("alice", "/nexus remember zqmemory stays", dm="nexus")
    await key_of(harness, "alice", "claude")
    await raw.execute("ANALYZE")
    samples = {row["column"]: row["sample"] for row in await raw.fetch(SAMPLES)}
    assert {"messages.user_id", "recall_terms.namespace"} <= samples.keys(), "there are statistics"
    # The terminal's rooms and people have no other ids than their names; those of platforms are numbers.
    given = {"identities.external_id"}
    assert [name for name, sample in samples.items() if name not in given and re.search("zq", sample)] == []
    running = await raw.fetch("SELECT query FROM pg_stat_activity WHERE query ~ 'zq[a-z]+[0-9]'")
    assert running == [], "what is asked of the database carries no words"

    receipt = (await harness.command("alice", "/nexus forget everything --yes", dm="nexus")).text
    found = re.search(r"Receipt: ([0-9a-f]+)", receipt)
    assert found is not None, receipt
    [check] = [each for each in await check_receipt(settings, found[1]) if each.name == "erased"]
    assert check.ok, check.detail
    await raw.execute("ALTER TABLE memories ALTER COLUMN text SET STATISTICS 100")
    await hub.write("bob", "a note")
    await hub.write("bob", "another note")
    await raw.execute("ANALYZE")
    [check] = [each for each in await check_receipt(settings, found[1]) if each.name == "erased"]
    assert not check.ok
    assert "statistics of memories.text" in check.detail
