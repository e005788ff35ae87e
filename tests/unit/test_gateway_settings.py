"""Where the gateway of each tenant leads, by the settings."""

from pathlib import Path

import pytest

from composer.errors import Misconfigured
from composer.settings import Settings, Upstream, load_settings

FILE = """
model = "gpt-4.1"
gateway_base_url = "https://common.example/v1"

[gateway]
memory_roles = { "gemma" = "user" }

[[agents]]
slug = "nexus"
model = "no-system"
system_role = false

[tenants.acme.gateway]
base_url = "http://acme.example:11434/v1"
models = ["qwen"]
memory_role = "developer"

[tenants.quiet.gateway]
enabled = false

[tenants.narrow.gateway]
models = ["gpt-4.1-mini"]
"""


def loaded(folder: Path, text: str = "", **variables: str) -> Settings:
    (folder / "nexus.toml").write_text(text)
    return load_settings({"NEXUS_HOME": str(folder), **variables}, folder)


def upstream(settings: Settings, tenant: str) -> Upstream:
    found = settings.upstream_of(tenant)
    assert found is not None
    return found


def test_without_a_model_server_there_is_no_gateway(tmp_path: Path) -> None:
    assert loaded(tmp_path).upstream_of("default") is None


def test_the_chat_models_server_serves_the_models_that_are_named(tmp_path: Path) -> None:
    chat = {"NEXUS_OPENAI_BASE_URL": "http://a.example/v1", "NEXUS_OPENAI_API_KEY": "k1", "NEXUS_MODEL": "gpt-4.1"}
    found = upstream(loaded(tmp_path, **chat, NEXUS_SUMMARY_MODEL="small", NEXUS_EMBEDDER="embed"), "default")
    assert (str.__str__(found.url), found.key) == ("http://a.example/v1", "k1")
    assert found.models == frozenset({"gpt-4.1", "small", "embed"})
    assert (found.allows("gpt-4.1"), found.allows("gpt-5")) == (True, False)
    every = upstream(loaded(tmp_path, '[gateway]\nmodels = ["*"]', **chat), "default")
    assert every.allows("gpt-5")


def test_each_tenant_has_what_it_sets_and_else_what_is_common(tmp_path: Path) -> None:
    keys = {"NEXUS_GATEWAY_API_KEY": "common-key", "NEXUS_GATEWAY_ACME_API_KEY": "acme-key"}
    settings = loaded(tmp_path, FILE, **keys)
    common, acme, narrow = (upstream(settings, name) for name in ("default", "acme", "narrow"))
    assert settings.upstream_of("quiet") is None
    assert (str.__str__(common.url), common.key) == ("https://common.example/v1", "common-key")
    assert common.models is None
    assert (acme.key, acme.role_for("qwen"), narrow.key) == ("acme-key", "developer", "common-key")
    assert (acme.models, narrow.models) == (frozenset({"qwen"}), frozenset({"gpt-4.1-mini"}))
    roles = {name: common.role_for(name) for name in ("gpt-4.1", "gemma", "no-system")}
    assert roles == {"gpt-4.1": None, "gemma": "user", "no-system": "user"}
    assert {"common-key", "acme-key"} <= settings.secrets
    assert "acme-key" not in repr(settings)


def test_an_own_server_never_gets_the_common_key(tmp_path: Path) -> None:
    assert upstream(loaded(tmp_path, FILE, NEXUS_GATEWAY_API_KEY="common-key"), "acme").key == ""


@pytest.mark.parametrize(
    ("text", "variables", "said"),
    [
        ("", {"NEXUS_GATEWAY_KEYS": "ci=" + "k" * 32}, "NEXUS_GATEWAY_TENANT"),
        ("", {"NEXUS_GATEWAY_KEYS": "ci=" + "k" * 32, "NEXUS_GATEWAY_TENANT": "acme"}, "the gateway is off"),
        ('[tenants.acme.gateway]\napi_key = "x"', {}, "no base_url"),
        ("[tenants.acme.gateway]\nmodel = 'x'", {}, "did you mean models"),
        ('[gateway]\nmemory_role = "tool"', {}, "gateway.memory_role"),
        ("", {"NEXUS_GATEWAY_BASE_URL": "http://user:pass@a.example/v1"}, "NEXUS_GATEWAY_BASE_URL is wrong"),
        ("", {"NEXUS_GATEWAY_BASE_URL": "file:///etc/passwd"}, "NEXUS_GATEWAY_BASE_URL is wrong"),
    ],
)
def test_what_can_not_be_meant_is_refused(tmp_path: Path, text: str, variables: dict[str, str], said: str) -> None:
    with pytest.raises(Misconfigured, match=said):
        loaded(tmp_path, text, **variables)
