"""The declarations of the commands: usage, Discord's slash command, and how arguments are read."""

from datetime import date
from typing import Any

import pytest

from bot.commands import people, projects, structured
from bot.commands.parameters import ForgetScope
from bot.commands.table import COMMANDS, parse
from bot.discord.slash import GROUPED, MAX_SUBCOMMANDS, command_text, definition
from composer.errors import BadInput
from composer.model import RecordingPolicy, Role


def options_of(name: str) -> list[dict[str, Any]]:
    words = [GROUPED[name], name] if name in GROUPED else name.split()
    if len(words) == 1 and any(other.startswith(f"{name} ") for other in COMMANDS):
        words.append("set")  # Discord has no command that others begin with
    inner = definition()["options"]
    for word in words:
        inner = next(option for option in inner if option["name"] == word)["options"]
    return list(inner)


def test_discord_takes_the_number_of_commands_and_knows_those_in_groups() -> None:
    options = definition()["options"]
    for inner in (options, *(option["options"] for option in options if option["type"] == 2)):
        assert len(inner) <= MAX_SUBCOMMANDS
    inner = [{"name": "digest", "type": 1, "options": [{"name": "mode", "type": 3, "value": "daily"}]}]
    assert command_text({"options": [{"name": "room", "type": 2, "options": inner}]}) == "/nexus digest daily"


def test_a_command_of_one_word_that_others_begin_with_is_their_subcommand_set_in_discord() -> None:
    inner = {"name": "set", "type": 1, "options": [{"name": "mode", "type": 3, "value": "off"}]}
    assert command_text({"options": [{"name": "memory", "type": 2, "options": [inner]}]}) == "/nexus memory off"
    inner = {"name": "pending", "type": 1, "options": []}
    assert command_text({"options": [{"name": "memory", "type": 2, "options": [inner]}]}) == "/nexus memory pending"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_parameter_becomes_an_option_with_its_choices_or_suggestions(name: str) -> None:
    options = {option["name"]: option for option in options_of(name)}
    for parameter in COMMANDS[name].parameters:
        option = options[parameter.name]
        assert [choice["value"] for choice in option.get("choices", [])] == list(parameter.choices)
        assert option.get("autocomplete", False) == parameter.suggested
        assert len(option["description"]) <= 100
    required = [option["required"] for option in options_of(name)]
    assert required == sorted(required, reverse=True), "Discord requires the required options to come first"


def test_usage_is_generated_from_the_parameters() -> None:
    assert COMMANDS["memory"].usage == "/nexus memory [on|mentions|off]"
    assert COMMANDS["fact set"].usage == "/nexus fact set KEY VALUE [--everywhere|--project|--global]"
    assert COMMANDS["project member"].usage == "/nexus project member add|remove|list NAME [USER] [read|write|admin]"
    assert COMMANDS["fact list"].usage == "/nexus fact list [--on DAY]"


def test_options_are_in_the_order_of_the_parameters() -> None:
    def chosen(**given: str) -> dict[str, Any]:
        filled = [{"name": name, "type": 3, "value": value} for name, value in given.items()]
        inner = {"name": "member", "type": 1, "options": filled}
        return {"options": [{"name": "project", "type": 2, "options": [inner]}]}

    line = command_text(chosen(role="read", user="12", name="apollo", action="add"))
    assert line == "/nexus project member add apollo <@12> read"
    with pytest.raises(BadInput, match="With role, fill in user too"):
        command_text(chosen(role="read", name="apollo", action="add"))


def test_every_flag_is_an_option_of_its_own_in_discord() -> None:
    options = {option["name"]: option for option in options_of("project assign")}
    assert {name: option["type"] for name, option in options.items()} == {"name": 3, "pool": 5, "yes": 5}

    def chosen(**given: Any) -> dict[str, Any]:
        filled = [{"name": name, "type": 5, "value": value} for name, value in given.items()]
        inner = {"name": "assign", "type": 1, "options": [{"name": "name", "type": 3, "value": "apollo"}, *filled]}
        return {"options": [{"name": "project", "type": 2, "options": [inner]}]}

    assert command_text(chosen(yes=True, pool=True)) == "/nexus project assign apollo --pool --yes"
    assert command_text(chosen(yes=False, pool=True)) == "/nexus project assign apollo --pool"


@pytest.mark.parametrize("name", COMMANDS)
def test_no_two_options_of_a_command_have_one_name_in_discord(name: str) -> None:
    found = [option["name"] for option in options_of(name)]
    assert len(found) == len(set(found)) <= 25


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_that_calls_it(name: str) -> None:
    command = COMMANDS[name]
    found, text = parse(f"/nexus {command.example}")
    assert found is command
    command.arguments(text)
    assert all(parameter.help for parameter in command.parameters)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_may_be_confirmed_also_where_nothing_is_to_be_confirmed(name: str) -> None:
    command = COMMANDS[name]
    _, text = parse(f"/nexus {command.example}")
    plain = command.arguments(text)
    confirmed = command.arguments(f"{text} --yes")
    assert (confirmed.values, confirmed.texts) == (plain.values, plain.texts)
    assert confirmed.flags == plain.flags | {"yes"}


@pytest.mark.parametrize(
    ("line", "action", "name", "user", "role"),
    [
        ("add apollo bob", "add", "apollo", "bob", None),
        ("set apollo bob read", "add", "apollo", "bob", Role.READ),
        ("apollo <@!12> --admin", None, "apollo", "12", Role.ADMIN),
        ("Remove Apollo <@U1|bob>", "remove", "apollo", "U1", None),
        ("add apollo @Bob --role write", "add", "apollo", "Bob", Role.WRITE),
        ("list apollo", "list", "apollo", None, None),
        ("apollo", None, "apollo", None, None),
    ],
)
def test_a_member_command_is_parsed_into_typed_values(
    line: str, action: str | None, name: str, user: str | None, role: Role | None
) -> None:
    arguments = COMMANDS["project member"].arguments(line)
    found = arguments.get(projects._USER)
    assert (arguments.get(projects._ACTION), arguments[projects._PROJECT]) == (action, name)
    assert (None if found is None else found.external_ids[0], arguments.get(projects._ROLE)) == (user, role)


@pytest.mark.parametrize(
    ("text", "scope", "rest"),
    [
        ("here --yes", ForgetScope.HERE, "here"),
        ("everything", ForgetScope.EVERYTHING, "everything"),
        ("message  m 1", ForgetScope.MESSAGE, "m 1"),
        ("Everything", ForgetScope.EVERYTHING, "everything"),
        ("item 1F0C-9a2b", ForgetScope.ITEM, "1f0c9a2b"),
        ("all the tea", ForgetScope.MATCHING, "all the tea"),
        ("the vault here", ForgetScope.MATCHING, "the vault here"),
    ],
)
def test_the_argument_of_forget_is_parsed_into_a_target(text: str, scope: ForgetScope, rest: str) -> None:
    command = COMMANDS["forget"]
    target = command.arguments(text).values["what"]
    assert (target.scope, target.text) == (scope, rest)


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("all", "Write 'everything' for all that you ever said"),
        ("All --yes", "Write 'everything' for all that you ever said"),
        ("message", "The id is missing: write 'message ID'"),
        ("item --yes", "The id is missing: write 'item ID'"),
        ("item 1f0c", "'1f0c' is no id of an item"),
        ("item of clothing", "'of' is no id of an item"),
    ],
)
def test_forget_says_what_to_write_instead_of_half_a_target(text: str, instead: str) -> None:
    with pytest.raises(BadInput, match=instead):
        COMMANDS["forget"].arguments(text)


@pytest.mark.parametrize("text", ["mentions", "Mentions only", "mentions  only"])
def test_a_choice_accepts_other_spellings(text: str) -> None:
    assert COMMANDS["memory"].arguments(text)[people._POLICY] is RecordingPolicy.MENTIONS


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("5", "5"),
        ("true", "true"),
        ('"Friday"', '"Friday"'),
        ('{"day": [1, 2.5]}', '{"day": [1, 2.5]}'),
        ("no nuts", '"no nuts"'),
        ("Friday", '"Friday"'),
        ("2026-05-04", '"2026-05-04"'),
        ("{", '"{"'),
        ("NaN", '"NaN"'),
        ("-Infinity", '"-Infinity"'),
        ("1e999", '"1e999"'),
        ("1e-400", '"1e-400"'),
        ("-1e-99999999999999999999", '"-1e-99999999999999999999"'),
        ("0.1234567890123456789", '"0.1234567890123456789"'),
        ("1.10", '"1.10"'),
        ("[1.10]", '"[1.10]"'),
        ("1.10e0", '"1.10e0"'),
        ("1.50E+1", '"1.50E+1"'),
        ("-0.0", '"-0.0"'),
        ("-0", '"-0"'),
        ("-0e5", '"-0e5"'),
        ('{"a": [-0.0]}', '"{\\"a\\": [-0.0]}"'),
        ("0.0", "0.0"),
        ("0", "0"),
        ("-10", "-10"),
        ("1.5e3", "1500.0"),
        ("1.5", "1.5"),
        ("10.0", "10.0"),
        ("1e5", "100000.0"),
        ("1e-7", "1e-07"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
    ],
)
def test_a_value_that_is_not_json_or_would_change_is_stored_as_text(text: str, stored: str) -> None:
    assert COMMANDS["fact set"].arguments(f"diet {text}")[structured._VALUE] == stored


@pytest.mark.parametrize("text", ['"\\u0000"', '"\\ud800"'])
def test_a_value_that_no_database_can_store_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"cannot be stored \(NUL, or a broken emoji\).*Usage: /nexus fact set"):
        COMMANDS["fact set"].arguments(f"diet {text}")


@pytest.mark.parametrize("line", ["diet --on 2026-05-01", "--on 2026-05-01 diet", "diet --on=2026-05-01"])
def test_a_flag_with_a_value_is_read_wherever_it_stands(line: str) -> None:
    arguments = COMMANDS["fact get"].arguments(line)
    assert (arguments.values["key"], arguments.values["on"]) == ("diet", date(2026, 5, 1))


@pytest.mark.parametrize(
    "line", ["diet --on", "diet --on tomorrow", "diet --on noon", "diet --on 2026-02-30", "diet --on 20260501"]
)
def test_a_flag_without_a_good_value_is_refused_with_the_usage(line: str) -> None:
    with pytest.raises(BadInput, match=r"DAY is missing|is not a day.*Usage: /nexus fact get KEY \[--on DAY\]"):
        COMMANDS["fact get"].arguments(line)


@pytest.mark.parametrize("name", ["remember", "fact set", "landmark add"])
def test_the_usage_lists_every_scope(name: str) -> None:
    assert COMMANDS[name].usage.endswith("[--everywhere|--project|--global]")


def test_words_with_an_equals_sign_remain_text() -> None:
    assert COMMANDS["recall"].arguments("make --jobs=4").values["text"] == "make --jobs=4"


def test_discord_has_an_option_for_each_flag_with_a_value() -> None:
    options = {option["name"]: option for option in options_of("fact get")}
    assert not options["on"]["required"]
    filled = [{"name": name, "type": 3, "value": value} for name, value in (("key", "diet"), ("on", "2026-05-01"))]
    inner = {"name": "get", "type": 1, "options": filled}
    line = command_text({"options": [{"name": "fact", "type": 2, "options": [inner]}]})
    assert line == "/nexus fact get diet --on 2026-05-01"
