"""Mask secrets in a text before something is made of it: keys, tokens, passwords in URLs, private keys, card numbers.

The message log keeps what was said, and its author can have it forgotten. Memories, facts, landmarks and summaries
show `[masked: AWS key]` in its place. The rules are those of detect-secrets, but only those for keys of a known form:
rules about entropy or about the word "password" would mask hashes, ids and ordinary talk. Card numbers are recognised
by their issuer, their length and their check digit (Luhn, from python-stdnum).
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from stdnum import luhn

# The plugins of detect-secrets that we use, each with what its secrets are called, and the beginnings (in lower case)
# of which a text has one if it has such a secret: most texts have none, and are searched no further. Some of the
# patterns begin anywhere within a word and would take quadratic time, so each may begin only where a word does.
_PLUGINS: Final = {
    "AWSKeyDetector": ("AWS key", ("a3t", "abia", "acca", "akia", "asia", "aws")),
    "AzureStorageKeyDetector": ("Azure key", ("accountkey=",)),
    "DiscordBotTokenDetector": ("Discord token", (".",)),
    "GitHubTokenDetector": ("GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")),
    "GitLabTokenDetector": ("GitLab token", ("gl", "gr1348941")),
    "MailchimpDetector": ("Mailchimp key", ("-us",)),
    "OpenAIDetector": ("API key", ("t3blbkfj",)),
    "PypiTokenDetector": ("PyPI token", ("pypi-",)),
    "SendGridDetector": ("SendGrid key", ("sg.",)),
    "SlackDetector": ("Slack token", ("xox", "hooks.slack.com")),
    "SquareOAuthDetector": ("Square key", ("sq0csp-",)),
    "StripeDetector": ("Stripe key", ("k_live_",)),
    "TelegramBotTokenDetector": ("Telegram token", (":",)),
    "TwilioKeyDetector": ("Twilio key", ("ac", "sk")),
}
_FURTHER: Final = (  # forms that the plugins do not know, or find in quadratic time
    (
        "JSON Web Token",
        r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]+)?",
        ("eyj",),
    ),
    ("GitHub token", r"github_pat_[A-Za-z0-9_]{40,}", ("github_pat_",)),
    ("Google key", r"AIza[0-9A-Za-z_-]{35}", ("aiza",)),
    ("Nexus key", r"nx[slacr]?_[A-Za-z0-9_~-]{1,200}?_[0-9a-f]{64}", ("nx_", "nxs_", "nxl_", "nxa_", "nxc_", "nxr_")),
    ("npm token", r"npm_[A-Za-z0-9]{36}", ("npm_",)),
    ("Slack token", r"(?:xapp|xoxe(?:\.xox[bp])?)-\d-[A-Za-z0-9-]{20,}", ("xapp-", "xoxe")),
    ("Stripe key", r"(?:sk|rk)_(?:live|test)_[0-9a-zA-Z]{24,}", ("k_live_", "k_test_")),
    (
        "API key",
        r"sk-(?=[a-zA-Z_-]{0,40}\d)(?:ant|proj|svcacct|admin|or)-[A-Za-z0-9_-]{32,}",
        ("sk-ant-", "sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-"),
    ),
)
_URL_PASSWORD: Final = re.compile(r"(?<=://)([^\s:/?#\[\]@]{0,200}):([^\s/?#\[\]@]{1,200})@")
_KEY_BEGIN: Final = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d:"
)
_KEY_END: Final = re.compile(r"-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----|Private-MAC: [0-9a-f]+")
# What a text has somewhere if it has a secret at all: a long word, a password in a URL, a private key, many digits.
_BETWEEN: Final = r" \u00a0\u2007\u2009\u202f\u2010-\u2014-"  # digits: spaces and dashes, also those of typography
_SUSPECT: Final = re.compile(rf"\S{{20}}|://|PRIVATE KEY|PuTTY|\d[\d{_BETWEEN}]{{12}}")
_DIGITS: Final = re.compile(rf"(?<![\w.,:/#=-])\d(?:[{_BETWEEN}]?\d){{13,18}}(?![\w-]|[.,]\d)")
# Issuers by their first digits, each with the lengths of its numbers (ISO/IEC 7812): Visa, Mastercard, American
# Express, Discover, JCB, Diners Club.
_ISSUERS: Final = (
    (re.compile(r"4"), (16,)),
    (re.compile(r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720"), (16,)),
    (re.compile(r"3[47]"), (15,)),
    (re.compile(r"6011|64[4-9]|65"), (16,)),
    (re.compile(r"35(?:2[89]|[3-8])"), (16,)),
    (re.compile(r"30[0-5]|3[689]"), (14,)),
)


def mask(text: str) -> str:
    """A text with its secrets replaced by `[masked: …]`. Takes linear time; masking twice changes nothing more."""
    if _SUSPECT.search(text) is None:
        return text
    masked = _mask_private_keys(text)
    if "://" in masked:
        masked = _URL_PASSWORD.sub(r"\1:[masked: password]@", masked)
    lowered = masked.lower()
    for name, pattern, beginnings in _rules():
        if any(beginning in lowered for beginning in beginnings):
            masked = pattern.sub(f"[masked: {name}]", masked)
    return _DIGITS.sub(_mask_card, masked)


@cache
def _rules() -> tuple[tuple[str, re.Pattern[str], tuple[str, ...]], ...]:
    """What is found, its pattern and its beginnings. detect-secrets takes 0.2 s to import, so it waits until it is
    needed, in the background."""
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class  # noqa: PLC0415

    classes: Iterable[Any] = get_mapping_from_secret_type_to_class().values()
    plugins = {plugin.__name__: plugin for plugin in classes}
    found = [
        (name, pattern.pattern, pattern.flags, beginnings)
        for plugin, (name, beginnings) in _PLUGINS.items()
        for pattern in plugins[plugin].denylist
    ]
    found += [(name, pattern, 0, beginnings) for name, pattern, beginnings in _FURTHER]
    return tuple(
        (name, re.compile(rf"(?<![A-Za-z0-9_-])(?:{pattern})[A-Za-z0-9_-]*", flags & re.IGNORECASE), beginnings)
        for name, pattern, flags, beginnings in found
    )


def _mask_private_keys(text: str) -> str:
    """A text without the lines of private keys. One that is cut off goes on to the end of the text."""
    parts, at = [], 0
    while (begin := _KEY_BEGIN.search(text, at)) is not None:
        end = _KEY_END.search(text, begin.end())
        parts += [text[at : begin.start()], "[masked: private key]"]
        at = len(text) if end is None else end.end()
    return "".join((*parts, text[at:]))


def _mask_card(found: re.Match[str]) -> str:
    digits = "".join(str(int(sign)) for sign in found[0] if sign.isdecimal())  # of any script
    issued = any(len(digits) in lengths and issuer.match(digits) for issuer, lengths in _ISSUERS)
    return "[masked: card number]" if issued and luhn.is_valid(digits) else found[0]
