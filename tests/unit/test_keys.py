"""The texts of credentials, and what a permission gives."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from composer.errors import AdminNeeded, BadInput, Refused
from composer.people.credentials import keys
from composer.people.credentials.issuing import MAX_PERMISSIONS, KeyRequest, wanted_permissions
from composer.people.credentials.keys import CredentialKind, Parsed
from composer.people.credentials.principal import (
    EVERY_PERMISSION,
    NEVER_OF_TOOLS,
    TOOL_PERMISSIONS,
    KeyPermission,
    Principal,
    Source,
    effective,
    parse_permission,
)
from composer.repositories.api_keys import Holder
from composer.visibility import Grants

SECRET = bytes(range(32))
USER, PROJECT = uuid.UUID(int=1), uuid.UUID(int=2)
MEMBER, ADMIN, OPTED_OUT = Holder(USER, False, False), Holder(USER, True, False), Holder(USER, False, True)
project_permission = Grants.of_project
KEY = f"nx_acme_{SECRET.hex()}"


@given(st.sampled_from(CredentialKind), st.text(max_size=60).filter(lambda text: text.isprintable() and text != ""))
def test_the_tenant_stands_in_the_text(kind: CredentialKind, tenant: str) -> None:
    text = keys.make(kind, tenant, SECRET)
    assert keys.parse(text, kind) == Parsed(kind, tenant)
    assert text.isascii()
    assert not set(text) & set(' ,;"=')


def test_a_key_is_written_as_people_see_it() -> None:
    assert keys.make(CredentialKind.KEY, "acme", SECRET) == KEY
    assert keys.make(CredentialKind.KEY, "slack:T0123", SECRET) == f"nx_slack~3aT0123_{SECRET.hex()}"
    assert keys.shown(KEY) == "nx_acme_00010203"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nx",
        "nx_acme_",
        KEY.upper(),
        KEY.replace("0a", "0A"),
        f" {KEY}",
        f"{KEY} ",
        f"{KEY}\n",
        f"{KEY}\x00",
        KEY[:-1],
        f"{KEY}0",
        KEY.replace("1", "\u0661"),
        KEY.replace("1", "\uff11"),
        KEY.replace("nx_", "nxs_"),
        KEY.replace("nx_", "Nx_"),
        f"nx__{SECRET.hex()}",
        f"nx_~3_{SECRET.hex()}",
        f"nx_~61cme_{SECRET.hex()}",  # "a" needs no escape, so this is not how it is written
        f"nx_~3A_{SECRET.hex()}",
        f"nx_~ff_{SECRET.hex()}",  # not UTF-8
        f"nx_{'a' * 2_000}_{SECRET.hex()}",
        "nx_" * 500,
        "\ud800",
    ],
)
def test_what_is_not_written_as_a_key_is_none(text: str) -> None:
    assert keys.parse(text, CredentialKind.KEY) is None
    assert keys.digest(text) != keys.digest(KEY)


@given(st.text(st.characters(codec=None)))
def test_any_text_can_be_read_and_digested(text: str) -> None:
    assert len(keys.digest(text)) == 32
    for kind in CredentialKind:
        keys.parse(text, kind)


def test_no_credential_passes_for_one_of_another_kind() -> None:
    for kind in CredentialKind:
        text = keys.make(kind, "acme", SECRET)
        assert [other for other in CredentialKind if keys.parse(text, other)] == [kind]


def test_a_text_that_is_too_long_has_the_digest_of_no_credential() -> None:
    longest = keys.make(CredentialKind.KEY, "a" * 900, SECRET)
    assert keys.digest(longest + "x" * 2_000) != keys.digest(longest)
    with pytest.raises(BadInput, match="too long for a key"):
        keys.make(CredentialKind.KEY, "\u00fc" * 200, SECRET)


def test_a_permission_is_one_of_those_there_are() -> None:
    for each in (*EVERY_PERMISSION, project_permission(PROJECT, "read"), project_permission(PROJECT, "write")):
        assert parse_permission(each) == each
    for wrong in (
        "",
        "*",
        "entries",
        "ENTRIES:READ",
        "entries:read ",
        "project-apollo:read",
        f"project-{PROJECT}:admin",
    ):
        with pytest.raises(BadInput, match="There is no such permission"):
            parse_permission(wrong)


def principal(*permissions: str, vendor: str | None = None) -> Principal:
    return Principal(uuid.UUID(int=9), USER, vendor, frozenset(permissions), Source.KEY, uuid.UUID(int=8), "acme")


def test_a_permission_that_a_key_lacks_means_less_and_none_includes_another() -> None:
    for each in EVERY_PERMISSION:
        assert [other for other in EVERY_PERMISSION if principal(each).may(other)] == [each]
    assert not principal().may(KeyPermission.ENTRIES_READ)
    with pytest.raises(Refused, match="permission entries:read"):
        principal().require(KeyPermission.ENTRIES_READ)
    with pytest.raises(AdminNeeded):
        principal(*(EVERY_PERMISSION - {KeyPermission.ADMIN})).require(KeyPermission.ADMIN)


def test_what_a_credential_gives_is_judged_by_what_its_person_is_now() -> None:
    assert effective(EVERY_PERMISSION, None, ADMIN) == EVERY_PERMISSION
    assert effective(EVERY_PERMISSION, None, MEMBER) == EVERY_PERMISSION - {KeyPermission.ADMIN}
    assert effective(EVERY_PERMISSION, "claude", ADMIN) == EVERY_PERMISSION - NEVER_OF_TOOLS
    assert effective([*TOOL_PERMISSIONS, "everything", "project-x:read"], "claude", MEMBER) == TOOL_PERMISSIONS
    own = [*TOOL_PERMISSIONS, project_permission(PROJECT, "write")]
    reading = {*(TOOL_PERMISSIONS - {KeyPermission.ENTRIES_WRITE}), project_permission(PROJECT, "read")}
    assert effective(own, "claude", OPTED_OUT) == reading
    assert effective([KeyPermission.ENTRIES_WRITE], "claude", OPTED_OUT) == set(), "what only wrote reads nothing"
    assert effective(own, None, OPTED_OUT) == {*own}, "what people write themselves, they mean to be stored"


def test_the_permissions_of_a_new_key() -> None:
    assert set(wanted_permissions(KeyRequest("claude"), admin=True)) == TOOL_PERMISSIONS
    assert set(wanted_permissions(KeyRequest(None), admin=True)) == EVERY_PERMISSION
    assert set(wanted_permissions(KeyRequest(None), admin=False)) == EVERY_PERMISSION - {KeyPermission.ADMIN}
    assert wanted_permissions(KeyRequest("claude", permissions=["teams:read"] * 2), admin=False) == ("teams:read",)
    for never in NEVER_OF_TOOLS:
        with pytest.raises(Refused, match="A tool never gets"):
            wanted_permissions(KeyRequest("claude", permissions=["entries:read", never]), admin=True)
    with pytest.raises(Refused, match="Only an admin"):
        wanted_permissions(KeyRequest(None, permissions=["admin"]), admin=False)
    many = [project_permission(uuid.UUID(int=number), "read") for number in range(MAX_PERMISSIONS + 1)]
    for wrong in ([], many):
        with pytest.raises(BadInput, match="has 1 to 100 permissions"):
            wanted_permissions(KeyRequest("claude", permissions=wrong), admin=False)
