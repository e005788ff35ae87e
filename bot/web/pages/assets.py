"""The files that pages load: styles, scripts and the font. Their address holds a digest of what is in them, so that a
browser keeps them for good and a new version is loaded at once."""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from fastapi import Request
from fastapi.responses import Response

from bot.web.problems import RequestRefused
from bot.web.router import Router

_HERE: Final = Path(__file__).parent / "static"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".woff2": "font/woff2",
    ".svg": "image/svg+xml",
    ".zip": "application/zip",
}
_HEADERS: Final = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
STATIC: Final = "/static"
FONT: Final = "inter-latin-5.3.0.part.woff2"
ICON: Final = "icon.svg"
STYLES: Final = ("basecoat-1.0.2.part.css", "nexus.css")  # of every page, in this order

router = Router()


@dataclass(frozen=True, slots=True)
class Asset:
    """A file: its address, its content, and the same compressed (None: that is not shorter)."""

    path: str
    type: str
    content: bytes
    compressed: bytes | None


@cache
def assets() -> dict[str, Asset]:
    """All files by their names."""
    return {path.name: _asset(path) for path in sorted(_HERE.iterdir()) if path.suffix in _TYPES}


def address_of(name: str) -> str:
    """The address of a file. Raises KeyError for one that is not there."""
    return assets()[name].path


def _asset(path: Path) -> Asset:
    content = path.read_bytes()
    if path.suffix == ".css":  # the font's address has a digest, too
        content = content.replace(b"FONT_ADDRESS", f"../{_digest((_HERE / FONT).read_bytes())}/{FONT}".encode())
    packed = gzip.compress(content, 9, mtime=0)
    address = f"{STATIC}/{_digest(content)}/{path.name}"
    return Asset(address, _TYPES[path.suffix], content, packed if len(packed) < len(content) else None)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


@router.get(f"{STATIC}/{{digest}}/{{name}}", include_in_schema=False, response_class=Response)
async def static_file(request: Request, digest: str, name: str) -> Response:
    """A file of the pages, to anybody: none holds anything of anybody."""
    asset = assets().get(name)
    if asset is None or asset.path != f"{STATIC}/{digest}/{name}":
        raise RequestRefused(404)
    if asset.compressed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        return Response(asset.compressed, headers=_HEADERS | {"Content-Encoding": "gzip"}, media_type=asset.type)
    return Response(asset.content, headers=_HEADERS, media_type=asset.type)
