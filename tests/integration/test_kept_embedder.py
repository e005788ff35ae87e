"""An installation goes on with the embedder of its vectors, whatever is the default by now."""

import pytest

from composer.errors import Misconfigured
from composer.operations.doctor import Doctor
from composer.settings import Settings
from composer.stores.models import configured, e5
from composer.stores.models.minilm import MiniLM
from tests.support.embedder import HashedWords
from tests.support.harness import open_harness


class Newer(MiniLM):
    """The default of a later version."""

    name = "newer"


async def test_a_start_goes_on_with_the_embedder_of_the_vectors(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    unset = settings.model_copy(update={"embedder": None})
    monkeypatch.setattr(configured, "default_embedder", MiniLM)
    async with open_harness(unset) as harness:
        assert harness.app.embedder.name == "minilm"
    monkeypatch.setattr(configured, "default_embedder", Newer)
    async with open_harness(unset) as harness:
        assert harness.app.embedder.name == "minilm"
    async with Doctor(unset) as doctor:
        await doctor.servers()
        assert "minilm, 384 dimensions" in await doctor.embedder(stored=True)


async def test_a_new_database_takes_the_default(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configured, "default_embedder", Newer)
    async with open_harness(settings.model_copy(update={"embedder": None})) as harness:
        assert harness.app.embedder.name == "newer"


async def test_an_embedder_that_cannot_be_had_here_is_named(settings: Settings) -> None:
    async with open_harness(settings, embedder=HashedWords()):
        pass
    with pytest.raises(Misconfigured, match=r"embedder hashed-words: set NEXUS_EMBEDDER to it, .* nexus reembed"):
        async with open_harness(settings.model_copy(update={"embedder": None})):
            pass


def test_an_embedder_whose_weights_are_not_here_is_named(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(e5, "find_spec", lambda _: None)
    with pytest.raises(Misconfigured, match=r"embedder e5, whose weights are not installed here: pip .* nexus reembed"):
        configured.configured_embedder(settings.model_copy(update={"embedder": None}), "e5")
