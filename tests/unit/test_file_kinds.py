"""Which attached files are read as text, alike on every platform."""

import pytest

from composer.text.file_kinds import FileKind, file_kind

OFFICE = "application/vnd.openxmlformats-officedocument."


@pytest.mark.parametrize(
    ("name", "media_type", "kind"),
    [
        ("dump", "application/sql", FileKind.TEXT),
        ("schema.sql", "", FileKind.TEXT),
        ("schema.SQL", "application/octet-stream", FileKind.TEXT),
        ("notes", "text/plain; charset=utf-8", FileKind.TEXT),
        ("data", "Application/JSON; charset=utf-8", FileKind.TEXT),
        ("run.sh", "application/x-sh", FileKind.TEXT),
        ("seats.csv", "application/vnd.ms-excel", FileKind.TEXT),
        ("seats.tsv", "", FileKind.TEXT),
        ("report.pdf", "", FileKind.PDF),
        ("report", "application/pdf", FileKind.PDF),
        ("REPORT.V2.PDF", "application/octet-stream", FileKind.PDF),
        ("plan.docx", "", FileKind.WORD),
        ("plan", f"{OFFICE}wordprocessingml.document", FileKind.WORD),
        ("macros.docm", "", FileKind.WORD),
        ("budget.xlsx", "application/zip", FileKind.SHEETS),
        ("deck", f"{OFFICE}presentationml.presentation", FileKind.SLIDES),
        ("page.htm", "", FileKind.HTML),
        ("An e-mail", "text/html", FileKind.HTML),
        ("mail.eml", "", FileKind.MAIL),
        ("mail", "message/rfc822", FileKind.MAIL),
        ("old.doc", "application/msword", FileKind.OTHER),
        ("old.rtf", "text/rtf", FileKind.OTHER),
        ("photo.png", "image/png", None),
        ("archive.zip", "application/zip", None),
        ("unknown", "", None),
        ("pdf", "", None),
    ],
)
def test_a_file_is_read_by_its_suffix_or_its_media_type(name: str, media_type: str, kind: FileKind | None) -> None:
    assert file_kind(name, media_type) is kind
