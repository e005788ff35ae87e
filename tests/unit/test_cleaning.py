"""The cleaning of people's text, and names that could be taken for an agent's."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from composer.errors import BadInput
from composer.ingest.validation import message_text
from composer.memory.remember import clean_value
from composer.text.cleaning import MAX_MARKS, clean_line, clean_text, is_storable
from composer.text.names import MAX_LABEL_CHARS, app_name, looks, person_name, speaker_label, title_label

FLAG_OF_ENGLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
# Single characters and sequences that cleaning looks at, so that they meet often.
PIECES = (
    *("a", "1", "#", " ", "\n", "\r", "\t", "\u2028", "\x85", "\x00", "\ud800", "\x07", "\x1b[2J", "\u202e", "\ufeff"),
    *("\u200b", "\u200c", "\u200d", "\ufe0e", "\ufe0f", "\U000e0100", "\U000e0067", "\U000e007f", FLAG_OF_ENGLAND),
    *(
        "\U0001f469",
        "\U0001f3fd",
        "\U0001f3f4",
        "\u2764",
        "\u2329",
        "\u2190",
        "\u0338",
        "\u0344",
        "\u0301",
        "\u0327" * 40,
    ),
    *(
        "\u0915",
        "\u093c",
        "\u094d",
        "\u0627",
        "\u0653",
        "\u845b",
        "\uf900",
        "\u1820",
        "\u180b",
        "\u1100",
        "\u1161",
        "\u3164",
    ),
)
NASTY = st.lists(st.one_of(st.sampled_from(PIECES), st.characters()), max_size=12).map("".join)


@given(NASTY)
def test_a_cleaned_text_is_clean(text: str) -> None:
    cleaned = clean_text(text)
    assert clean_text(cleaned) == cleaned
    assert unicodedata.is_normalized("NFC", cleaned)
    assert is_storable(cleaned)
    assert all(unicodedata.category(c) not in ("Cc", "Zl", "Zp", "Cs") for c in cleaned if c not in "\n\t")
    assert len(cleaned.encode()) <= 3 * max(len(text.encode("utf-8", "surrogatepass")), 1)


@given(NASTY)
def test_a_cleaned_line_is_one_line_of_a_limited_length(text: str) -> None:
    line = clean_line(text, 5)
    assert line == clean_line(line, 5)
    assert len(line) <= 5
    assert len(line.splitlines()) <= 1
    assert line == line.strip()


@pytest.mark.parametrize(
    "text",
    [
        "plain text, with\ttabs\nand lines",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f\u200d\U0001f525 1\ufe0f\u20e3 \U0001f1e9\U0001f1ea",
        "\U0001f3f3\ufe0f\u200d\U0001f308 \U0001f469\U0001f3fd\u200d\U0001f4bb",
        FLAG_OF_ENGLAND,
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian: I want
        "\u0915\u094d\u200d\u0937 \u0d28\u0d4d\u200d\u0d31",  # Hindi and Malayalam
        "\u845b\U000e0100",  # a variant of an ideograph
    ],
)
def test_what_scripts_and_emoji_need_is_kept(text: str) -> None:
    assert clean_text(text) == text


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\u200bb\u2060c\ufeff\u00add", "abcd"),
        ("\u202eevil\u202c \u2066x\u2069 \u200fy", "evil x y"),
        ("hi \U000e0049\U000e0047\U000e004e done", "hi  done"),
        ("\U0001f3f4\U000e0078\U000e0079\U000e007a\U000e007f", "\U0001f3f4"),
        ("a\ufe0f\u200db \U0001f600\ufe0f\ufe0f\ufe0e", "ab \U0001f600\ufe0f"),
        ("a\r\nb\rc\x0bd\x0ce\x85f\u2028g\u2029h", "a\nb\nc\nd\ne\nf\ng\nh"),
        ("e\u0301 \u212b", "\u00e9 \u00c5"),
        ("a\x00\ud800b\x07\x1b[2J", "a\ufffd\ufffdb[2J"),
        ("a" + "\u0327" * 1000, "a" + "\u0327" * MAX_MARKS),
    ],
)
def test_what_hides_or_breaks_is_taken_out(text: str, cleaned: str) -> None:
    assert clean_text(text) == cleaned


def test_a_message_of_hidden_characters_alone_is_not_empty() -> None:
    assert message_text("\u200b\u202e") == "\ufffd"


@pytest.mark.parametrize(
    "name",
    [
        *(
            "Nexus",
            "NEXUS",
            "N\u0435\u0445us",
            "\uff2e\uff45\uff58\uff55\uff53",
            "N e x u s",
            "Nexus Bot",
            "n\u200bexus",
        ),
        *(
            "\U0001d4dd\U0001d4ee\U0001d501\U0001d4fe\U0001d4fc",
            "N\u00ebxus",
            "nexus (bot)",
            "You",
            "\u04aeou",
            "System",
        ),
        *("\u0274exus", "\u0274\u1d07x\u1d1c\ua731", "N3xus", "N3XU5 B0T", "nexus.", "Nexus!", "NexusBot", "NexusAI"),
        *(
            "Nexus\u2122",
            "Nexus \u2713",
            "Nexus \u2705",
            "Nexus \U0001f1fa\U0001f1f8",
            "Nexus $",
            "Nexu$",
            "n\u20acxus",
        ),
        "".join(chr(0x1F150 + ord(letter) - ord("A")) for letter in "NEXUS"),  # in filled circles
        "".join(chr(0x1F170 + ord(letter) - ord("A")) for letter in "NEXUS"),  # in filled squares
        "".join(chr(0x1F1E6 + ord(letter) - ord("A")) for letter in "NEXUS"),  # as flags are written
        *(
            "\u019dexus",
            "\u014bexus",
            "n\u03b5xus",
            "ne\u2717us",
            "\u043fexus",
            "\u144eEX\u144cS",
            "\u24c3\u24d4\u24e7\u24e4\u24e2",
        ),
        *("The Assistant", "AI Assistant", "th3 Ass1stant", "theassistant", "nexusbot", "thenexusbot", "the nexusai"),
        *("n\u0435xusbot", "realnexus \u2713", "\u20a6exus", "\u1d0eexus", "n\u2203xus", "\uab91exus", "n\u01ddxus"),
    ],
)
def test_no_person_is_called_like_an_agent(name: str) -> None:
    named = person_name(name, ["Nexus", "nexus"])
    assert named.startswith("a person named ")
    assert person_name(named, ["Nexus", "nexus"]) == named


@pytest.mark.parametrize(
    "name",
    [
        *(
            "alice",
            "Nexus2",
            "\u65e5\u672c",
            "AI",
            "yousef",
            "Bob [away]",
            "Alice \u2713",
            "Zo\u00eb\u2122",
            "505",
            "N",
            "nex",
            "Lexus",
        ),
        *(
            "\u00d8ystein",
            "\u0141ukasz",
            "\u042e\u043b\u044f",
            "Annai",
            "Yo\u00fcssef",
            "Max Nexusson",
            "\U0001f1fa\U0001f1f8",
            "\u2713",
            "1337",
        ),
    ],
)
def test_other_names_stay_as_they_are(name: str) -> None:
    assert person_name(name, ["Nexus", "nexus"]) == name


@given(NASTY)
def test_every_name_has_its_looks(name: str) -> None:
    assert looks(clean_line(name)) == looks(clean_line(clean_line(name)))


def test_the_values_of_facts_are_cleaned_in_every_depth() -> None:
    assert clean_value({"a\u200b": ["b\u202e", 1, None, {"c": "d\r\ne"}]}) == {"a": ["b", 1, None, {"c": "d\ne"}]}
    with pytest.raises(BadInput, match="cannot be stored"):
        clean_value(["\x00"])


@pytest.mark.parametrize("name", ["alice", "alice (app)", "alice" * 30])
def test_an_app_is_never_called_like_a_person(name: str) -> None:
    named = app_name(name, ["Nexus"])
    assert named.endswith(" (app)")
    assert app_name(named, ["Nexus"]) == named
    assert speaker_label(named).endswith(" app")
    assert len(named) <= MAX_LABEL_CHARS


@pytest.mark.parametrize("name", ["Nexus", "Everyone"])
def test_an_app_is_not_called_like_an_agent_either(name: str) -> None:
    assert app_name(name, ["Nexus"]) == f"a person named {name} (app)"


@pytest.mark.parametrize(
    "name", ["alice (app)", "alice app", "alice \uff21\uff30\uff30", "alice [\u0430pp] \u2713", "alice app bot"]
)
def test_no_person_is_called_like_an_app(name: str) -> None:
    named = person_name(name, ["Nexus"])
    assert named == f"a person named {name}"
    assert person_name(named, ["Nexus"]) == named
    assert speaker_label(named) != speaker_label(app_name("alice", ["Nexus"]))


@pytest.mark.parametrize(
    "name",
    [
        *(
            "Everyone",
            "everyone.",
            "\u0415verybody",
            "The team",
            "TEAM",
            "Decision",
            "D\u00e9cision",
            "Decisi\u00f3n",
            "She",
            "I",
        ),
        *(
            "Everybody here",
            "The whole team",
            "Our team",
            "All of us",
            "we all",
            "You all",
            "All 12 members",
            "The Board",
        ),
        *(
            "HR",
            "Human Resources",
            "CEO",
            "Management",
            "Administrator",
            "Security",
            "@here all",
            "Slackbot",
            "Consensus",
        ),
        *("\u0412\u0441\u0435", "\u043c\u044b", "\u5168\u54e1", "\u6211\u4eec", "\uc6b0\ub9ac"),
        *("They", "we", "Alle", "Wir", "Entscheidung", "\u00c9quipe", "Nous", "Todos", "Tutti", "Iedereen"),
    ],
)
def test_no_person_is_called_like_several_or_like_whoever_speaks(name: str) -> None:
    named = person_name(name, ["Nexus"])
    assert named == f"a person named {name}"
    assert person_name(named, ["Nexus"]) == named


@pytest.mark.parametrize("name", ["Everyone", "team", "ICH", "She"])
def test_a_stored_name_is_not_shown_as_that_of_several(name: str) -> None:
    assert speaker_label(name) == f"a person named {name}"
    assert title_label(name) == name


@pytest.mark.parametrize(
    "name", ["Ali", "Ella", "Elle", "Al", "Allie", "Noi", "Team Lead", "Ann (App Support)", "Apple"]
)
def test_names_of_people_are_none_of_several_or_of_apps(name: str) -> None:
    assert person_name(name, ["Nexus"]) == name


@pytest.mark.parametrize(
    "name", ["Lena (HR)", "Sam - Security", "Alice (she/her)", "Max | Team Infra", "Ann All", "Ali"]
)
def test_who_names_their_team_is_one_person(name: str) -> None:
    assert person_name(name, ["Nexus"]) == name
