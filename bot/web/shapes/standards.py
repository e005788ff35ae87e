"""What the gateway, MCP and OAuth take and answer, as far as the standards of each fix it: each may hold more."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Id = str | Annotated[int, Field(ge=-(2**53), le=2**53)]


class _Open(BaseModel):
    """A value of a standard, which has more fields than are named here."""

    model_config = ConfigDict(extra="allow")


class GatewayMessage(_Open):
    """A message of a chat: its text, or its parts."""

    role: str
    content: str | list[dict[str, Any]] | None = None


class ChatCompletionRequest(_Open):
    """A chat to go on with, as the OpenAI API takes it; the model server decides what else it takes."""

    model: str
    messages: list[GatewayMessage]
    stream: bool | None = None


class CompletionUsage(_Open):
    """The tokens of an answer, as the model server counts them."""

    prompt_tokens: int
    completion_tokens: int | None = None
    total_tokens: int | None = None


class ChatCompletionChoice(_Open):
    """One answer to a chat."""

    index: int | None = None
    message: GatewayMessage
    finish_reason: str | None = None


class ChatCompletion(_Open):
    """The answers to a chat, as the model server gave them."""

    id: str | None = None
    object: str | None = None
    created: int | None = None
    model: str | None = None
    choices: list[ChatCompletionChoice]
    usage: CompletionUsage | None = None


class ChatCompletionDelta(_Open):
    """What a piece of a streamed answer adds."""

    role: str | None = None
    content: str | None = None


class ChatCompletionChunkChoice(_Open):
    """A piece of one answer."""

    index: int | None = None
    delta: ChatCompletionDelta
    finish_reason: str | None = None


class ChatCompletionChunk(_Open):
    """What one event of a streamed answer to a chat holds; the last event is `[DONE]`."""

    id: str | None = None
    object: str | None = None
    choices: list[ChatCompletionChunkChoice]
    usage: CompletionUsage | None = None


class ModelResponseRequest(_Open):
    """What to answer, as the Responses API of OpenAI takes it."""

    model: str
    input: str | list[dict[str, Any]]
    instructions: str | None = None
    stream: bool | None = None


class ModelResponse(_Open):
    """An answer, as the Responses API gives it."""

    id: str | None = None
    object: str | None = None
    status: str | None = None
    output: list[dict[str, Any]]


class ModelResponseEvent(_Open):
    """What one event of a streamed answer of the Responses API holds."""

    type: str


class EmbeddingsRequest(_Open):
    """Texts, or lists of tokens, to make vectors of."""

    model: str
    input: str | list[Any]


class Embedding(_Open):
    """A vector: as numbers, or in Base64 where that was asked for."""

    index: int | None = None
    embedding: list[float] | str


class Embeddings(_Open):
    """The vectors of texts, in their order."""

    object: str | None = None
    data: list[Embedding]
    model: str | None = None


class GatewayModel(_Open):
    """A model that may be asked for, by its name."""

    id: str
    object: str | None = None


class GatewayModelList(_Open):
    """The models that may be asked for."""

    object: str | None = None
    data: list[GatewayModel]


class GatewayErrorDetail(_Open):
    """What went wrong: one sentence, and what clients tell errors apart by."""

    message: str
    type: str | None = None
    param: str | None = None
    code: str | int | None = None


class GatewayError(_Open):
    """An error as clients of the OpenAI API read it."""

    error: GatewayErrorDetail


class McpRequest(_Open):
    """A request of MCP (JSON-RPC 2.0), such as `initialize`, `tools/list` or `tools/call`. One without an id is a
    notification."""

    jsonrpc: Literal["2.0"]
    id: Id | None = None
    method: str
    params: dict[str, Any] | None = None


class McpErrorDetail(_Open):
    """What was wrong with a request, by its number in JSON-RPC."""

    code: int
    message: str


class McpAnswer(_Open):
    """The answer to the request of this id: what came of it, or an error."""

    jsonrpc: Literal["2.0"]
    id: Id | None = None
    result: dict[str, Any] | None = None
    error: McpErrorDetail | None = None


class ProtectedResource(BaseModel):
    """What tokens are for, and which server gives them (RFC 9728)."""

    resource: str
    authorization_servers: list[str]
    scopes_supported: list[str]
    bearer_methods_supported: list[str]
    resource_name: str


class AuthorizationServer(BaseModel):
    """Where and how an app gets tokens (RFC 8414)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str
    revocation_endpoint: str
    scopes_supported: list[str]
    response_types_supported: list[str]
    response_modes_supported: list[str]
    grant_types_supported: list[str]
    token_endpoint_auth_methods_supported: list[str]
    revocation_endpoint_auth_methods_supported: list[str]
    code_challenge_methods_supported: list[str]
    client_id_metadata_document_supported: bool
    authorization_response_iss_parameter_supported: bool


class AppRegistration(_Open):
    """What an app says of itself (RFC 7591): its name, and where it may be led back to."""

    redirect_uris: list[str]
    client_name: str | None = None
    token_endpoint_auth_method: Literal["none", "client_secret_post", "client_secret_basic"] | None = None
    grant_types: list[str] | None = None
    response_types: list[str] | None = None
    scope: str | None = None


class RegisteredApp(_Open):
    """An app as it is registered; `client_secret` is shown this once, to an app that wants one."""

    client_id: str
    client_secret: str | None = None
    client_name: str | None = None
    redirect_uris: list[str]
    token_endpoint_auth_method: str | None = None


class TokenRequest(_Open):
    """A code and what proves that it was asked for (PKCE), or a refresh token. An app with a secret sends it here, or
    by HTTP Basic."""

    grant_type: Literal["authorization_code", "refresh_token"]
    client_id: str | None = None
    client_secret: str | None = None
    code: str | None = None
    code_verifier: str | None = None
    redirect_uri: str | None = None
    refresh_token: str | None = None
    scope: str | None = None
    resource: str | None = None


class Tokens(BaseModel):
    """A token for `/mcp`, how many seconds it is valid, and what gets the next one, once."""

    access_token: str
    token_type: Literal["Bearer"]
    expires_in: int
    scope: str
    refresh_token: str


class RevocationRequest(_Open):
    """A token of either kind, whose sign-in is to end (RFC 7009)."""

    token: str
    client_id: str | None = None
    client_secret: str | None = None


class OAuthError(BaseModel):
    """Why an app gets no token, by the code of OAuth (RFC 6749), and one sentence."""

    error: str
    error_description: str | None = None
