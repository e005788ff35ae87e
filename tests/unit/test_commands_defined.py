"""The commands' one definition, and what Discord is told of it."""

from typing import Any

import pytest

from bot.commands.command import Names
from bot.commands.table import COMMANDS
from bot.discord.slash import definition, line_of
from composer.errors import BadInput


def options_of(name: str) -> list[dict[str, Any]]:
    inner = definition()["options"]
    for word in name.split():
        inner = next(option for option in inner if option["name"] == word)["options"]
    return list(inner)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_parameter_is_an_option_with_its_choices_or_its_names(name: str) -> None:
    options = {option["name"]: option for option in options_of(name)}
    for parameter in COMMANDS[name].parameters:
        option = options[parameter.name]
        assert [choice["value"] for choice in option.get("choices", [])] == list(parameter.choices)
        assert option.get("autocomplete", False) == (parameter.names not in (None, Names.PERSON))
        assert len(option["description"]) <= 100
    required = [option["required"] for option in options_of(name)]
    assert required == sorted(required, reverse=True), "Discord wants the required ones first"


def test_usage_is_made_of_the_parameters() -> None:
    assert COMMANDS["memory"].usage == "/nexus memory [on|mentions|off]"
    assert COMMANDS["fact set"].usage == "/nexus fact set KEY JSON [--everywhere|--project|--global]"
    assert COMMANDS["project member"].usage == "/nexus project member add|remove|list NAME [USER] [read|write|admin]"
    assert COMMANDS["help"].usage == "/nexus help"


def test_options_are_put_into_the_order_of_the_parameters() -> None:
    def chosen(**given: str) -> dict[str, Any]:
        filled = [{"name": name, "type": 3, "value": value} for name, value in given.items()]
        inner = {"name": "member", "type": 1, "options": filled}
        return {"options": [{"name": "project", "type": 2, "options": [inner]}]}

    line = line_of(chosen(role="read", user="12", name="apollo", action="add"))
    assert line == "/nexus project member add apollo <@12> read"
    with pytest.raises(BadInput, match="With role, fill in user too"):
        line_of(chosen(role="read", name="apollo", action="add"))
