"""The meter of transcriptions: each is held within budgets and recorded, as answers are."""

from composer.model import Usage
from composer.ports.models import SPEECH_BYTES_PER_SECOND, SpeechModel, UsageAccount, speech_tokens
from composer.repositories.usage import Amount
from composer.usage.ledger import CallLedger


class TranscriptionMeter:
    """Asks a speech model within budgets, and records what that used."""

    def __init__(self, model: SpeechModel, ledger: CallLedger) -> None:
        self._model, self._ledger = model, ledger

    async def transcribe(
        self, name: str, media_type: str, content: bytes, account: UsageAccount, seconds: float = 0
    ) -> str:
        """What is spoken in a voice note of so many `seconds` (0: unknown). Raises as the model, and BudgetUsedUp."""
        speech = Usage(speech_tokens(seconds or len(content) / SPEECH_BYTES_PER_SECOND))

        async def most() -> Amount:
            return Amount(speech.prompt_tokens, self._ledger.cost(self._model.name, speech))

        async with self._ledger.reserved(account, self._model.name, most):
            usage, answered, begun = Usage(), False, await self._ledger.begin(account)
            try:
                transcript = await self._model.transcribe(name, media_type, content)
                usage, answered = transcript.usage, True
                return transcript.text
            finally:
                estimated = answered and not usage.prompt_tokens
                usage = usage.at_least(speech) if estimated else usage
                figures = self._ledger.figures(self._model.name, usage, failed=not answered, estimated=estimated)
                await self._ledger.record(account, self._model.name, figures, begun)
