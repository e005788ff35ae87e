"""Every mutant of a statement is one that the database takes: else any test would notice it, for the wrong reason."""

import asyncpg

from sql.loader import parse_query, with_included
from tests.deep.integration.test_schema import connected
from tests.mutants.mutant import QUERIES, ROOT, load, statements


async def test_every_mutant_of_a_statement_fits_the_schema(fresh_url: str) -> None:
    wrong = []
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / QUERIES).glob("*.sql")]
    sources = {name: query.source for text in texts for name, query in statements(text).items()}
    async with connected(fresh_url, "nexus_service") as connection:
        for mutant in (mutant for mutant in load() if mutant.file.startswith(QUERIES)):
            text = (ROOT / mutant.file).read_text(encoding="utf-8")
            before, after = statements(text), statements(mutant.mutated(text))
            changed = [query for name, query in after.items() if query.sql != before[name].sql]
            assert len(changed) == 1, f"{mutant.name} changes {len(changed)} statements"
            whole = with_included(changed[0].source, sources | {name: query.source for name, query in after.items()})
            try:
                await connection.prepare(parse_query(changed[0].name, whole).sql)
            except asyncpg.PostgresError as error:
                wrong.append(f"{mutant.name}: {error}")
    assert not wrong, "\n".join(wrong)
