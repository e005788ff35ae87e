"""Projects and who is in them, as the API takes and answers them."""

import uuid
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from bot.web.shapes.entries import RequestBody
from bot.web.shapes.values import Flag
from composer.repositories.projects import Project, ProjectMember

ProjectRoleName = Literal["read", "write", "admin"]
ProjectName = Annotated[str, Field(max_length=200, description="1 to 32 characters of a-z, 0-9, - and _.")]


class NewProject(RequestBody):
    """A project to be made; who makes it is its admin. Of an `isolated` one nothing is used outside, and nothing from
    outside is used in it."""

    name: ProjectName
    isolated: Flag = False


class ProjectUpdate(RequestBody):
    """Another name for a project. Whether it is isolated stays."""

    name: ProjectName


class ProjectRoleUpdate(RequestBody):
    """What a member may do in a project: read it, add to it too, or manage its members too."""

    role: ProjectRoleName


class ProjectResponse(BaseModel):
    """A project that the person is in, with their role. An `isolated` one is read by requests alone that name it."""

    id: uuid.UUID
    name: str
    isolated: bool
    role: ProjectRoleName


class ProjectList(BaseModel):
    """Projects, by name."""

    items: list[ProjectResponse]


class ProjectWithMembers(ProjectResponse):
    """The same, with how many people are in it."""

    members: int


class ProjectWithMembersList(BaseModel):
    """Projects, by name."""

    items: list[ProjectWithMembers]


class ProjectMemberResponse(BaseModel):
    """A person in a project. `names`: those of their accounts that were made members."""

    id: uuid.UUID
    names: list[str]
    role: ProjectRoleName


class ProjectMemberList(BaseModel):
    """The people of a project, by name."""

    items: list[ProjectMemberResponse]


def project_values(project: Project) -> dict[str, Any]:
    """A project as ProjectWithMembers shows it."""
    return {
        "id": project.id,
        "name": project.slug,
        "isolated": project.isolated,
        "role": str(project.role),
        "members": project.members,
    }


def member_values(members: Sequence[ProjectMember]) -> dict[str, Any]:
    """The people of a project as ProjectMemberList shows them."""
    return {"items": [{"id": each.id, "names": list(each.names), "role": str(each.role)} for each in members]}
