"""More of what scenarios ask a server for: tools and a prompt that ask the client something before they answer, as the
revision 2026-07-28 has it. No tool of ours asks anything; these show that such answers get through our server."""

from collections.abc import Mapping
from typing import Any, Final

from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)

Asked = ElicitRequest | CreateMessageRequest | ListRootsRequest
Asking = CallToolResult | InputRequiredResult
KINDS: Final[Mapping[type[Asked], Any]] = {
    ElicitRequest: ElicitResult,
    CreateMessageRequest: CreateMessageResult,
    ListRootsRequest: ListRootsResult,
}


def add_asking(server: "MCPServer[Any]") -> None:
    """Add them to a server."""
    for tool in (
        test_input_required_result_elicitation,
        test_input_required_result_sampling,
        test_input_required_result_list_roots,
        test_input_required_result_request_state,
        test_input_required_result_multiple_inputs,
        test_input_required_result_multi_round,
        test_input_required_result_tampered_state,
        test_input_required_result_capabilities,
        test_missing_capability,
    ):
        server.add_tool(tool, description=(tool.__doc__ or "").strip(), structured_output=False)
    server.prompt(description="Ask for a context.")(test_input_required_result_prompt)


def form(message: str, **fields: str) -> ElicitRequest:
    """A question to the person, with fields of these types."""
    schema: Any = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in fields.items()},
        "required": list(fields),
    }
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(text: str) -> CreateMessageRequest:
    """A question to the client's model."""
    said = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[said], max_tokens=100))


def still_asked(context: Context[Any, Any], questions: Mapping[str, Asked]) -> bool:
    """Whether an answer to one of the questions is missing, or is none."""
    given = context.input_responses or {}
    return any(not isinstance(given.get(name), KINDS[type(each)]) for name, each in questions.items())


def answered(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)])


def one_round(context: Context[Any, Any], questions: Mapping[str, Asked], state: str | None = None) -> Asking:
    """Ask once, and then answer; with a state, only if it comes back as it was."""
    if still_asked(context, questions) or context.request_state != state:
        return InputRequiredResult(input_requests=dict(questions), request_state=state)
    return answered(f"state-ok: {sorted(context.input_responses or {})}")


def test_input_required_result_elicitation(context: Context[Any, Any]) -> Asking:
    """Ask for a name."""
    return one_round(context, {"user_name": form("What is your name?", name="string")})


def test_input_required_result_sampling(context: Context[Any, Any]) -> Asking:
    """Ask the client's model."""
    return one_round(context, {"capital_question": sample("What is the capital of France?")})


def test_input_required_result_list_roots(context: Context[Any, Any]) -> Asking:
    """Ask for the roots."""
    return one_round(context, {"client_roots": ListRootsRequest()})


def test_input_required_result_request_state(context: Context[Any, Any]) -> Asking:
    """Ask with a state."""
    return one_round(context, {"confirm": form("Please confirm", ok="boolean")}, "confirming")


def test_input_required_result_multiple_inputs(context: Context[Any, Any]) -> Asking:
    """Ask for three things."""
    asked: dict[str, Asked] = {
        "user_name": form("What is your name?", name="string"),
        "greeting": sample("Generate a greeting"),
        "client_roots": ListRootsRequest(),
    }
    return one_round(context, asked, "three")


def test_input_required_result_multi_round(context: Context[Any, Any]) -> Asking:
    """Ask twice."""
    first = {"step1": form("Step 1: What is your name?", name="string")}
    second = {"step2": form("Step 2: What is your favorite color?", color="string")}
    if context.request_state == "second":
        return one_round(context, second, "second")
    if context.request_state != "first" or still_asked(context, first):
        return InputRequiredResult(input_requests=dict(first), request_state="first")
    return InputRequiredResult(input_requests=dict(second), request_state="second")


def test_input_required_result_tampered_state(context: Context[Any, Any]) -> Asking:
    """Ask with a state that nobody may change."""
    return one_round(context, {"confirm": form("Please confirm", ok="boolean")}, "untouched")


def test_input_required_result_capabilities(context: Context[Any, Any]) -> Asking:
    """Ask what the client can answer."""
    able = context.client_capabilities
    asked: dict[str, Asked] = {}
    if able is not None and able.sampling is not None:
        asked["greeting"] = sample("Generate a greeting")
    if able is not None and able.elicitation is not None:
        asked["user_name"] = form("What is your name?", name="string")
    return one_round(context, asked) if asked else answered("There is nothing that you can be asked.")


def test_missing_capability(context: Context[Any, Any]) -> CallToolResult:
    """Answer clients alone whose model may be asked."""
    able = context.client_capabilities
    if able is None or able.sampling is None:
        raise MCPError(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            "The client must let its model be asked.",
            {"requiredCapabilities": {"sampling": {}}},
        )
    return answered("It may be asked.")


def test_input_required_result_prompt(context: Context[Any, Any]) -> str | InputRequiredResult:
    asked = {"user_context": form("What context should the prompt use?", context="string")}
    if still_asked(context, asked):
        return InputRequiredResult(input_requests=dict(asked))
    return "With that context."
