"""What scenarios of the conformance tests ask a server for: tools, resources and prompts with these names. They are
added to our server in its tests, so that what it does with each kind of content passes through all that it has."""

import base64
import json
from typing import Any, Final

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.types import AudioContent, ContentBlock, EmbeddedResource, ImageContent, TextContent, TextResourceContents

# One red pixel, and a tenth of a millisecond of silence.
PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV: Final = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="
IMAGE: Final = ImageContent(type="image", data=PNG, mime_type="image/png")

# What a schema of a tool may hold, all of it: a client gets it as it is.
SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def add_fixtures(server: "MCPServer[Any]") -> None:
    """Add the fixtures to a server."""
    for tool in (
        test_simple_text,
        test_image_content,
        test_audio_content,
        test_embedded_resource,
        test_multiple_content_types,
        test_error_handling,
        test_tool_with_progress,
    ):
        server.add_tool(tool, description=(tool.__doc__ or "").strip(), structured_output=False)
    server.add_tool(json_schema_2020_12_tool, description="Take nothing.", structured_output=False)
    added = server._tool_manager.get_tool("json_schema_2020_12_tool")
    assert added is not None
    added.parameters = SCHEMA
    server.resource("test://static-text", description="A text.", mime_type="text/plain")(static_text)
    server.resource("test://static-binary", description="A picture.", mime_type="image/png")(static_binary)
    server.resource("test://template/{id}/data", description="What has an id.", mime_type="application/json")(data_of)
    for prompt in (
        test_simple_prompt,
        test_prompt_with_arguments,
        test_prompt_with_embedded_resource,
        test_prompt_with_image,
    ):
        server.prompt(description=(prompt.__doc__ or "").strip())(prompt)


def text(said: str) -> TextContent:
    return TextContent(type="text", text=said)


def resource(uri: str, said: str, mime_type: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=mime_type, text=said))


def test_simple_text() -> list[ContentBlock]:
    """Answer a text."""
    return [text("This is a simple text response for testing.")]


def test_image_content() -> list[ContentBlock]:
    """Answer a picture."""
    return [IMAGE]


def test_audio_content() -> list[ContentBlock]:
    """Answer a sound."""
    return [AudioContent(type="audio", data=WAV, mime_type="audio/wav")]


def test_embedded_resource() -> list[ContentBlock]:
    """Answer a resource."""
    return [resource("test://embedded-resource", "This is an embedded resource content.")]


def test_multiple_content_types() -> list[ContentBlock]:
    """Answer several kinds of content."""
    said = resource("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
    return [text("Multiple content types test:"), IMAGE, said]


def test_error_handling() -> list[ContentBlock]:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


async def test_tool_with_progress(context: Context[Any, Any]) -> list[ContentBlock]:
    """Report progress."""
    for done in (0, 50, 100):
        await context.report_progress(done, 100)
    return [text("Done.")]


def json_schema_2020_12_tool() -> list[ContentBlock]:
    return [text("Taken.")]


def static_text() -> str:
    return "This is the content of the static text resource."


def static_binary() -> bytes:
    return base64.b64decode(PNG)


def data_of(id: str) -> str:
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def test_simple_prompt() -> str:
    """Say one thing."""
    return "This is a simple prompt for testing."


def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """Say what it is given."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:
    """Say a resource."""
    embedded = resource(resourceUri, "Embedded resource content for testing.")
    return [UserMessage(embedded), UserMessage("Please process the embedded resource above.")]


def test_prompt_with_image() -> list[UserMessage]:
    """Show a picture."""
    return [UserMessage(IMAGE), UserMessage("Please analyze the image above.")]
