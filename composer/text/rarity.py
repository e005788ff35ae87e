"""Which words are common, in many languages: those that a tokenizer of a large vocabulary has as one token. Pure."""

import unicodedata
from functools import cache
from typing import Final

from composer.text.repetition import words_of

_ENCODING: Final = "o200k_base"  # of splintr: 200,000 tokens, of texts in many languages, the most frequent first
# Of the tokens in Latin letters, those below this are common words: "table", "budget", "nicht". Above it come names,
# and words such as "vault" and "allergy". Other scripts have fewer tokens, so there every word that is one counts.
_COMMON_LATIN: Final = 33_000
_DAYS: Final = 31  # numbers up to this count, and number the lines of lists; so do round ones


def is_rare(word: str) -> bool:
    """Whether a word of `composer.text.repetition.words_of` says by itself what a text is about: a number, a name, a
    word that few texts have."""
    if word.isdecimal():
        return len(word) > 2 or not (int(word) <= _DAYS or word.endswith("0"))
    return " " not in word and word not in _common_words()


@cache
def _common_words() -> frozenset[str]:
    """The common words, as `words_of` gives them. It takes half a second, once in a process that erases something."""
    from splintr import Tokenizer  # noqa: PLC0415  # 30 MB, which few processes need

    vocabulary = Tokenizer.from_pretrained(_ENCODING)
    words = (vocabulary.decode_lossy([token]) for token in range(vocabulary.vocab_size))
    return frozenset(part for token, word in enumerate(words) if _is_common(word, token) for part in words_of(word))


def _is_common(word: str, token: int) -> bool:
    """Whether a token is a common word, or a common symbol such as a smiley."""
    plain = word.strip()
    if not plain.isalpha():
        return len(plain) == 1 and unicodedata.category(plain) == "So"
    if plain.isascii() or all("LATIN" in unicodedata.name(char, "") for char in plain):
        return token < _COMMON_LATIN and word[0] == " "
    return True
