"""Secrets are masked before something is made of a text, and ordinary talk is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from composer.text.masking import mask

# In pieces, so that no scanner of repositories takes them for keys.
TAIL = "1A2b3C4d5E6f7G8h9I0jKlMnOpQrStUvWxYz"
SECRETS = [
    ("AWS key", "AKIA" + "IOSFODNN7EXAMPLE"),
    ("AWS key", "aws_secret_key = '" + "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY" + "'"),
    ("GitHub token", "ghp_" + TAIL),
    ("GitHub token", "github_pat_" + TAIL + TAIL),
    ("GitLab token", "glpat-" + TAIL[:20]),
    ("Slack token", "xoxb-" + "123456789012-123456789012-" + "abcdefABCDEF"),
    ("Stripe key", "sk_live_" + TAIL[:24]),
    ("Google key", "AIza" + TAIL[:35]),
    ("npm token", "npm_" + TAIL),
    ("Nexus key", "nx_slack~3aT0123_" + "0a1b2c3d" * 8),
    ("Nexus key", "nxs_acme_" + "0a1b2c3d" * 8),
    ("Nexus key", "nxl_acme_" + "0a1b2c3d" * 8),
    ("Nexus key", "nxa_acme_" + "0a1b2c3d" * 8),
    ("Nexus key", "nxc_acme_" + "0a1b2c3d" * 8),
    ("Nexus key", "nxr_acme_" + "0a1b2c3d" * 8),
    ("API key", "sk-proj-" + TAIL + "T3Blbk" + "FJ" + TAIL),
    ("API key", "sk-ant-" + "api03-" + TAIL),
    ("JSON Web Token", "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxIn0" + "." + "c2lnbmF0dXJl-_"),
    ("card number", "4111 1111 1111 1111"),
    ("card number", "5555-5555-5555-4444"),
    ("card number", "378282246310005"),
]


@pytest.mark.parametrize(("name", "secret"), SECRETS)
def test_a_secret_is_masked_and_the_words_around_it_stay(name: str, secret: str) -> None:
    assert mask(f"use {secret} for staging, please") == f"use [masked: {name}] for staging, please"
    if name != "card number":
        assert mask(f"key={secret}") == f"key=[masked: {name}]"
    assert mask(secret) == f"[masked: {name}]"


@pytest.mark.parametrize(
    "between",
    ["\N{NO-BREAK SPACE}", "\N{FIGURE SPACE}", "\N{NARROW NO-BREAK SPACE}", "\N{EN DASH}", "\N{NON-BREAKING HYPHEN}"],
)
def test_a_card_number_is_masked_as_typography_sets_it(between: str) -> None:
    number = between.join(("4111", "1111", "1111", "1111"))
    assert mask(f"use {number} for it") == "use [masked: card number] for it"


@pytest.mark.parametrize(
    "zero", ["\N{FULLWIDTH DIGIT ZERO}", "\N{ARABIC-INDIC DIGIT ZERO}", "\N{DEVANAGARI DIGIT ZERO}"]
)
def test_a_card_number_is_masked_in_the_digits_of_any_script(zero: str) -> None:
    number = "".join(chr(ord(zero) + int(digit)) for digit in "4111111111111111")
    assert mask(f"use {number} for it") == "use [masked: card number] for it"


def test_the_password_of_a_url_is_masked() -> None:
    assert (
        mask("it is postgres://app:hunter2@db.local/app now")
        == "it is postgres://app:[masked: password]@db.local/app now"
    )
    assert mask("redis://:s3cret@cache") == "redis://:[masked: password]@cache"


def test_a_private_key_is_masked_with_all_of_its_lines_also_when_it_is_cut_off() -> None:
    begin, end = "-----BEGIN " + "RSA PRIVATE KEY-----", "-----END " + "RSA PRIVATE KEY-----"
    assert mask(f"here:\n{begin}\nMIIEow\nAbc\n{end}\nkeep it") == "here:\n[masked: private key]\nkeep it"
    assert mask(f"here: {begin}\nMIIEow") == "here: [masked: private key]"


@pytest.mark.parametrize(
    "text",
    [
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 broke it",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "turn 6f1d4a52-7f0e-5c0b-9a57-2b1c5f6f7a10",
        "message 1094817263512345678 in <#1094817263512345679>",
        "call +49 151 23456789 01 or 030 1234567890",
        "the order 4111111111111112 was sent",
        "at 1767225600000 we deployed 20260504120000 and 2026-05-04 12:00:00",
        "https://example.com:8080/path@v2?token=1 and git@github.com:acme/app.git",
        "mail a@b.de, ratio 3:4, sk-learn-and-some-very-long-branch-name-of-mine",
        "feature/sk-proj-rename-the-whole-thing-in-the-settings-page",
        "password is not here; the api key rotates on Friday",
        "aws gives us a key, and the token of the aws account rotates",
        "ISBN 978-3-16-148410-0, IBAN DE89 3704 0044 0532 0130 00",
        "[masked: AWS key]",
        "",
    ],
)
def test_ordinary_talk_ids_and_hashes_are_not_masked(text: str) -> None:
    assert mask(text) == text


@given(st.text(st.sampled_from("AKIA0 41:/@-.eyJsk_\n"), max_size=200))
def test_masking_twice_changes_nothing_more(text: str) -> None:
    assert mask(mask(text)) == mask(text)


@pytest.mark.parametrize(
    "piece", ["eyJ", "eyJa=", "sk-ant-", "//:", "aws key ", "xoxb-1-", "4 ", "-----BEGIN A PRIVATE KEY-----", "glpat-"]
)
@pytest.mark.timeout(20)
def test_a_hostile_repetition_takes_linear_time(piece: str) -> None:
    assert mask(piece * (400_000 // len(piece))) is not None
