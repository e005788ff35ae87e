"""What a process that serves imports before it says that it is up: the first requests would import it on the event
loop, and all others would wait."""

from importlib import import_module

from composer.settings import Settings


def import_ahead(settings: Settings) -> None:
    """Import what the first question, the first call of the gateway and the first job need. Takes half a second."""
    import_module("apscheduler.executors.asyncio")
    import_module("dateparser.languages.loader")
    import_module("httpcore2")
    if settings.has_model_api:
        _import_model_client(settings)
    if settings.mcp:
        import_module("mcp.client.stdio")
        import_module("mcp.client.streamable_http")


def _import_model_client(settings: Settings) -> None:
    """The SDK imports the parts of its client when they are asked for."""
    from openai import AsyncOpenAI  # noqa: PLC0415 - no other command needs it

    client = AsyncOpenAI(base_url="http://localhost", api_key="none")
    parts = [client.chat.completions, client.embeddings]
    if settings.transcription_model:
        parts.append(client.audio.transcriptions)
