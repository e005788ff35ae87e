"""Models that write down what was spoken, at an OpenAI-compatible API."""

from functools import partial

from composer.model import Usage
from composer.ports.models import Transcript, speech_tokens
from composer.stores.models.openai_connection import ApiSubject, OpenAIConnection
from composer.text.cleaning import clean_text
from composer.text.completions import count_of

SETTING = "NEXUS_TRANSCRIPTION_MODEL"


class OpenAITranscriber:
    """A model at `audio/transcriptions` of an OpenAI-compatible API (composer.ports.models.SpeechModel)."""

    def __init__(self, base_url: str, api_key: str, model: str, timeout: float) -> None:
        """`timeout` is for one voice note, in seconds."""
        self._connection, self._model = OpenAIConnection(base_url, api_key, timeout), model
        self._subject = ApiSubject(self._connection.host, model, SETTING)

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model

    async def transcribe(self, name: str, media_type: str, content: bytes) -> Transcript:
        """What is spoken in a voice note. Raises Unavailable or Misconfigured."""
        connection = self._connection
        return await connection.call(
            self._subject, connection.timeout, partial(self._request, name, media_type, content)
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()

    async def _request(self, name: str, media_type: str, content: bytes) -> Transcript:
        file = (name, content, media_type)
        answer = await self._connection.client.audio.transcriptions.create(
            model=self._model, file=file, response_format="json"
        )
        if not isinstance(answer.text, str):  # a page of a proxy, for example
            raise TypeError("the answer has no text")
        return Transcript(clean_text(answer.text).strip(), _usage(answer.usage))


def _usage(reported: object) -> Usage:
    """What the API says that it used, in tokens; seconds are counted as 1,000 tokens a minute."""
    seconds = count_of(getattr(reported, "seconds", None))
    if seconds:
        return Usage(speech_tokens(seconds))
    given, written = getattr(reported, "input_tokens", None), getattr(reported, "output_tokens", None)
    return Usage(count_of(given) or 0, count_of(written) or 0)
