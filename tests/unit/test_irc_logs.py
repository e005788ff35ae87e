"""IRC logs of the usual programs: who said what when, whatever the program, the encoding and the colours."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.importers.irc import is_irc_line, read_irc_log, room_of_log
from bot.script.events import MessageEvent, MoveEvent
from composer.errors import BadInput

Said = tuple[str, str, str]  # day and time, nick, text


def read(tmp_path: Path, content: str | bytes, name: str = "2026-05-04.log") -> tuple[list[Said], list[str], list[str]]:
    """What was said, who moved, and the sentences about lines that are none of a log."""
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    odd: list[str] = []
    events = [line.event for line in read_irc_log(path, "x", odd.append)]
    said = [(f"{e.at:%m-%d %H:%M:%S}", e.user, e.text) for e in events if isinstance(e, MessageEvent)]
    moved = [f"{e.user} {e.type}s" for e in events if isinstance(e, MoveEvent)]
    return said, moved, odd


PROGRAMS: dict[str, tuple[str, list[Said], list[str]]] = {
    "irssi": (
        "--- Log opened Mon May 04 12:18:00 2026\n"
        "12:18 < ann> zebra day\n12:19 <@ben> yes\n12:19 <+cy> ok\n12:20  * carl waves\n"
        "12:21 -!- dora [d@host] has joined #x\n12:22 -!- mode/#x [+o ann] by ben\n"
        "12:23 -!- ben is now known as ben_\n12:24 -!- dora [d@host] has quit [bye]\n12:25 -ann(a@h)- psst\n"
        "--- Day changed Tue May 05 2026\n09:00 < ann> morning\n--- Log closed Tue May 05 09:01:00 2026\n",
        [
            ("05-04 12:18:00", "ann", "zebra day"),
            ("05-04 12:19:00", "ben", "yes"),
            ("05-04 12:19:00", "cy", "ok"),
            ("05-04 12:20:00", "carl", "waves"),
            ("05-05 09:00:00", "ann", "morning"),
        ],
        ["dora joins", "dora leaves"],
    ),
    "irssi, closed for days": (
        "--- Log opened Mon May 04 23:58:00 2026\n23:59 < ann> late\n--- Log closed Mon May 04 23:59:00 2026\n"
        "--- Log opened Fri May 08 00:01:00 2026\n00:02 < ann> early\n",
        [("05-04 23:59:00", "ann", "late"), ("05-08 00:02:00", "ann", "early")],
        [],
    ),
    "irssi in German": (
        "--- Log geöffnet Mo Mai 04 12:18:00 2026\n23:59 < ann> spät\n"
        "--- Day changed Di Mai 05 2026\n00:01 < ann> früh\n",
        [("05-04 23:59:00", "ann", "spät"), ("05-05 00:01:00", "ann", "früh")],
        [],
    ),
    "WeeChat": (
        "2026-05-04 12:18:00\t@ann\tzebra day\n2026-05-04 12:18:30\t *\tann waves\n"
        "2026-05-04 12:19:00\t-->\tben (b@host) has joined #x\n2026-05-04 12:19:30\t--\tMode #x [+o ben] by ann\n"
        "2026-05-05 00:00:01\tben\t<not> a nick: x\n2026-05-05 00:00:02\t<--\tben (b@host) has quit (bye)\n",
        [
            ("05-04 12:18:00", "ann", "zebra day"),
            ("05-04 12:18:30", "ann", "waves"),
            ("05-05 00:00:01", "ben", "<not> a nick: x"),
        ],
        ["ben joins", "ben leaves"],
    ),
    "ZNC": (
        "[12:18:01] <ann> zebra day\n[12:19:00] *** Joins: ben (b@host)\n[12:20:00] *** carl sets mode: +o ann\n"
        "[12:21:00] * ben waves\n[12:22:00] -NickServ- identify\n[12:23:00] *** Quits: ben (b@host) (bye)\n"
        "[12:24:00] *** Parts: ann (a@host)\n",
        [("05-04 12:18:01", "ann", "zebra day"), ("05-04 12:21:00", "ben", "waves")],
        ["ben joins", "ben leaves", "ann leaves"],
    ),
    "HexChat": (
        "**** BEGIN LOGGING AT Thu Dec 31 12:18:00 2026\n\nDec 31 12:18:00 *\tNow talking on #x\n"
        "Dec 31 12:18:01 <ann>\tzebra day\nDec 31 12:19:00 *\tben (~b@host) has joined\nDec 31 12:20:00 *\tann waves\n"
        "Jan 01 00:00:01 <ben>\thappy new year\nJan 01 00:01:00 *\tben has quit (bye)\n"
        "**** ENDING LOGGING AT Fri Jan  1 00:02:00 2027\n",
        [
            ("12-31 12:18:01", "ann", "zebra day"),
            ("12-31 12:20:00", "ann", "waves"),
            ("01-01 00:00:01", "ben", "happy new year"),
        ],
        ["ben joins", "ben leaves"],
    ),
    "mIRC": (
        "Session Start: Mon May 04 23:58:00 2026\nSession Ident: #x\n[23:58] * Now talking in #x\n"
        "[23:59] <@ann> \x0304zebra\x03 \x02day\x02\n[23:59] * ben (b@host) has joined #x\n"
        "Session Time: Tue May 05 00:00:00 2026\n[00:01] * ann waves\nSession Close: Tue May 05 00:02:00 2026\n",
        [("05-04 23:59:00", "ann", "zebra day"), ("05-05 00:01:00", "ann", "waves")],
        ["ben joins"],
    ),
    "The Lounge": (
        "[2026-05-04T12:18:01.123Z] <ann> zebra day\n[2026-05-04T12:19:01.000Z] *** ben (b@host) joined\n"
        "[2026-05-04T12:20:01.000Z] * ben waves\n",
        [("05-04 12:18:01", "ann", "zebra day"), ("05-04 12:20:01", "ben", "waves")],
        ["ben joins"],
    ),
    "Textual, with a zone": (
        "[2026-05-04T12:18:01+0200] <ann> zebra day\n",
        [("05-04 10:18:01", "ann", "zebra day")],
        [],
    ),
    "Limnoria": (
        "2026-05-04T12:18:01  <ann> zebra day\n2026-05-04T12:19:01  *** ben <b@host> has joined #x\n",
        [("05-04 12:18:01", "ann", "zebra day")],
        ["ben joins"],
    ),
    "Konversation": (
        "[Mon May 4 2026] [12:18:01] <ann>\tzebra day\n[Tue May 5 2026] [00:01:00] <ben>\tyes\n",
        [("05-04 12:18:01", "ann", "zebra day"), ("05-05 00:01:00", "ben", "yes")],
        [],
    ),
    "Eggdrop": (
        "[00:00] --- Mon May  4 2026\n[12:18] <ann> zebra day\n[12:19] ben (b@host) joined #x.\n"
        "[12:20] Action: ann waves\n[12:21] #x: mode change '+o ann' by ben!b@host\n[12:22] ben (b@host) left #x.\n"
        "[12:22] Nick change: ann -> anna\n[00:00] --- Tue May  5 2026\n[00:05] <ann> next\n",
        [
            ("05-04 12:18:00", "ann", "zebra day"),
            ("05-04 12:20:00", "ann", "waves"),
            ("05-05 00:05:00", "ann", "next"),
        ],
        ["ben joins", "ben leaves"],
    ),
    "ERC": (
        "[Mon May  4 2026]\n*** You have joined channel #x\n"
        "[12:18] <ann> zebra day\n[Tue May  5 2026]\n[00:01] <ann> next\n",
        [("05-04 12:18:00", "ann", "zebra day"), ("05-05 00:01:00", "ann", "next")],
        [],
    ),
    "ii": (
        "1777897080 <ann> zebra day\n1777897140 -!- ben(b@host) has joined #x\n1777983540 <ben> next\n",
        [("05-04 12:18:00", "ann", "zebra day"), ("05-05 12:19:00", "ben", "next")],
        ["ben(b@host) joins"],
    ),
    "a clock of 12 hours that says its half": (
        "[11:59 AM] <ann> zebra\n[12:01 PM] <ben> noon\n[1:05 PM] <ann> after\n[12:10 AM] <ann> night\n",
        [
            ("05-04 11:59:00", "ann", "zebra"),
            ("05-04 12:01:00", "ben", "noon"),
            ("05-04 13:05:00", "ann", "after"),
            ("05-05 00:10:00", "ann", "night"),
        ],
        [],
    ),
    "Textual": (
        "Begin: Conversation\n[2026-05-04T12:18:01+0000] <ann> zebra day\n"
        "[2026-05-04T12:19:01+0000] • ann: waves\n[2026-05-04T12:20:01+0000] ben (b@host) joined the channel.\n"
        "[2026-05-04T12:21:01+0000] ben is now known as benny\n",
        [("05-04 12:18:01", "ann", "zebra day"), ("05-04 12:19:01", "ann", "waves")],
        ["ben joins"],
    ),
    "Quassel": (
        "[12:18:01] <@ann> zebra day\n[12:19:01] -*- ann waves\n[12:20:01] -->| ben has joined\n"
        "[12:21:01] <-* ben has quit (bye)\n",
        [("05-04 12:18:01", "ann", "zebra day"), ("05-04 12:19:01", "ann", "waves")],
        ["ben joins", "ben leaves"],
    ),
    "mIRC, whose codes of colours were cut out": (
        "Session Start: Mon May 04 12:00:00 2026\n03[12:17] * Joins: ben (b@host)\n01[12:18] <ann> zebra day\n"
        "06[12:19] * Topic is 'zebras'\n02[12:20] * Quits: ben (b@host) (bye)\n",
        [("05-04 12:18:00", "ann", "zebra day")],
        ["ben joins", "ben leaves"],
    ),
    "LimeChat": (
        "12:18 ann: zebra day: yes\n12:19 ben: ok\n12:20 ben has left IRC (bye)\n",
        [("05-04 12:18:00", "ann", "zebra day: yes"), ("05-04 12:19:00", "ben", "ok")],
        ["ben leaves"],
    ),
    "Pidgin": (
        "Conversation with #x at Mon 04 May 2026 12:18:00 CET on ann@irc.example (irc)\n(12:18:01) ann: zebra day\n"
        "(12:19:01) ***ann waves\n(12:20:01) ben [b@host] entered the room.\n(12:21:01) ben left the room (bye).\n",
        [("05-04 12:18:01", "ann", "zebra day"), ("05-04 12:19:01", "ann", "waves")],
        ["ben joins", "ben leaves"],
    ),
    "Konversation in German": (
        "Logfile started\non Mo Mai 4 12:00:00 2026\n[Montag, 4. Mai 2026] [12:18:01 CEST] <ann>\tzebra day\n"
        "[Montag, 4. Mai 2026] [12:19:01 CEST] Join\tben (b@host) has joined this channel.\n"
        "[Dienstag, 5. Mai 2026] [00:01:00 Uhr] *\tann waves\n",
        [("05-04 12:18:01", "ann", "zebra day"), ("05-05 00:01:00", "ann", "waves")],
        ["ben joins"],
    ),
    "irssi in German, in March": (
        "--- Log geöffnet Mi Mär 04 23:58:00 2026\n23:59 < ann> spät\n--- Tag gewechselt Do Mär 05 2026\n"
        "00:01 < ann> früh\n",
        [("03-04 23:59:00", "ann", "spät"), ("03-05 00:01:00", "ann", "früh")],
        [],
    ),
    "ERC, with the time behind a line where it changes": (
        "[Mon May  4 2026]\n<ann> zebra day                         [12:18]\n<ben> yes\n* ann waves\n"
        "<ben> ok                                [12:20]\n",
        [
            ("05-04 12:18:00", "ann", "zebra day"),
            ("05-04 12:18:00", "ben", "yes"),
            ("05-04 12:18:00", "ann", "waves"),
            ("05-04 12:20:00", "ben", "ok"),
        ],
        [],
    ),
    "days in numbers": (
        "04/05/2026 12:18:00 <ann> zebra day\n13/05/2026 12:18:00 <ben> yes\n",
        [("05-04 12:18:00", "ann", "zebra day"), ("05-13 12:18:00", "ben", "yes")],
        [],
    ),
    "days in numbers, the month first": (
        "[05/04/2026 12:18:00] <ann> zebra day\n[05/13/2026 12:18:00] <ben> yes\n",
        [("05-04 12:18:00", "ann", "zebra day"), ("05-13 12:18:00", "ben", "yes")],
        [],
    ),
    "days in numbers, with dots": (
        "[04.05.2026 12:18:00] <ann> zebra day\n[05.05.26 12:18:00] <ben> yes\n",
        [("05-04 12:18:00", "ann", "zebra day"), ("05-05 12:18:00", "ben", "yes")],
        [],
    ),
    "whole dates": (
        "Mon May  4 12:18:00 2026 <ann> zebra day\nTue May  5 00:01:00 2026 <ben> yes\n",
        [("05-04 12:18:00", "ann", "zebra day"), ("05-05 00:01:00", "ben", "yes")],
        [],
    ),
    "actions that begin like notices": (
        "[12:18] * ann has left the keys in the kitchen\n[12:19] * ann quit smoking\n[12:20] * ann joined the club\n"
        "[12:21] * ben has quit (bye)\n[12:22] * cy (c@host) has left #x (bye)\n",
        [
            ("05-04 12:18:00", "ann", "has left the keys in the kitchen"),
            ("05-04 12:19:00", "ann", "quit smoking"),
            ("05-04 12:20:00", "ann", "joined the club"),
        ],
        ["ben leaves", "cy leaves"],
    ),
    "what bots notify the channel of": (
        "[12:18] -buildbot- build 7 failed\n[12:19] -buildbot:#x- again\n[12:20] -ChanServ- you are known\n"
        "[12:21] -irc.example.net- ident\n[12:22] -ann(a@host)- psst\n",
        [("05-04 12:18:00", "buildbot", "build 7 failed"), ("05-04 12:19:00", "buildbot", "again")],
        [],
    ),
    "round brackets, and a nick with marks": (
        "(12:18) <ann|away> zebra\n(12:19) <ßen> ok\n(12:20) <[x]`> hi\n",
        [("05-04 12:18:00", "ann|away", "zebra"), ("05-04 12:19:00", "ßen", "ok"), ("05-04 12:20:00", "[x]`", "hi")],
        [],
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_log_of_each_program_is_read(tmp_path: Path, program: str) -> None:
    text, said, moved = PROGRAMS[program]
    assert read(tmp_path, text) == (said, moved, [])
    assert read(tmp_path, text.replace("\n", "\r\n"))[0] == said
    assert any(is_irc_line(line) for line in text.split("\n")[:3])


SENTENCES = [
    ("zebra für alle, schöne Grüße", "latin-1"),
    ("c'était génial à l'école, ça va très bien", "cp1252"),
    ("señor, ¿qué tal mañana?", "latin-1"),
    ("zażółć gęślą jaźń", "cp1250"),
    ("привет, как дела сегодня", "cp1251"),
    ("привет, как дела сегодня", "koi8_r"),
    ("καλημέρα σας, τι κάνετε", "cp1253"),
    ("günaydın arkadaşlar", "cp1254"),  # noqa: RUF001
    ("שלום לכולם, מה שלומכם", "cp1255"),
    ("こんにちは世界", "shift_jis"),
    ("日本語のテスト", "euc_jp"),
    ("日本語のテスト", "iso2022_jp"),
    ("你好，世界今天开会", "gb18030"),  # noqa: RUF001
    ("안녕하세요 여러분", "euc_kr"),
    ("zebra für 世界", "utf-16"),
    ("zebra für 世界", "utf-8-sig"),
]


@pytest.mark.parametrize(("sentence", "encoding"), SENTENCES)
def test_the_encoding_of_a_log_is_guessed(tmp_path: Path, sentence: str, encoding: str) -> None:
    said, _, odd = read(tmp_path, f"[12:18] <ann> {sentence}\n[12:19] <ben> ok\n".encode(encoding))
    assert ([text for _, _, text in said], odd) == ([sentence, "ok"], [])


def test_lines_of_utf_8_beside_others_are_read_as_such(tmp_path: Path) -> None:
    content = "[12:18] <ann> schöne Grüße\n".encode() + "[12:19] <ben> für alle, schöne Grüße\n".encode("latin-1")
    assert [text for _, _, text in read(tmp_path, content)[0]] == ["schöne Grüße", "für alle, schöne Grüße"]


@pytest.mark.parametrize(
    "coloured",
    [
        "\x0304zebra\x03 day",
        "\x0304,12zebra\x0f day",
        "\x02ze\x1dbra\x0f day",
        "\x04ff0000zebra day",
        "\x1b[31mzebra\x1b[0m day",
    ],
)
def test_colours_and_styles_are_gone(tmp_path: Path, coloured: str) -> None:
    assert read(tmp_path, f"[12:18] <\x0303@ann\x03> {coloured}\n")[0] == [("05-04 12:18:00", "ann", "zebra day")]


@pytest.mark.parametrize("line", ["what is this", "[25:00] <ann> x", "[10:61] <ann> x", "\x00\x01", "<ann> no time"])
def test_a_line_that_is_none_of_a_log_is_named_and_the_rest_is_read(tmp_path: Path, line: str) -> None:
    said, _, odd = read(tmp_path, f"[10:00] <ann> one\n{line}\n[10:01] <ann> two\n")
    assert [text for _, _, text in said] == ["one", "two"]
    assert [sentence.partition(": ")[0] for sentence in odd] == [f"{tmp_path}/2026-05-04.log:2"]


@pytest.mark.parametrize(
    "text", ["what is this\n", "Dear all,\nthe meeting\n[10:00] <ann> x\nregards\n", "[25:00] <a> x\n"]
)
def test_a_file_that_is_no_log_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInput, match=r"2026-05-04\.log:1: this is not a"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("name", "room", "day"),
    [
        ("#ubuntu.log", "#ubuntu", None),
        ("irc.libera.#ubuntu.weechatlog", "#ubuntu", None),
        ("freenode_#ubuntu_20260504.log", "#ubuntu", datetime(2026, 5, 4, 12, 18, tzinfo=UTC)),
        ("#ubuntu.2026-05-04.log", "#ubuntu", datetime(2026, 5, 4, 12, 18, tzinfo=UTC)),
        ("#ubuntu/2026-05-04.log", "#ubuntu", datetime(2026, 5, 4, 12, 18, tzinfo=UTC)),
        ("2026-05-04.log", "2026-05-04", datetime(2026, 5, 4, 12, 18, tzinfo=UTC)),
        ("help-20260504.txt", "help", datetime(2026, 5, 4, 12, 18, tzinfo=UTC)),
        ("chat-12345678.log", "chat", None),
    ],
)
def test_the_room_and_the_day_are_in_the_name_of_the_file(
    tmp_path: Path, name: str, room: str, day: datetime | None
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("[12:18] <ann> x\n")
    assert room_of_log(path) == room
    at = read_irc_log(path, "x", print)[0].event.at
    assert day is None or at == day


def test_two_days_of_one_channel_have_messages_of_their_own(tmp_path: Path) -> None:
    ids = []
    for name in ("#x.2026-05-04.log", "#x.2026-05-05.log"):
        (tmp_path / name).write_text("[12:18] <ann> x\n")
        event = read_irc_log(tmp_path / name, "x", print)[0].event
        assert isinstance(event, MessageEvent)
        ids.append(event.id)
    assert len(set(ids)) == 2
