"""The version of what an answer shows (ETag), and a request that holds for one version alone (If-Match)."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Final

from fastapi import Depends, Header

from bot.web.problems import RequestRefused, header
from composer.errors import Outdated

_TAG: Final = re.compile(r'"(\d{1,9})"', re.ASCII)
# Of answers that show one version, for the document of the API.
VERSIONED: Final[dict[str, Any]] = {"ETag": header("The version, for If-Match.")}


def etag(version: int) -> str:
    """The ETag of a version."""
    return f'"{version}"'


async def _version(
    if_match: Annotated[
        str | None,
        Header(
            description="The ETag of the version to change: another one is left as it is (412).",
            json_schema_extra={"pattern": f"^({_TAG.pattern}|[*])$"},
        ),
    ] = None,
) -> int | None:
    """The version that a request is for; None for any."""
    if if_match is None or if_match.strip() == "*":
        return None
    found = _TAG.fullmatch(if_match.strip())
    if found is None:
        raise RequestRefused(400, 'If-Match holds one ETag, such as "3", or *.')
    return int(found[1])


IfMatch = Annotated[int | None, Depends(_version)]


@contextmanager
def only_version(version: int | None) -> Iterator[None]:
    """Around a change that holds for one version alone: answers 412 where there is another one by now."""
    try:
        yield
    except Outdated as error:
        if version is None:
            raise
        raise RequestRefused(412) from error
