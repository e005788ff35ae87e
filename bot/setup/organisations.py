"""The organisations of `nexus.toml`: which servers and workspaces share one memory, under `[tenants.NAME]`."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from composer.errors import BadInput, Misconfigured
from composer.model import DISCORD, SLACK
from composer.settings.values import PLATFORMS, is_slug

Organisations = Mapping[str, tuple[str, ...]]  # their workspaces, such as slack:T0123ABCD, by their names
WORKSPACE: Final = re.compile(rf"\b(?:{SLACK}|{DISCORD}):\w+")
_BARE_ID: Final = {SLACK: re.compile(r"\A[TE][A-Z0-9]{5,20}\Z"), DISCORD: re.compile(r"\A[0-9]{15,21}\Z")}
_SECTION: Final = re.compile(r"\A\s*\[")


def workspaces_of(words: Sequence[str]) -> tuple[str, ...]:
    """Workspaces as nexus.toml lists them: "slack:T0123ABCD", or an id alone, which says its platform. Raises
    BadInput."""
    found = []
    for word in filter(None, (word.strip(" ,;") for word in words)):
        platform, separator, name = word.partition(":")
        if not separator:
            platform = next((each for each, form in _BARE_ID.items() if form.match(word)), "")
            name = word
        if platform not in PLATFORMS or not name:
            raise BadInput(f"'{word}' is no workspace: write it like slack:T0123ABCD or discord:112233445566778899.")
        found.append(f"{platform}:{name}")
    return tuple(dict.fromkeys(found))


def organised(before: Organisations, name: str | None, workspaces: Sequence[str]) -> Organisations:
    """The organisations with these workspaces in the one of that name, besides its others, and in no other one; without
    a name in none, so that each is an organisation of its own. Raises BadInput."""
    if name is not None and not is_slug(name):
        raise BadInput(f"'{name}' is no name of an organisation: 1 to 32 characters of a-z, 0-9, - and _.")
    names = {each.partition(":")[2] for each in workspaces}  # they may be listed without their platform, too
    moved = {*workspaces, *names}
    after = {slug: tuple(each for each in listed if each not in moved) for slug, listed in before.items()}
    return after if name is None else {**after, name: (*after.get(name, ()), *workspaces)}


def listed_in(table: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The organisations that a nexus.toml lists workspaces of."""
    tenants = table.get("tenants")
    if not isinstance(tenants, dict):
        return {}
    return {
        name: tuple(map(str, tenant["workspaces"]))
        for name, tenant in tenants.items()
        if isinstance(tenant, dict) and isinstance(tenant.get("workspaces"), list)
    }


def set_organisations(text: str, wanted: Organisations, where: Path) -> str:
    """A nexus.toml with the workspaces of these organisations; its other lines are kept. Raises Misconfigured when it
    is written in a way that this can't be done in."""
    table = tomllib.loads(text)
    changed = {name: each for name, each in wanted.items() if listed_in(table).get(name) != each}
    new = text
    for name, workspaces in changed.items():
        new = _with_workspaces(new, name, workspaces)
    tenants = {name: {**table.get("tenants", {}).get(name, {}), "workspaces": list(changed[name])} for name in changed}
    try:
        if not changed or tomllib.loads(new) == table | {"tenants": table.get("tenants", {}) | tenants}:
            return new
    except tomllib.TOMLDecodeError:
        pass
    sections = " and ".join(f"[tenants.{name}]" for name in changed)
    raise Misconfigured(f"{where} is written in a way that setup can't change: set workspaces in {sections} yourself.")


def _with_workspaces(text: str, name: str, workspaces: Sequence[str]) -> str:
    lines, line = text.splitlines(keepends=True), f"workspaces = {json.dumps(list(workspaces))}\n"
    headers = (f"[tenants.{name}]", f'[tenants."{name}"]')
    begin = next((at for at, each in enumerate(lines) if each.split("#")[0].strip() in headers), None)
    if begin is None:
        end = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{end}\n[tenants.{name}]\n{line}"
    end_of_section = next((at for at in range(begin + 1, len(lines)) if _SECTION.match(lines[at])), len(lines))
    first = next((at for at in range(begin + 1, end_of_section) if _is_key(lines[at])), None)
    if first is None:
        lines.insert(begin + 1, line)
        return "".join(lines)
    last = next((at for at in range(first, end_of_section) if "]" in lines[at]), first)
    return "".join([*lines[:first], line, *lines[last + 1 :]])


def _is_key(line: str) -> bool:
    return line.partition("=")[0].strip() == "workspaces"
