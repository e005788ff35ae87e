"""Downloads a file from a platform without following redirects, and reads no more than a limit."""

from collections.abc import Mapping

import aiohttp

OK = 200


async def download(
    session: aiohttp.ClientSession, url: str, max_bytes: int, headers: Mapping[str, str] | None = None
) -> tuple[int, bytes]:
    """The HTTP status, and the content if that is 200.

    Reads at most `max_bytes`, plus one byte if the file is larger: the caller sees by the length that it is too large,
    whatever size the platform announced. Raises what aiohttp raises.
    """
    async with session.get(url, headers=headers, allow_redirects=False) as response:
        content = b""
        while (
            response.status == OK
            and len(content) <= max_bytes
            and (more := await response.content.read(max_bytes + 1 - len(content)))
        ):
            content += more
        return response.status, content
