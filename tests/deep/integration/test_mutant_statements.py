"""Every mutant of a statement is one that the database takes: else any test would notice it, for the wrong reason."""

import re

import asyncpg

from sql.loader import parse_query, with_included
from tests.deep.integration.test_schema import connected
from tests.mutants.mutant import QUERIES, ROOT, load, statements


async def test_every_mutant_of_a_statement_fits_the_schema(fresh_url: str) -> None:
    wrong = []
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / QUERIES).glob("*.sql")]
    parts = {name for text in texts for name in re.findall(r"^-- part: (\w+)", text, re.MULTILINE)}
    sources = {name: query.source for text in texts for name, query in statements(text).items()}
    async with connected(fresh_url, "nexus_service") as connection:
        for mutant in (mutant for mutant in load() if mutant.file.startswith(QUERIES)):
            text = (ROOT / mutant.file).read_text(encoding="utf-8")
            before, after = statements(text), statements(mutant.mutated(text))
            changed = [name for name, query in after.items() if query.sql != before[name].sql]
            assert len(changed) == 1, f"{mutant.name} changes {len(changed)} statements"
            mutated = sources | {name: query.source for name, query in after.items()}
            # A part is no statement: the first one that it is in is asked.
            name = next(
                name
                for name in (changed if changed[0] not in parts else sorted(sources.keys() - parts))
                if with_included(sources[name], sources) != with_included(sources[name], mutated) or name in changed
            )
            try:
                await connection.prepare(parse_query(name, with_included(mutated[name], mutated)).sql)
            except asyncpg.PostgresError as error:
                wrong.append(f"{mutant.name}: {error}")
    assert not wrong, "\n".join(wrong)
