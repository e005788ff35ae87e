"""Nexus with both adapters in a process of its own; lines on its input move its clock and its schedule.

Run as `python -m tests.week.service OPTIONS`, with Nexus's settings in the environment. OPTIONS is JSON: the addresses
of the platforms, and the time. It writes `up` when both platforms are connected and caught up. Each line of its input
is JSON with one command of `Service`; when that is done it writes `done`, or `failed` and why. It ends with its input.
"""

import asyncio
import json
import sys
from datetime import datetime
from typing import Any

from bot.console import schedule
from bot.console.logs import configure_logs
from composer.app import App, open_app
from composer.settings import from_environment
from tests.support.adapter_crash import is_up, make_adapter
from tests.support.harness import ManualClock
from tests.support.waiting import until


class Service:
    """The commands, one method each; their arguments are those of the line."""

    def __init__(self, app: App, clock: ManualClock) -> None:
        self._app = app
        self._clock = clock

    async def move(self, to: str) -> None:
        """Move the clock."""
        self._clock.set(datetime.fromisoformat(to))

    async def post_due(self) -> None:
        """Post what is due, as a serving process does every few seconds."""
        await self._app.due_posts.post_due()
        await self.settle()

    async def settle(self) -> None:
        """Wait until everything is answered and indexed, and every answer that an erasure took back is edited."""
        await self._app.take_over()  # what a killed process left
        # A message can be seen in the database a moment before its turn begins.
        await self._until("SELECT count(*) = 0 FROM turns WHERE state <> 'sent'", everywhere=True)
        await self._app.turns.settle()
        for tenant, _ in await self._app.database.tenants():
            await self._app.indexer.catch_up(tenant)
        await self._until("SELECT count(*) = 0 FROM retractions")

    async def job(self, name: str) -> None:
        """Run a job of the schedule."""
        outcome = await schedule.run(self._app, name, self._clock.now())
        assert outcome.state == "done", outcome

    async def stored(self, message: str, text: str = "") -> None:
        """Wait until a message of the platform is stored, with this text in it."""
        query = "SELECT count(*) FROM messages WHERE external_id = $1 AND strpos(text, $2) > 0"
        await self._until(query, message, text)

    async def gone(self, message: str) -> None:
        """Wait until a message of the platform is stored no more."""
        await self._until("SELECT count(*) = 0 FROM messages WHERE external_id = $1", message)

    async def left(self, user: str) -> None:
        """Wait until a user of the platform is in no room any more."""
        query = """
            SELECT count(*) = 0 FROM members AS m JOIN identities AS i USING (tenant_id, user_id)
            WHERE i.external_id = $1 AND m.left_at IS NULL
        """
        await self._until(query, user)

    async def _until(self, query: str, *values: str, everywhere: bool = False) -> None:
        """Wait until a query is true in some tenant, or in all."""
        tenants = await self._app.database.tenants()

        async def holds() -> bool:
            found: list[bool] = []
            for tenant, _ in tenants:
                async with self._app.database._pool.acquire() as connection, connection.transaction():
                    await connection.execute(f"SET LOCAL nexus.tenant = '{tenant}'")
                    found.append(bool(await connection.fetchval(query, *values)))
            return all(found) if everywhere else any(found)

        if tenants:
            await until(holds)


async def main(given: dict[str, Any]) -> None:
    configure_logs("error")
    clock = ManualClock(datetime.fromisoformat(given["now"]))
    async with open_app(from_environment(), clock=clock, index=False) as app:
        adapters = [make_adapter(app, name, given) for name in ("discord", "slack")]
        serving = [asyncio.create_task(adapter.run()) for adapter in adapters]
        await until(lambda: all(is_up(adapter) for adapter in adapters))
        service = Service(app, clock)
        print("up", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            name, arguments = json.loads(line)
            try:
                await getattr(service, name)(**arguments)
            except Exception as error:
                print(f"failed {type(error).__name__}: {' '.join(str(error).split())}", flush=True)
            else:
                print("done", flush=True)
        await app.turns.settle()
        for adapter in adapters:
            await adapter.stop()
        await asyncio.gather(*serving)


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
