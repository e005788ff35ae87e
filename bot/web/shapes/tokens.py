"""The tokens of an answer, as the API says them."""

from pydantic import BaseModel


class TokenUsage(BaseModel):
    """The tokens of an answer, as the model's API reports them. Zeros, or no model (empty): none was asked."""

    model: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
