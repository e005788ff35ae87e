"""The project that a request names, by its id or by what its members call it."""

import uuid
from typing import Final

from composer import visibility
from composer.errors import BadInput, NotFound
from composer.rights import project_names
from composer.text.cleaning import clean_line
from composer.visibility import EntryAccess, ProjectFacts

MAX_PROJECT_SHOWN_CHARS: Final = 100  # of a name that is not known, in the sentence that says so


def named_project(access: EntryAccess, named: str) -> ProjectFacts:
    """The project that an id or a name means, among those that the person is a member of and their credential may
    reach. Raises NotFound where there is none, BadInput where the name means several."""
    typed = named.strip().casefold()
    reached = [each for each in access.projects if visibility.readable_project(access, each.id) is not None]
    found = [p for p in reached if typed == str(p.id) or project_names.names(typed, p.slug, p.id)]
    if not found:
        raise NotFound(visibility.unknown_project_sentence(clean_line(named, MAX_PROJECT_SHOWN_CHARS)))
    if len(found) > 1:
        raise BadInput(f"You are in {len(found)} projects of that name: name the one you mean by its id.")
    return found[0]


def project_id(access: EntryAccess, named: str) -> uuid.UUID:
    """The id of a project that a person may have left since: an id as it is, else that of the `named_project`."""
    try:
        return uuid.UUID(named.strip())
    except ValueError:
        return named_project(access, named).id
