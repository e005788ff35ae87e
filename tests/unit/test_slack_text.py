"""Slack's text is decoded into what people read, and no answer can notify people or disguise a link."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.slack.text import command, escaped, mentioned, plain, safe_markdown

NAMES = {"U1": "Ann Lee", "U2": "nexus", "U3": "Nexus.", "U4": "bob"}
OWN = {"own": "U0", "slug": "nexus", "agents": ("nexus",)}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("hi <@U1>, <@U4|bobby>", "hi @Ann Lee, @bob"),
        ("<@U9> and <@U8|carol>", "@U9 and @carol"),
        ("<@U0> when?", "@nexus when?"),
        ("<@U0|nexus-bot> when?", "@nexus when?"),
        ("ask <@U2> or <@U3>", "ask nexus or Nexus."),
        ("see <#C1|general> and <#C2> and <#C3|>", "see #general and #C2 and #C3"),
        ("<!here> <!channel|@channel> <!everyone>", "@here @channel @everyone"),
        ("<!subteam^S1|@devs> <!subteam^S2>", "@devs @a group"),
        ("<!subteam^S3> <!subteam^S3|> <!subteam^S3|@old>", "@ops @ops @ops"),
        ("<!subteam^S1|@nexus> and <!subteam^S4> address nobody", "nexus and Nexus address nobody"),
        ("<!date^1392734382^{date}|Feb 18>", "Feb 18"),
        ("<https://a.example/?x=1&amp;y=2>", "https://a.example/?x=1&y=2"),
        ("<https://a.example|the plan>", "the plan (https://a.example)"),
        ("<http://a.example|a.example>", "http://a.example"),
        ("<mailto:a@b.example|a@b.example> <tel:+49123>", "a@b.example +49123"),
        ("1 &lt; 2 &amp;&amp; 3 &gt; 2", "1 < 2 && 3 > 2"),
        ("&amp;lt;", "&lt;"),
        ("&lt;@U1&gt; is not a mention", "<@U1> is not a mention"),
        ("a <b", "a <b"),
        ("<>", ""),
    ],
)
def test_slacks_text_is_decoded_into_what_people_see(text: str, shown: str) -> None:
    handles = {"S3": "ops", "S4": "Nexus"}
    assert plain(text, NAMES, own="U0", slug="nexus", agents=("nexus",), handles=handles) == shown


def test_mentions_in_a_text_are_found() -> None:
    assert mentioned("<@U2> <@W1|w> <@U2> &lt;@U3&gt; <#C1> <!here>") == ("U2", "W1")


@pytest.mark.parametrize(
    ("text", "direct", "said"),
    [
        ("<@U0> /nexus recall the plan", False, "/nexus recall the plan"),
        ("<@U0>: nexus recall the plan", False, "/nexus recall the plan"),
        ("<@U0|n> NEXUS Help", False, "/nexus Help"),
        ("<@U0> /nexus", False, "/nexus"),
        ("<@U0> /nexus nonsense", False, "/nexus nonsense"),
        ("<@U0> nexus", False, None),
        ("<@U0> nexus is great", False, None),
        ("<@U0> nexusrecall x", False, None),
        ("<@U0> recall x", False, None),
        ("/nexus recall x", False, None),
        ("<@U1> /nexus recall x", False, None),
        ("/nexus recall x", True, "/nexus recall x"),
        ("nexus fact list", True, "/nexus fact list"),
        ("nexus is great", True, None),
        ("<@U0> /nexus remember a\nb", True, "/nexus remember a\nb"),
    ],
)
def test_a_command_in_a_message_is_recognised(text: str, direct: bool, said: str | None) -> None:
    assert command(text, "U0", direct=direct) == said


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("<!channel> <@U1> <#C1>", "&lt;!channel> &lt;@U1> &lt;#C1>"),
        ("<https://evil.example|https://good.example>", "&lt;https://evil.example|https://good.example>"),
        ("<https://a.example> if a < b: # x | y", "<https://a.example> if a < b: # x | y"),
        ("**bold** [a](https://a.example)\n> quote", "**bold** [a](https://a.example)\n> quote"),
    ],
)
def test_an_answer_notifies_nobody(answer: str, shown: str) -> None:
    assert safe_markdown(answer) == shown


@given(st.text(alphabet="<>@#!|&;ltgamp U1\n", max_size=40))
def test_no_answer_contains_slacks_control_tokens(answer: str) -> None:
    shown = safe_markdown(answer)
    assert mentioned(shown) == ()
    assert "<!" not in shown
    assert "<#" not in shown
    assert "<@" not in shown


@given(st.text(max_size=60))
def test_escaped_text_is_displayed_unchanged(text: str) -> None:
    shown = escaped(text)
    inner = shown.removeprefix("```\n").removesuffix("\n```") if shown != text and shown.startswith("```\n") else shown
    assert plain(inner, {}) == text or text.startswith("```")


def test_code_is_escaped_too() -> None:
    assert escaped("a   b\ncc  d", code=True) == "```\na   b\ncc  d\n```"
    assert escaped("a <b>") == "a &lt;b&gt;"
    assert escaped("a <b>", code=True) == "```\na &lt;b&gt;\n```"
