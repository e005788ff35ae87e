"""Projects that people are in together."""

from typing import Any

from tests.support.harness import AppHarness


async def join_project(
    harness: AppHarness, admin: str, project: str, member: str, role: str = "write", **at: Any
) -> None:
    """Make somebody a member of an admin's project. `at`: where the commands are given; by default in their DMs."""
    at = at or {"dm": "nexus"}
    await harness.command(admin, f"/nexus project member add {project} {member} {role}", **at)
    await harness.command(member, f"/nexus project accept {project}", **at)
