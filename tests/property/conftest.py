"""Fixture: one pair of running products for all worlds of a module; each world has tenants of its own."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import structlog

from composer.stores.embedded.servers import Servers
from tests.property.product import Product, silence_logs, two_products


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def products(
    servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Product, Product]]:
    """Start two equal products, each on a database of its own."""
    silence_logs()
    try:
        async with two_products(servers, tmp_path_factory.mktemp("home")) as pair:
            yield pair
    finally:
        structlog.reset_defaults()
