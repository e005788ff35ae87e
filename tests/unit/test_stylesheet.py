"""The style of the pages: a block that a merge left open took the rules after it away from wide screens, unseen."""

import re
from pathlib import Path

STYLES = Path("bot/web/pages/static/nexus.css")


def test_each_part_of_the_style_ends_the_blocks_that_it_begins() -> None:
    for part in re.split(r"(?m)^(?=/\*)", STYLES.read_text()):
        rules = re.sub(r"(?s)/\*.*?\*/", "", part)
        assert rules.count("{") == rules.count("}"), part.splitlines()[:1]
