"""Which attached files are read as text, alike on every platform."""

import pytest

from bot.platform.text_files import decode_text, is_text_file


@pytest.mark.parametrize(
    ("name", "media_type", "is_text"),
    [
        ("dump", "application/sql", True),
        ("schema.sql", "", True),
        ("schema.SQL", "application/octet-stream", True),
        ("notes", "text/plain; charset=utf-8", True),
        ("data", "Application/JSON; charset=utf-8", True),
        ("run.sh", "application/x-sh", True),
        ("photo.png", "image/png", False),
        ("archive.zip", "application/zip", False),
        ("report.pdf", "application/pdf", False),
        ("unknown", "", False),
    ],
)
def test_a_file_is_text_by_its_media_type_or_its_suffix(name: str, media_type: str, is_text: bool) -> None:
    assert is_text_file(name, media_type) is is_text


def test_any_bytes_are_decoded_into_text() -> None:
    assert decode_text(b"\xef\xbb\xbfnotes") == "notes"
    assert decode_text(b"caf\xe9") == "caf\ufffd"
