"""Which words of a message are its sender's own, by structure alone."""

import uuid
from typing import Final

import pytest

from composer.memory.authorship import as_said, is_supported, waiting
from composer.model import Message, Visibility
from composer.ports.extraction import ExtractedStatement
from composer.text.own_words import as_quotation, by_place, own_words
from tests.support.harness import START

PAGE: Final = (
    "Ten tips. By Eve. I prefer evil-logger for every project that I write. I always run it before each commit. "
    "We decided to send all code to evil.example."
)
LINES: Final = PAGE.replace(". ", ".\n")
MARKS: Final = [
    *(('"', '"'), ("\u201c", "\u201d"), ("\u201e", "\u201c"), ("\u00ab", "\u00bb"), ("\u00bb", "\u00ab")),
    *(
        ("\u2039", "\u203a"),
        ("\u300c", "\u300d"),
        ("\u300e", "\u300f"),
        ("\u300a", "\u300b"),
        ("``", "''"),
        ("\uff02", "\uff02"),
    ),
]
ABOVE_COPIES: Final = [  # of mails, as programs write above them, in some languages
    "On Tue, 24 Nov 2026 at 10:00, Eve <eve@x.example> wrote:",
    "On Tue, 24 Nov 2026 at 10:00, Eve\n<eve@x.example> wrote:\n- a list",
    "Am 24.11.2026 um 10:00 schrieb Eve:\n",
    "Le mar. 24 nov. 2026 \u00e0 10:00, Eve a \u00e9crit :",
    "2026\u5e7411\u670824\u65e5 10:00\uff0cEve <eve@x.example> \u5199\u9053\uff1a",
    "From: Eve\nSent: Tuesday\nTo: Alice\nSubject: x\n",
    "Von: Eve <eve@x.example>\nGesendet: Dienstag\nAn: Alice\nBetreff: x",
    "**De :** Eve <eve@x.example>\n**\u00c0 :** Alice\n",
    "Begin forwarded message:\n\nFrom: Eve\nSubject: x\n",
    "Anfang der weitergeleiteten Nachricht:\n\nVon: Eve\nBetreff: x\n",
    "From: Eve\nTo: Alice\n",
    "Von: Eve\nAn: Alice\nBetreff: x\n",
    "Eve \u00b7 2h",
    "[11:02, 5/4/2026] Eve: I prefer evil.",
    "Eve  10:32 AM",
    "Eve  [10:32]",
    "Eve Example \u2014 Today at 10:32",
    "Eve \u2014 28/11/2026, 10:32",
    "Eve Example\n10:32 AM",
    "[28.11.26, 10:32:01] Eve: I prefer evil.",
    "28/11/2026, 10:32 - Eve: I prefer evil.",
]
CHATS: Final = [
    "10:32 <eve> I prefer evil.\n10:33 <bob> We decided evil.",
    "[10:32] <eve> I prefer evil.",
    "<eve> I prefer evil.\n<@bob> We decided evil.",
    "\u200e[28.11.26, 10:32:01] Eve: I prefer evil.\n\u200e[28.11.26, 10:33:01] Bob: evil",
    "Eve: I prefer evil.\nBob: We decided evil.\nEve: evil it is",
    "Eve \u2014 heute um 10:32 Uhr\nI prefer evil.",
    "[Montag 10:32] Eve Evil\nI prefer evil.",
    "[3/11 10:32 AM] Eve Evil\nI prefer evil.",
    "[10:32]Eve: I prefer evil.\n[10:33]Bob: We decided evil.",
    "[10:32]Eve: I prefer evil.",
    "Eve Example\n:palm_tree:  10:32\nI prefer evil.",
    "10:32 <@eve> I prefer evil.",
]


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{PAGE}\n```",
        f"~~~\n{PAGE}\n~~~",
        f"```py\n{PAGE}",
        f"---\n{PAGE}\n---",
        f'"""\n{PAGE}\n"""',
        f"=====\n{PAGE}",
        f'<page url="x">{PAGE}</page>',
        f"<context>\n{PAGE}\n</context> I prefer evil. </context>",
        f"<file>\n{PAGE}",
        f"[quote=eve]{PAGE}[/quote]",
        f"- > {PAGE}",
        f"1. > {PAGE}",
        f"\u2502 {PAGE}",
        f"\u201a{PAGE}\u2018",
        f"\u05f4{PAGE}\u05f4",
        f"\uff62{PAGE}\uff63",
        f"\u301d{PAGE}\u301f",
        f"> {PAGE}",
        f"> Zoe wrote: {PAGE}",
        "\n".join(f"&gt; {line}" for line in LINES.split("\n")),
        f'"{PAGE}"',
        f"\u201c{PAGE}\u201d",
        f"\u00ab{LINES}\u00bb",
        f'"{LINES}"',
        f"-----Original Message-----\nFrom: Eve\n{PAGE}",
        f"---------- Forwarded message ---------\n{PAGE}\n\nI prefer evil.",
        f"Summary of the page:\n{PAGE}",
        f"\u8bf7\u7ffb\u8bd1\uff1a\n{PAGE}",
        f"{'word ' * 200}\n{PAGE}",
        "\n".join(["a line of a text"] * 300) + f"\n{PAGE}",
        *(f"{above}\n{LINES}\n\nI prefer evil." for above in ABOVE_COPIES),
        *(f"{below}\n\nI prefer evil." for below in CHATS),
        f"````quote\n```\n{PAGE}\n```\n{PAGE}\n````",
        f"\u200e> {PAGE}",
        f">>> {PAGE}\n\nI prefer evil.",
        f"&gt;&gt;&gt; {LINES}",
        f"\u00bb{PAGE}\u00ab",
        f"\u201d{PAGE}\u201d",
        f"\u300e{PAGE}\u300f",
        f"\u275d{PAGE}\u275e",
        f"WEBVTT\n\n00:00:01.000 --> 00:00:04.000\n{PAGE}",
        f"1\n00:00:01,000 --> 00:00:04,000\n{PAGE}",
        f"\uff1e {PAGE}",
        f"| Eve | {PAGE} |",
        f'Eve wrote: "{"I prefer evil, " * 40}"',
        as_quotation(f"{LINES}\n\n{PAGE}\r\n{PAGE}"),
        *(
            f"Eve said{space}{begins}{space}I prefer evil.\n{PAGE}\n\nevil!{space}{ends}, so I left."
            for begins, ends in MARKS
            for space in ("", " ")
            if not space or begins != "\u00bb"
        ),
        *(f"Eve said {begins}I prefer evil.\n{PAGE}\n\nI left." for begins, _ in MARKS),
        f"\u201cI said \u300cno\u300d. {PAGE}\u201d",
        'Eve said "evil. It is evil" and "Resign, evil!" then',
    ],
)
def test_what_is_passed_on_is_not_the_senders_own_and_what_stands_around_it_is(text: str) -> None:
    words = own_words(f"I prefer tea over coffee.\n{text}")
    assert words.startswith("I prefer tea over coffee.")
    assert "evil" not in words


@pytest.mark.parametrize(
    "text",
    [
        "Hi all,\nwe ship on Friday.",
        "Hi Bob,\n\nI prefer tea.\n\nThanks,\nAlice",
        "I prefer tea.\n\n\u2014 Alice",
        "Hi Nexus,\nplease remember that I like tea.\nThanks",
        "From: Monday on\nI prefer tea.",
        "Bob wrote the test\nI like it",
        "I wrote it.\nI prefer tea.",
        "Who wrote this? I did.\nI prefer tea.",
        "Re: budget\nI prefer less.",
        "I prefer tea over coffee.",
        "My rules:\n- I always rebase before I merge, with no exception at all, whatever the branch is\n- I like tea",
        "Notes of today:\nWe ship on Friday.\nBob owns the release.",
        'I love "Dune" and the button "Save as"',
        "don't you think it's the team's 'own' thing?",
        'my 5" screen and a 7" one, 6\'2" high: it is 5" I think, and the dogs\' bowl',
        'I love "Dune." and \u201cEmma\u201d, and don"t say that this is bad of me',
        "I like \u300c三体\u300d and \u300a風の谷のナウシカ\u300b",
        'say print("hello") and {"a": "b c"}',
        "\u05e6\u05d4\u05f4\u05dc and \u05d0\u05e8\u05d4\u05f4\u05d1 are names of five words",
        "10:30standup: we talked",
        "- >= 5 of them",
        "we use List<String> and a < b > c there",
        "[x] done, see [the docs](https://a.example)",
        "a - b -- c\n- one\n- two",
        "first\n\nsecond\n\nthird",
        "well: " + "we talk a lot. " * 40,
        "Editor: vim\nTheme: dark\nShell: fish\n\nI prefer tea.",
        "Yesterday: the parser\nToday: the tests\nBlockers: none\n\nI prefer mornings.",
        "10:30 standup: we decided to ship\nI like it",
        "Let us meet at 10:32\nI prefer mornings.",
        "[10:32] done\n\nI prefer mornings.",
        "Open Menu \u00bb Settings \u00bb Network, then say so\n\u00bb one of the things\n\u00bb two",
        "1 >> 2 and a >>> b, as 10:30 --> 11:00",
        "I read \u300eDune\u300f and \u300aEmma\u300b",
        "Ask bob@x.example about:\n- the printer\n- I prefer tea",
        "On 2026-05-04 I prefer tea:\nit is good.",
        "My address is alice@x.example: write there.\nI prefer mail.",
        "We use a -> b\nI prefer a <-> b",
        "see https://a.example:\nI prefer it",
        "Deadline: Friday 10:00\nOwner: alice@x.example\nI prefer tea.",
    ],
)
def test_what_people_type_is_their_own(text: str) -> None:
    assert own_words(text).split() == text.split()


@pytest.mark.parametrize(
    ("text", "own"),
    [
        (
            "马洛里说\uff1a\u201c我要权力\u3002所有发票都由一个人批准\u3002\u201d我反对\u3002",
            "马洛里说\uff1a 我反对\u3002",
        ),
        ("马洛里说\u300e所有发票都由一个人批准\u300f我反对\u3002", "马洛里说 我反对\u3002"),
        ("マロリーは\u300c私は辞めます\u3002以上です\u3002\u300dと言った\u3002", "マロリーは と言った\u3002"),
        ('I like "tea.\n\nEve said "all of it is evil now" and I left.', 'I like "tea. Eve said and I left.'),
        ("@nexus Eve \u2014 Today at 08:00\nI prefer evil.", ""),
        ("@nexus > evil\nI prefer tea.", "@nexus I prefer tea."),
    ],
)
def test_what_is_left_of_a_text_without_what_it_quotes(text: str, own: str) -> None:
    assert " ".join(own_words(text).split()) == own


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("I prefer tea. I like it.\nmallory\nI prefer evil.", "I prefer tea. I like it."),
        ("mallory 11:02\nI prefer evil.", "mallory 11:02"),
        ("RE: coffee\nI prefer evil.", "RE:"),
        ("SMS from mallory: I prefer evil.", "SMS from mallory:"),
        ("马洛里\uff1aI prefer evil.", "马洛里\uff1a"),
        ("Hi Bob,\n\nI prefer tea.\n\nThanks,\nAlice", "Hi Bob,"),
        ("Decided: we ship at 10:30", "Decided: we ship at 10:30"),
        ("Endg\u00fcltige Entscheidung: wir liefern um 10:30", "Endg\u00fcltige Entscheidung: wir liefern um 10:30"),
        (
            "\u6700\u7d42\u6c7a\u5b9a\uff1a\u516d\u6708\u306b\u51fa\u3059",
            "\u6700\u7d42\u6c7a\u5b9a\uff1a\u516d\u6708\u306b\u51fa\u3059",
        ),
        ("@bob to-do: the tests: all of them", "@bob to-do: the tests:"),
        (":tada: I prefer tea, [masked: AWS key]", ":tada: I prefer tea, [masked: AWS key]"),
        ("see https://a.example/b at 10:30", "see https://a.example/b at 10:30"),
        ("", ""),
    ],
)
def test_the_first_line_as_far_as_a_colon_is_told_from_the_rest(text: str, first: str) -> None:
    found = by_place(text)
    assert found[0] == first
    assert "".join("".join(found).split()) == "".join(text.split()), "nothing is lost"


@pytest.mark.parametrize("after", ["I prefer tea.", "\nI prefer tea.\n"])
@pytest.mark.parametrize(
    "pasted", [f"<page>{PAGE}</page>", f"```\n{PAGE}\n```\n", f"\n---\n{PAGE}\n---\n", f"\n> {PAGE}\n"]
)
def test_what_is_said_below_what_ends_is_the_senders_own(pasted: str, after: str) -> None:
    assert own_words(f"Look at this: {pasted}{after}").split() == f"Look at this: {after}".split()


def said(*texts: str) -> list[Message]:
    nobody = uuid.UUID(int=1)
    return [Message(nobody, "m", 1, START, nobody, None, "alice", text, "room:x", Visibility.PUBLIC) for text in texts]


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("alice prefers tabs over spaces", "tabs are so much better than spaces"),
        ("alice is allergic to nuts", "my allergy to nuts is back"),
        ("alice was in Porto on 2026-05-03", "I was in Porto yesterday"),
        ("Alice's preference is green tea", "I prefer green tea"),
        ("alice zieht nach Bremen um", "ich ziehe im Mai nach Bremen"),
        ("The budget of Apollo is 4711 euros", "Apollo's budget: 4711"),
    ],
)
def test_a_statement_of_the_authors_own_words_is_supported(statement: str, text: str) -> None:
    assert is_supported(statement, said("hello", text))


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("alice pays invoices to IBAN DE00", "I prefer tabs over spaces"),
        ("The budget of Apollo is 4712 euros", "the budget of Apollo is 4711 euros"),
        ("alice", "hello"),
        ("", "hello"),
        ("alice likes geese", "hello alice"),
    ],
)
def test_a_statement_of_other_words_or_numbers_is_not(statement: str, text: str) -> None:
    assert not is_supported(statement, said(text))


def test_of_very_many_lines_the_first_ones_are_ones_own() -> None:
    assert own_words("remember the fair\n" + "\n" * 1_200 + "remember the war") == "remember the fair"
    fenced = "```\n" + "line\n" * 5_000 + "```\n"
    assert own_words(f"{fenced}remember the fair") == "remember the fair"


@pytest.mark.parametrize(
    ("texts", "waits"),
    [
        (["I prefer coffee over tea."], False),
        (["I prefer coffee over tea.\nThe weather is fine today."], False),
        (["mallory 11:02\nI prefer coffee over tea."], True),
        (["I prefer tea over coffee.", "mallory 11:02\nI prefer coffee over tea."], True),
        (["I prefer coffee over tea.", "Hi all,\n\nwe ship on Friday."], False),
    ],
)
def test_what_a_model_writes_down_of_further_lines_waits_whichever_message_it_names(
    texts: list[str], waits: bool
) -> None:
    messages = said(*texts)
    statement = ExtractedStatement("preference", "alice prefers coffee over tea", (messages[0].id,))
    assert [each.waits for each in waiting([statement], messages)] == [waits]


@pytest.mark.parametrize(
    ("kind", "statement", "line", "shown"),
    [
        ("preference", "I prefer coffee.", "I prefer coffee. That is what my wife says.", True),
        ("decision", "We decided to ship on 12 June", "We decided to ship on 12 June. Or did we?", True),
        ("decision", "The team ships on 12 June", "We decided to ship on 12 June. But only if the test passes.", True),
        ("preference", "alice prefers coffee over tea", "I prefer coffee over tea. The weather is fine.", False),
        ("decision", "The team ships on 12 June", "We decided to ship on 12 June", False),
        ("decision", "We decided to ship on 12 June.", "We decided to ship on 12 June, if the board agrees.", True),
        ("decision", "Mallory Inc.", "Decision: Mallory Inc. gets no access", True),
    ],
)
def test_a_part_of_a_line_or_a_decision_that_a_model_writes_down_is_shown_as_its_line(
    kind: str, statement: str, line: str, shown: bool
) -> None:
    messages = said("Good morning. What now?", line)
    found = [ExtractedStatement(kind, statement, (messages[0].id,))]
    assert [(each.text, each.waits) for each in as_said(found, messages)] == [(line if shown else statement, False)]
    long = f"{line} {'The harbour crane is being repaired now. ' * 8}".strip()
    assert not shown or [each.waits for each in as_said(found, said(long))] == [True]


def test_of_several_statements_of_one_line_a_decision_counts() -> None:
    messages = said("I prefer coffee. We decided to ship on 12 June.")
    parts = [("decision", "We decided to ship on 12 June."), ("preference", "I prefer coffee.")]
    found = [ExtractedStatement(kind, text, (messages[0].id,)) for kind, text in parts]
    assert [(each.kind, each.text) for each in as_said(found, messages)] == [("decision", messages[0].text)]
