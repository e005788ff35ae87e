"""What `nexus chat` says of the lines that are typed: whether they were stored, and when a script stops."""

import asyncio
import logging
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from bot.console import logs
from bot.console.chat import CHAT_COMMANDS, DELAYED, Chat, ChatPosition
from bot.console.cli import talk
from bot.console.conversations import resolve_position
from bot.console.operations import set_admin
from bot.script.changes import change_message
from bot.script.places import place_of
from composer.app import App
from composer.errors import Unavailable
from composer.memory.forget import RETRACTED
from composer.repositories.reminders import Position
from composer.settings import AgentSettings, Settings
from composer.stores.models.openai_connection import NOT_SET_UP
from composer.turn.respond import Responder
from tests.support.discord.harness import Model
from tests.support.harness import AppHarness, open_harness
from tests.support.model_server import ModelServer
from tests.support.waiting import until

HINT = "; to get an answer, write @nexus in the message)"
NOT_STORED = f"(not stored: you have opted out, or this room does not store it{HINT}"


async def typed(*lines: str) -> AsyncIterator[str]:
    for line in lines:
        yield line


ROOM = {"room": "general"}


async def here(harness: AppHarness) -> Position:
    """Where alice sits."""
    return await resolve_position(harness.app, harness.workspace(), place_of("general", None, None), "alice")


def chat_of(harness: AppHarness, user: str = "alice", *, scripted: bool = False) -> Chat:
    return Chat(
        harness.app, ChatPosition(harness.workspace(), user, place_of("general", None, None)), scripted=scripted
    )


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"openai_base_url": "http://127.0.0.1:1/v1", "agents": (AgentSettings(model="m"),)}, "Nexus (model: m). "),
        ({"agents": (AgentSettings(model="m"),)}, "Nexus (no model: quotes). "),  # without an API nobody is asked
        ({}, "Nexus (no model: quotes). "),
    ],
)
async def test_the_first_line_of_the_terminal_says_which_model_answers(
    settings: Settings, capsys: pytest.CaptureFixture[str], named: dict[str, Any], said: str
) -> None:
    async with open_harness(settings.model_copy(update={"extraction": "pattern"} | named)) as harness:
        talk._greet(harness.app, harness.workspace(), False)
    shown = capsys.readouterr().out
    assert shown.startswith(f"You are talking to {said}")
    assert ("No model is configured" in shown) == ("no model" in said)


async def test_the_terminal_says_what_became_of_a_line_each_time_it_changes(
    harness: AppHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ("we ship", "on Friday", "/memory off", "my pay is 91k", "still", "/memory on", "we test", "/opt-out", "so")
    await chat_of(harness).run(typed(*lines))
    said = " ".join(capsys.readouterr().out.split())
    assert (said.count(f"(stored{HINT}"), said.count(NOT_STORED)) == (2, 2)


async def test_answers_of_several_agents_say_whose_they_are(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    agents = (AgentSettings(), AgentSettings(slug="max", name="Max"))
    async with open_harness(settings.model_copy(update={"agents": agents})) as harness:
        await chat_of(harness).run(typed("we ship on Friday", "@max @nexus when do we ship?", "/dm max", "when?"))
    shown = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in shown if line.startswith("@")] == ["@nexus", "@max"]
    assert "we ship on Friday" in "\n".join(shown)
    assert not [line for line in shown if "earlier question" in line], "both answer the question that was just asked"


async def test_what_becomes_of_a_line_is_said_anew_for_another_user_and_place(
    harness: AppHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    await chat_of(harness).run(
        typed("we ship", "/as bob", "so do we", "/opt-out", "not me", "/as alice", "/room lab", "we test")
    )
    said = " ".join(capsys.readouterr().out.split())
    assert (said.count(f"(stored{HINT}"), said.count(NOT_STORED)) == (3, 1)


async def test_a_room_that_holds_nothing_is_called_new(harness: AppHarness, capsys: pytest.CaptureFixture[str]) -> None:
    new = "is new in the workspace acme: it holds nothing yet)"
    await chat_of(harness).run(typed("hello", "/room lab", "/room lab t1", "/room general", "/dm"))
    assert [line for line in capsys.readouterr().out.splitlines() if new in line] == [
        f"(#general {new}",
        f"(#lab {new}",
        f"(#lab/t1 {new}",
    ]
    await chat_of(harness).run(typed("/room lab", "we ship", "/room lab"))
    assert capsys.readouterr().out.count(new) == 1


async def test_what_takes_an_admin_names_the_command_that_makes_one(
    harness: AppHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    await chat_of(harness).run(typed("/settings", "/audit", "/fact set k v --global"))
    assert capsys.readouterr().err.count("makes somebody one: nexus admin alice -w acme\n") == 3
    assert await set_admin(harness.app, "acme", "alice", True) == "alice"
    await chat_of(harness).run(typed("/settings", "/fact amend"))
    shown = capsys.readouterr()
    assert "top_k = " in shown.out
    assert "nexus admin" not in shown.err


async def test_a_script_stops_where_a_change_of_the_place_or_the_user_is_refused(
    harness: AppHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    await harness.say("carol", "closed", room="cave", private=True)
    for move in ("/dm nobody", "/room cave", "/as", "/session"):
        chat = chat_of(harness, scripted=True)
        await chat.run(typed("/remember before", move, "/remember after"))
        shown = capsys.readouterr()
        assert chat.refused == 1, move
        assert f"Stopped at '{move}'" in shown.err
        assert shown.out.count("Remembered") == 1
    chat = chat_of(harness)
    await chat.run(typed("/dm nobody", "/remember after"))
    assert "Remembered" in capsys.readouterr().out, "a person sees what was refused, and goes on"


async def test_the_terminal_explains_its_own_commands_too(
    harness: AppHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    await chat_of(harness).run(typed("/help"))
    shown = capsys.readouterr().out
    assert "/nexus remember we ship on Fridays" in shown
    for own in CHAT_COMMANDS:
        assert f"\n{own}" in shown, own
    chat = chat_of(harness)
    await chat.run(typed("/help room", "/help /as"))
    shown = capsys.readouterr().out
    assert shown.startswith("/room ROOM [THREAD] [--private]  Go to a room")
    assert "/as USER" in shown
    assert not chat.refused


async def test_a_place_with_words_too_many_is_refused(harness: AppHarness, capsys: pytest.CaptureFixture[str]) -> None:
    chat = chat_of(harness, scripted=True)
    await chat.run(typed("/room a b c", "/remember elsewhere"))
    shown = capsys.readouterr()
    assert "/room takes the name of a room, and of a thread in it; for example: /room general" in shown.err
    for mistyped in ("/room lab --privat", "/room lab t1 --privat"):
        await chat_of(harness).run(typed(mistyped))
        assert "/room has no --privat; it has --private." in capsys.readouterr().err
    assert "Remembered" not in shown.out
    await chat_of(harness).run(typed("/quit now", "/remember after"))
    assert "Remembered" not in capsys.readouterr().out


async def test_a_script_does_not_move_elsewhere_with_another_user(
    harness: AppHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    await harness.say("alice", "closed", room="general", private=True)
    chat = chat_of(harness, scripted=True)
    await chat.run(typed("/as bob", "/remember after"))
    shown = capsys.readouterr()
    assert "Remembered" not in shown.out
    assert "bob may not be here: go to another place first, such as /dm." in shown.err
    assert chat.refused == 1


async def test_a_script_ends_when_its_answer_is_delayed_for_long(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # On a full disk PostgreSQL does not start again: the script waited for ever, with nobody there to stop it.
    async def away(*_: object) -> None:
        raise Unavailable("The database does not answer.")

    async with open_harness(settings) as harness:
        monkeypatch.setattr(Responder, "respond", away)
        monkeypatch.setattr("bot.console.chat.DELAY_SECONDS", 0)
        chat = chat_of(harness, scripted=True)
        await chat.run(typed("we ship on Friday", "@nexus when do we ship?", "/remember after"))
        shown = capsys.readouterr()
        assert chat.refused == 1
        assert shown.err.endswith(f"{DELAYED}\nStopped at '@nexus when do we ship?'.\n")
        assert "Remembered" not in shown.out
        monkeypatch.undo()
    async with open_harness(settings) as harness:
        await chat_of(harness, scripted=True).run(typed())
        assert "we ship on Friday" in capsys.readouterr().out, "it is answered next time"


@pytest.mark.parametrize("forgotten", [True, False])
async def test_the_terminal_prints_no_more_of_an_answer_once_what_it_is_made_from_is_forgotten(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], forgotten: bool
) -> None:
    monkeypatch.setattr("bot.console.terminal_delivery.TERMINAL_LOOK_SECONDS", 0)
    model, answer = Model(), "The code of the vault, as was said in here, is zqlynx."
    model.gate, model.says = asyncio.Event(), [answer]
    settings = settings.model_copy(update={"agents": (AgentSettings(model="gpt-4o"),)})
    async with open_harness(settings, model=model) as harness:
        await harness.say("alice", "the code of the vault is zqlynx", id="said", **ROOM)
        chatting = asyncio.create_task(chat_of(harness).run(typed("@nexus what is the code of the vault?")))
        await until(lambda: model.shown)
        if forgotten:
            await change_message(harness.app, harness.workspace(), "said", None)
        model.gate.set()
        await chatting
    shown = capsys.readouterr().out
    assert ("zqlynx" in shown) is not forgotten
    assert (f"\n{RETRACTED}\n" if forgotten else f"{answer}\n") in shown


async def test_a_message_that_could_not_be_stored_is_to_be_sent_again(
    harness: AppHarness, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def away(*_: object) -> None:
        raise Unavailable("The database does not answer.")

    chat = chat_of(harness)
    monkeypatch.setattr(App, "receive", away)
    await chat.run(typed("@nexus well?"))
    shown = " ".join(capsys.readouterr().err.split())
    assert "The database does not answer. Your message was not stored: send it again later." in shown


def test_the_terminal_shows_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    before, handlers = structlog.get_config(), logging.root.handlers[:]
    logging.root.handlers.clear()
    try:
        logs.configure_logs("info", tracebacks=False)
        try:
            raise Unavailable("The database\ndoes not answer.", operator="The database at here\ndoes not answer.")
        except Unavailable:
            structlog.get_logger().exception("turn.failed")
            logging.getLogger("asyncio").exception("Task exception was\nnever retrieved")
    finally:
        structlog.configure(**before)
        logging.root.handlers[:] = handlers
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 2
    assert all("Unavailable: The database at here does not answer." in line for line in lines)


async def test_forgetting_everything_deletes_the_files_that_the_terminal_exported(
    harness: AppHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    exports = harness.app.settings.home / "exports"
    await chat_of(harness, "bob").run(typed("we ship on Friday", "/export"))
    (of_bob,) = exports.rglob("*.json")
    for text in ("so do we", "and so on"):
        harness.clock.tick()
        await chat_of(harness).run(typed(text, "/export"))
    assert len(list(exports.rglob("*.json"))) == 3
    await chat_of(harness).run(typed("/forget everything --yes"))
    assert list(exports.rglob("*.json")) == [of_bob]
    assert "2 exported files" in capsys.readouterr().out
    await set_admin(harness.app, "acme", "alice", True)
    await chat_of(harness).run(typed("/erase user bob --yes"))
    assert list(exports.rglob("*.json")) == []


@pytest.mark.parametrize("command", ["forget zqsalary", "forget here", "forget everything --until 2030-01-01"])
async def test_forgetting_a_part_deletes_the_exported_files_that_hold_it(
    harness: AppHarness, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    exports = harness.app.settings.home / "exports"
    await chat_of(harness).run(typed("the zqsalary is 7", "/export"))
    (file,) = exports.rglob("*.json")
    assert stat.S_IMODE(exports.stat().st_mode) == stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    other = file.parent / "folder" / "theirs"
    other.parent.mkdir()
    other.write_text("stays")
    (file.parent / "link").symlink_to(other)
    await chat_of(harness).run(typed(f"/{command}"))
    assert "It deletes 1 exported file of yours too." in " ".join(capsys.readouterr().out.split())
    assert file.exists()
    await chat_of(harness).run(typed(f"/{command} --yes"))
    assert "1 exported file" in capsys.readouterr().out
    assert {path.name for path in file.parent.iterdir()} == {"folder", "link"}
    assert other.read_text() == "stays"


async def test_a_link_in_the_place_of_the_exports_is_not_followed(
    harness: AppHarness, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    exports = harness.app.settings.home / "exports"
    await chat_of(harness).run(typed("the zqsalary is 7", "/export"))
    (file,) = exports.rglob("*.json")
    theirs = file.parent.rename(tmp_path / "theirs")
    file.parent.symlink_to(theirs)
    await chat_of(harness).run(typed("/forget zqsalary --yes"))
    assert (theirs / file.name).exists()
    shown = capsys.readouterr()
    assert "nothing was erased" in " ".join((shown.out + shown.err).split())


async def test_a_reminder_in_ones_dm_is_shown_with_its_place_and_is_no_part_of_the_room(
    harness: AppHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    async def lines(texts: tuple[str, ...], until_shown: str) -> AsyncIterator[str]:
        for text in texts:
            yield text
        harness.clock.tick(3_600)
        await harness.app.due_posts.post_due(harness.workspace().tenant_id, await here(harness))
        await harness.app.turns.settle()
        assert until_shown in capsys.readouterr().out

    await harness.say("alice", "hello", **ROOM)
    set_in_dm = ("/dm", "/nexus remind me in 20 minutes the vault is zqvault", "/room general")
    await chat_of(harness).run(lines(set_in_dm, '(in the DM of alice with @nexus) Reminder: "the vault is zqvault"'))
    prompt = (await harness.compose("alice", "@nexus what is the vault?", **ROOM)).prompt.as_text()
    assert "zqvault" not in prompt
    set_here = ("/nexus remind here in 20 minutes breathe",)
    await chat_of(harness).run(lines(set_here, '\nReminder from alice: "breathe"'))


async def test_who_sits_at_the_terminal_is_told_what_is_set_wrong_and_a_room_is_not(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ModelServer(key="another") as server:
        api = {"openai_base_url": server.url, "agents": (AgentSettings(model="m"),), "extraction": "pattern"}
        async with open_harness(settings.model_copy(update=api)) as harness:
            with capture_logs() as logs:
                reply = await harness.ask("alice", "@nexus hello?", **ROOM)
            assert (reply.failed, reply.text) == (True, NOT_SET_UP)
            said = [log["error"] for log in logs if log["event"] == "turn.not_answered"]
            assert said == [f"The model API at {server.host} refused the key (401). Check NEXUS_OPENAI_API_KEY."]
            await chat_of(harness).run(typed("@nexus hello again?"))
            assert said[0] in capsys.readouterr().out
