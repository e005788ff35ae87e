"""What clients are told before they sign in: where to, for what, and how (RFC 9728, RFC 8414).

All addresses are made from the public URL, which is a setting: nothing here comes from the request.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from composer.people.credentials.connected_apps import APP_PERMISSIONS

RESOURCE_PATH: Final = "/mcp"
PROTECTED_RESOURCE: Final = "/.well-known/oauth-protected-resource"
AUTHORIZATION_SERVER: Final = "/.well-known/oauth-authorization-server"
OPENID_CONFIGURATION: Final = "/.well-known/openid-configuration"
AUTHORIZE: Final = "/oauth/authorize"
CONSENT: Final = "/oauth/consent"
TOKEN: Final = "/oauth/token"
REGISTER: Final = "/oauth/register"
REVOKE: Final = "/oauth/revoke"
OAUTH_SCOPES: Final = tuple(sorted(APP_PERMISSIONS))
AUTH_METHODS: Final = ("none", "client_secret_post", "client_secret_basic")


def resource_of(public_url: str) -> str:
    """The address that tokens are for."""
    return f"{public_url}{RESOURCE_PATH}"


def protected_resource(public_url: str) -> Mapping[str, Any]:
    """Which server gives tokens for `/mcp`, and what for."""
    return {
        "resource": resource_of(public_url),
        "authorization_servers": [public_url],
        "scopes_supported": OAUTH_SCOPES,
        "bearer_methods_supported": ["header"],
        "resource_name": "Nexus",
    }


def authorization_server(public_url: str) -> Mapping[str, Any]:
    """Where and how a client gets tokens."""
    return {
        "issuer": public_url,
        "authorization_endpoint": f"{public_url}{AUTHORIZE}",
        "token_endpoint": f"{public_url}{TOKEN}",
        "registration_endpoint": f"{public_url}{REGISTER}",
        "revocation_endpoint": f"{public_url}{REVOKE}",
        "scopes_supported": OAUTH_SCOPES,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": AUTH_METHODS,
        "revocation_endpoint_auth_methods_supported": AUTH_METHODS,
        "code_challenge_methods_supported": ["S256"],
        "client_id_metadata_document_supported": True,
        "authorization_response_iss_parameter_supported": True,
    }


def challenge(public_url: str, error: str | None = None, scopes: Collection[str] = OAUTH_SCOPES) -> str:
    """The header WWW-Authenticate (RFC 6750) of an answer of `/mcp` that refuses: it says where to sign in. `error` is
    invalid_token or insufficient_scope; None: no token came."""
    parts = [] if error is None else [f'error="{error}"']
    parts.append(f'scope="{" ".join(sorted(scopes))}"')
    parts.append(f'resource_metadata="{public_url}{PROTECTED_RESOURCE}{RESOURCE_PATH}"')
    return f"Bearer {', '.join(parts)}"
