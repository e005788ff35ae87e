"""Which adapters `nexus run` serves, and what it says of one that is not set up."""

from pathlib import Path

import pytest

from bot.serving import chosen
from composer.errors import BadInput
from composer.settings import Settings


@pytest.mark.parametrize(
    ("adapter", "setting", "page"),
    [
        ("discord", "NEXUS_DISCORD_TOKEN", "discord"),
        ("slack", "NEXUS_SLACK_BOT_TOKEN", "slack"),
    ],
)
def test_an_adapter_that_is_not_set_up_names_its_setting_and_its_page(
    adapter: str, setting: str, page: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=rf"^--{adapter} needs {setting}, which is not set: docs/{page}\.md says where"):
        chosen(Settings(home=tmp_path), {adapter})
