"""Fetches a file that a platform keeps: follows no redirect, and reads no more than is wanted, whatever was said."""

from collections.abc import Mapping

import aiohttp

OK = 200


async def download(
    session: aiohttp.ClientSession, url: str, most: int, headers: Mapping[str, str] | None = None
) -> tuple[int, bytes]:
    """The status, and the content if that is 200: at most `most` bytes, or one more where the file is larger. Raises
    what aiohttp raises."""
    async with session.get(url, headers=headers, allow_redirects=False) as answer:
        content = b""
        while (
            answer.status == OK
            and len(content) <= most
            and (more := await answer.content.read(most + 1 - len(content)))
        ):
            content += more
        return answer.status, content
