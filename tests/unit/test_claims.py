"""Answers that say to have done what was not done."""

import pytest

from composer.text.claims import CLAIM_NOTICES, Claim, claim_notice, may_claim, read_verdict
from composer.text.notices import without_notices


@pytest.mark.parametrize(
    "text",
    [
        "I will remind you about the demo on Thursday.",
        "Sure thing! I've saved this for you.",
        "Hi Ann.\n\nGot it, I'll remember that you are vegetarian.",
        "Ich erinnere dich am Dienstag um 8 Uhr.",
        "Je te rappellerai la réunion lundi.",
        "Te recordaré la reunión del lunes.",
        "Ti ricorderò la riunione di lunedì.",
        "Ik zal je maandag herinneren.",
        "Przypomnę ci o spotkaniu w poniedziałek.",
        "Напомню вам завтра утром.",
        "月曜日の会議をリマインドします。",
        "我会在星期一提醒你开会。",
    ],
)
def test_what_may_be_a_claim_is_looked_at(text: str) -> None:
    assert may_claim(text)


@pytest.mark.parametrize(
    "text",
    [
        "The launch is on Friday, as Carol wrote.",
        "Hello there.",
        "Shall I remind you tomorrow?",
        "Three options were named in the meeting, and nobody chose one.",
        "Use `I will remind you` as the text of the message.",
        "```\nI will remind you tomorrow.\n```",
        "> I will remind you tomorrow.",
        "",
        "?!",
        "12 34",
    ],
)
def test_what_claims_nothing_costs_nothing(text: str) -> None:
    assert not may_claim(text)


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("REMIND en", (Claim.REMIND, "en")),
        ("STORE: de", (Claim.STORE, "de")),
        ("**REMIND** ja", (Claim.REMIND, "ja")),
        ("REMIND", (Claim.REMIND, "en")),
        ("NONE en", None),
        ("I am not sure.", None),
        ("", None),
    ],
)
def test_a_verdict_is_read(said: str, verdict: tuple[Claim, str] | None) -> None:
    assert read_verdict(said) == verdict


def test_a_notice_is_in_the_language_of_the_answer_and_never_shown_to_a_model_again() -> None:
    assert len(set(CLAIM_NOTICES)) == len(CLAIM_NOTICES) == 28
    for language in ("en", "de", "ja", "xx"):
        for claim in Claim:
            notice = claim_notice(claim, language, "/nexus remind WHEN TEXT")
            assert without_notices(f"I will.\n\n{notice}") == "I will."
    assert claim_notice(Claim.STORE, "xx", "C") == claim_notice(Claim.STORE, "en", "C")
    assert claim_notice(Claim.STORE, "de", "C").startswith("Damit wurde nichts gespeichert.")
