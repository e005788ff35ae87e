"""Whether a server's report of what a call used can be true. Pure."""

from typing import Final

from composer.model import Usage

MAX_CHARS_PER_TOKEN: Final = 16  # no ordinary long text averages more
BELIEVED_CHARS: Final = 4_000  # of so short a text any report but none is believed


def is_plausible(reported: Usage, prompt_chars: int, answer_chars: int) -> bool:
    """Whether a call with a prompt and an answer of so many characters may have used what is `reported`. If not, the
    tokens that we count ourselves are the least that it used."""
    if (prompt_chars and not reported.prompt_tokens) or (answer_chars and not reported.completion_tokens):
        return False
    tokens = reported.prompt_tokens + reported.completion_tokens
    return tokens * MAX_CHARS_PER_TOKEN + BELIEVED_CHARS >= prompt_chars + answer_chars
