"""The table of rights: nothing outside it is possible, no act opens something unsaid, and isolation holds."""

import uuid
from dataclasses import replace
from typing import Final

import pytest

from bot.commands.command import CONFIRM, PlaceKind
from bot.commands.table import COMMANDS
from composer.errors import BadInput, NotFound, Refused
from composer.model import Conversation, ConversationKind, Role
from composer.rights import table as rights
from composer.rights.relations import ActorFacts, Permission, Relation, Thing, has_permission
from composer.rights.table import TABLE, Act
from composer.visibility import AccessContext, ProjectFacts

TENANT, ROOM, ALICE = (uuid.uuid5(uuid.NAMESPACE_DNS, name) for name in ("tenant", "room", "alice"))
GENERAL = Conversation(ROOM, TENANT, ConversationKind.ROOM, "general", f"room:{ROOM}")
DM = replace(GENERAL, kind=ConversationKind.DM, namespace="dm:here", user_id=ALICE, agent_id=ROOM)
SESSION = replace(DM, kind=ConversationKind.SESSION, namespace="session:here")
WRITING = (Act.WRITE_EVERYWHERE, Act.WRITE_PROJECT, Act.WRITE_GLOBAL)
OPENING = {
    Act.CREATE_KEY,
    Act.LEAVE_PROJECT,
    Act.ASSIGN_ROOM,
    Act.ASSIGN_SESSION,
    Act.UNASSIGN_ROOM,
    Act.POOL_ROOM,
    Act.LINK,
    *WRITING,
}


def project(slug: str, role: Role | None, *, isolated: bool = False) -> ProjectFacts:
    return ProjectFacts(uuid.uuid5(uuid.NAMESPACE_DNS, slug), slug, isolated, role)


def facts(
    *, here: ProjectFacts | None = None, named: ProjectFacts | None = None, room_admin: bool = True
) -> ActorFacts:
    access = AccessContext(GENERAL, ALICE, project=here)
    projects, name = ((), "") if named is None else ((named,), named.slug)
    return ActorFacts(access, room_admin=room_admin, named_projects=projects, project_name=name)


def test_every_act_has_a_row_and_every_need_a_sentence() -> None:
    assert set(TABLE) == set(Act)
    for act, rule in TABLE.items():
        for requirement in rule.requirements:
            assert requirement.words
            assert requirement.refusal or requirement in (rights.PARTICIPANT, rights.KNOWN), act


def test_an_act_outside_the_table_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rights.judge([Act.READ], facts())
    monkeypatch.setattr(rights, "TABLE", {})
    with pytest.raises(Refused):
        rights.judge([Act.READ], facts())


def test_who_may_not_be_in_a_conversation_may_do_nothing_there() -> None:
    outside = facts(here=project("apollo", Role.ADMIN), named=project("apollo", Role.ADMIN))
    access = replace(outside.access, conversation=replace(GENERAL, private=True), asker_admin=True)
    for act in Act:
        with pytest.raises(NotFound):
            rights.judge([act], replace(outside, access=access))


@pytest.mark.parametrize("thing", Thing)
def test_a_right_that_is_not_defined_over_a_thing_nobody_has(thing: Thing) -> None:
    defined = {
        Thing.CONVERSATION: {Relation.PARTICIPANT, Relation.OWNER},
        Thing.ROOM: {Relation.ADMIN},
        Thing.PRIVATE_ROOM: {Relation.ADMIN},
        Thing.PERSON: {Relation.SELF},
        Thing.ACCOUNT: {Relation.ANOTHER_PLACE},
        Thing.ITEM: {Relation.WRITER, Relation.AUTHOR, Relation.ADMIN},
        Thing.TENANT: {Relation.ADMIN, Relation.MEMBER},
    }.get(thing, {Relation.MEMBER, Relation.WRITER, Relation.ADMIN})
    ruler = facts(here=project("ares", Role.ADMIN, isolated=True), named=project("apollo", Role.ADMIN))
    ruler = replace(ruler, of_self=True, access=replace(ruler.access, asker_admin=True))
    for relation in set(Relation) - defined:
        assert not has_permission(ruler, Permission(relation, thing, ""))


@pytest.mark.parametrize("place", [DM, SESSION])
def test_a_dm_or_session_belongs_to_its_person_alone(place: Conversation) -> None:
    owned, inside = Permission(Relation.OWNER, Thing.CONVERSATION, ""), AccessContext(place, ALICE)
    assert has_permission(replace(facts(), access=inside), owned)
    assert not has_permission(replace(facts(), access=replace(inside, asker=ROOM)), owned)


_LEAVING: Final = {
    GENERAL: (Act.ASSIGN_ROOM, Act.UNASSIGN_ROOM),
    DM: (Act.ASSIGN_DM, Act.UNASSIGN_DM),
    SESSION: (Act.ASSIGN_SESSION, Act.UNASSIGN_SESSION),
}


@pytest.mark.parametrize(("place", "act"), [(place, act) for place, acts in _LEAVING.items() for act in acts])
@pytest.mark.parametrize("role", [None, *Role])
def test_only_its_admins_take_a_conversation_out_of_an_isolated_project(
    place: Conversation, act: Act, role: Role | None
) -> None:
    named = project("apollo", Role.ADMIN) if act.name.startswith("ASSIGN") else None
    leaving = facts(here=project("ares", role, isolated=True), named=named)
    leaving = replace(leaving, access=replace(leaving.access, conversation=place))
    if role is Role.ADMIN:
        rights.judge([act], leaving)
    else:
        with pytest.raises(Refused, match="isolated"):
            rights.judge([act], leaving)


def test_a_project_that_somebody_is_no_member_of_looks_like_none() -> None:
    for named in (project("apollo", None), None):
        with pytest.raises(NotFound, match="There is no project 'apollo' here"):
            rights.judge([Act.ASSIGN_ROOM], replace(facts(named=named), project_name="apollo"))


def test_a_name_of_several_of_ones_projects_is_refused_with_what_tells_them_apart() -> None:
    one, two = project("apollo", Role.ADMIN), replace(project("other", Role.READ), slug="apollo")
    named = replace(facts(), named_projects=(one, two), project_name="apollo")
    for act in (Act.ASSIGN_ROOM, Act.ADD_MEMBER, Act.SEE_PROJECT):
        with pytest.raises(BadInput, match=f"apollo:{one.id.hex[:8]} .your role: admin. or apollo:{two.id.hex[:8]} "):
            rights.judge([act], named)


def test_what_opens_something_says_so_first() -> None:
    assert {act for act, rule in TABLE.items() if rule.opens is not None} == OPENING
    entered = facts(here=project("gemini", None), named=project("apollo", Role.WRITE))
    said = rights.opening([Act.ASSIGN_ROOM], entered)
    assert "Everyone in #general can then recall what apollo remembers, and everyone in apollo what is said" in said
    assert "nobody in gemini recalls what is said in #general" in said
    closed = facts(named=project("apollo", Role.WRITE))
    closed = replace(closed, access=replace(closed.access, conversation=replace(GENERAL, private=True)))
    assert "in this private room stays here" in rights.opening([Act.ASSIGN_ROOM], closed)
    pooled = rights.opening([Act.ASSIGN_ROOM, Act.POOL_ROOM], closed)
    assert "Everyone in apollo can then recall all that is said in this private room" in pooled
    assert "stays here" not in pooled, "that would deny what the next sentence says"
    there = facts(here=project("gemini", None), named=project("gemini", None))
    assert rights.opening([Act.ASSIGN_ROOM], there) == "", "it is there already"
    within = facts(here=project("gemini", Role.WRITE))
    everywhere, for_project, for_all = (rights.opening([act], within) for act in WRITING)
    assert "you wherever you ask, and others in every room where you take part or are mentioned" in everywhere
    assert "everyone in project gemini, not only in #general" in for_project
    assert "everyone in the workspace, in every conversation" in for_all
    for act in WRITING:
        assert rights.opening([act], replace(within, needs_approval=True)) == "", "it waits for approval"
    for act in (Act.WRITE_EVERYWHERE, Act.WRITE_GLOBAL):
        assert rights.opening([act], facts(here=project("ares", Role.WRITE, isolated=True))) == "", "it is refused"
    for command in COMMANDS.values():
        own = {command.act_in(place) for place in PlaceKind if place in command.places}
        acts = own | {case.act for case in command.cases} | {flag.act for flag in command.options if flag.act}
        assert CONFIRM in command.options or not acts & OPENING, command.name
