"""Reads one document: what runs in the process of its own that composer/stores/documents/process.py starts.

The document comes on standard input, its text goes to standard output as JSON. The process limits itself before it
reads, has no variables of the environment, and opens neither a socket nor a file: what a document refers to is not
fetched. Documents may be hostile; whatever happens here ends this process at the worst.
"""

import json
import os
import resource
import sys
import time
import zipfile
from collections.abc import Callable
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from email import message_from_bytes, policy
from email.message import EmailMessage, MIMEPart
from importlib.util import find_spec
from io import BytesIO
from posixpath import dirname, join, normpath
from typing import Any, Final
from xml.etree import ElementTree

import mammoth
import openpyxl
import pypdfium2
from pypdfium2 import raw as pdfium

from composer.ports.documents import DocumentText
from composer.text.decoding import decode_text
from composer.text.file_kinds import MAX_DOCUMENT_CHARS, FileKind, file_kind
from composer.text.html_text import text_of_html

MAX_MEMORY_BYTES: Final = 1_500_000_000  # of addresses, of which libraries take some hundred million
MAX_CPU_SECONDS: Final = 40
MAX_OUTPUT_BYTES: Final = 8_000_000
READING_SECONDS: Final = 20.0  # of CPU, after which what was read is enough
MAX_UNPACKED_BYTES: Final = 200_000_000  # of a zip, as Office writes them
MAX_PACKED_FILES: Final = 20_000
MARK_CHARS: Final = 400  # less than a passage has (composer/text/passages.py)
MAX_HEADER_CHARS: Final = 100  # of the first row of a sheet, which is repeated
MAX_COLUMNS: Final = 200
MAX_MAIL_DEPTH: Final = 3  # of a mail in a mail
MAX_MAIL_FILES: Final = 20

DAMAGED: Final = "could not be read: it is damaged, or not what its name says"
LOCKED: Final = "could not be read: it needs a password"
TOO_LARGE: Final = "could not be read: it is too large when it is unpacked"
HAS_NO_TEXT: Final = "could not be read: it has no text, as a scan has none"
OTHER_FORMAT: Final = "could not be read: files of this format are not; a PDF, .docx, .xlsx, .pptx or .eml of it is"
# The data that decode_text reads.
_GUESSES: Final = dirname(getattr(find_spec("chardet"), "origin", None) or "-") + "/"
_OLE: Final = bytes.fromhex("d0cf11e0a1b11ae1")  # begins an old Office file, and one with a password
_ENCRYPTED: Final = "EncryptedPackage".encode("utf-16-le")
_FORBIDDEN: Final = (
    "socket.",
    "subprocess.",
    "urllib.",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
)


class NotReadError(Exception):
    """A document can't be read; the argument is the note that says why."""


class Enough(Exception):
    """The text is as long as it may be, or its time is over."""


class _Lines:
    """The lines of a document as they are found, up to the limits. Within a long section its `mark` is repeated, so
    that each passage of the text says where it stands."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.mark = ""
        self._left = MAX_DOCUMENT_CHARS + 1
        self._since_mark = 0

    def begin(self, section: str) -> None:
        """Begin a page, sheet or slide. Raises Enough."""
        self.mark = ""
        self.add(f"# {section}")
        self.mark, self._since_mark = f"({section})", 0

    def add(self, *lines: str) -> None:
        """Add lines. Raises Enough."""
        for line in lines:
            if self.mark and self._since_mark > MARK_CHARS:
                self._append(self.mark)
                self._since_mark = 0
            self._since_mark += len(line)
            self._append(line)

    def _append(self, line: str) -> None:
        self.found.append(line[: self._left])
        self._left -= len(line) + 1
        if self._left <= 0 or time.process_time() > READING_SECONDS:
            raise Enough


def main() -> None:
    """Read the document on standard input, of the kind that the argument names, and write its text."""
    sys.addaudithook(_refuse_outside)
    _limit()
    found = read_document(FileKind(sys.argv[1]), sys.stdin.buffer.read())
    sys.stdout.write(json.dumps([found.text, found.note]))


def _limit() -> None:
    limits = {
        resource.RLIMIT_AS: MAX_MEMORY_BYTES,
        resource.RLIMIT_CPU: MAX_CPU_SECONDS,
        resource.RLIMIT_FSIZE: MAX_OUTPUT_BYTES,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: 32,
    }
    for which, most in limits.items():
        _, hard = resource.getrlimit(which)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        try:
            resource.setrlimit(which, (most, most))
        except (ValueError, OSError):
            continue  # macOS knows no limit of addresses


def _refuse_outside(event: str, given: tuple[Any, ...]) -> None:
    """Refuse connections, other programs, and files that are no part of Python or Nexus."""
    if event.startswith(_FORBIDDEN):
        raise PermissionError(f"A document may not cause {event}.")
    if event == "open" and isinstance(given[0], str | bytes):
        path = os.path.abspath(os.fsdecode(given[0]))
        writes = isinstance(given[2], int) and given[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writes or (not path.endswith((".py", ".pyc", ".so", ".dylib")) and not path.startswith(_GUESSES)):
            raise PermissionError("A document may not cause a file to be opened.")


def read_document(kind: FileKind, content: bytes) -> DocumentText:
    """The text of a document, and what was not read of it."""
    lines, note = _Lines(), ""
    try:
        _READERS[kind](content, lines)
    except Enough:
        note = f"only its first {MAX_DOCUMENT_CHARS:,} characters are read"
        if sum(map(len, lines.found)) + len(lines.found) <= MAX_DOCUMENT_CHARS:
            note = "only its beginning is read: all of it takes too long"
    except NotReadError as error:
        note = str(error)
    except MemoryError:
        note = TOO_LARGE
    except Exception:  # whatever a library meets in a damaged file
        note = DAMAGED
    text = "\n".join(lines.found).strip()[:MAX_DOCUMENT_CHARS]
    if text and note.startswith("could not be read"):
        note = "only its beginning is read: the rest is damaged, or too large"
    return DocumentText(text, note if text or note else HAS_NO_TEXT)


def _read_pdf(content: bytes, lines: _Lines) -> None:
    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        raise NotReadError(LOCKED if error.err_code == pdfium.FPDF_ERR_PASSWORD else DAMAGED) from error
    has_text = False
    for number in range(len(document)):
        try:
            page = document[number]
            text = page.get_textpage().get_text_range()
            page.close()
        except pypdfium2.PdfiumError:
            text = ""
        # Where a word is divided at the end of a line, PDFium writes U+FFFE.
        shown = text.replace("\ufffe\r\n", "").replace("\ufffe", "").replace("\r\n", "\n").strip()
        if shown:
            has_text = True
            lines.begin(f"Page {number + 1}")
            lines.add(*shown.split("\n"))
        elif time.process_time() > READING_SECONDS:
            raise Enough
    if not has_text:
        raise NotReadError(HAS_NO_TEXT)


def _unpacked(content: bytes) -> zipfile.ZipFile:
    """A file of Office as a zip. Raises NotReadError for one that is none, or would be too large."""
    if content.startswith(_OLE):
        raise NotReadError(LOCKED if _ENCRYPTED in content else OTHER_FORMAT)
    try:
        found = zipfile.ZipFile(BytesIO(content))
    except zipfile.BadZipFile as error:
        raise NotReadError(DAMAGED) from error
    entries = found.infolist()
    if len(entries) > MAX_PACKED_FILES or sum(entry.file_size for entry in entries) > MAX_UNPACKED_BYTES:
        raise NotReadError(TOO_LARGE)
    if any(entry.flag_bits & 1 for entry in entries):
        raise NotReadError(LOCKED)
    return found


def _read_word(content: bytes, lines: _Lines) -> None:
    _unpacked(content).close()
    without_images = mammoth.images.img_element(lambda image: {})
    html = mammoth.convert_to_html(
        BytesIO(content),
        convert_image=without_images,
        external_file_access=False,
        include_embedded_style_map=False,
    ).value
    lines.add(*text_of_html(html, "# ")[0].split("\n"))


def _read_sheets(content: bytes, lines: _Lines) -> None:
    _unpacked(content).close()
    book = openpyxl.load_workbook(BytesIO(content), read_only=True, data_only=True, keep_links=False)
    for sheet in book.worksheets:
        sheet.reset_dimensions()  # they may be wrong
        lines.begin(f"Sheet {sheet.title}")
        is_first = True
        for row in sheet.iter_rows(max_col=MAX_COLUMNS, values_only=True):
            cells = [_cell(value) for value in row]
            if shown := "\t".join(cells).rstrip():
                lines.add(shown)
                lines.mark = f"{lines.mark[:-1]}: {shown[:MAX_HEADER_CHARS]})" if is_first else lines.mark
                is_first = False
            elif time.process_time() > READING_SECONDS:
                raise Enough


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        at_midnight = value.time() == time_of_day()
        return f"{value:%Y-%m-%d}" if at_midnight else f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, date | time_of_day | timedelta):
        return str(value)
    return " ".join(str(value).split())


def _read_slides(content: bytes, lines: _Lines) -> None:
    """The paragraphs of the slides in their order, with those of their notes, charts and diagrams."""
    with _unpacked(content) as package:
        main = "ppt/presentation.xml"
        related = _related(package, main)
        order = [
            related.get(each.get(f"{_RELATIONSHIPS}id", "")) for each in _xml(package, main).iter(f"{_SLIDES}sldId")
        ]
        for number, slide in enumerate((path for kind, path in filter(None, order)), 1):
            lines.begin(f"Slide {number}")
            lines.add(*_paragraphs(package, slide))
            for kind, path in _related(package, slide).values():
                if kind in ("notesSlide", "chart", "diagramData"):
                    found = _paragraphs(package, path)
                    lines.add(*(["Notes:"] if kind == "notesSlide" and found else []), *found)


_SLIDE_NUMBER: Final = "\u2039#\u203a"
_SLIDES: Final = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_DRAWING: Final = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_CHART: Final = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_WORDS: Final = (f"{_DRAWING}t", f"{_DRAWING}br")
_RELATIONSHIPS: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


def _xml(package: zipfile.ZipFile, path: str) -> ElementTree.Element:
    return ElementTree.fromstring(package.read(path))


def _related(package: zipfile.ZipFile, path: str) -> dict[str, tuple[str, str]]:
    """The parts that a part refers to: kind and path, by id. What lies outside the file is left out."""
    name = join(dirname(path), "_rels", f"{path.rpartition('/')[2]}.rels")
    if name not in package.namelist():
        return {}
    return {
        each.get("Id", ""): (
            each.get("Type", "").rpartition("/")[2],
            normpath(join("/", dirname(path), each.get("Target", ""))).lstrip("/"),
        )
        for each in _xml(package, name)
        if each.get("TargetMode") != "External"
    }


def _paragraphs(package: zipfile.ZipFile, path: str) -> list[str]:
    """The paragraphs of a part, and the values of a chart."""
    found = []
    for each in _xml(package, path).iter():
        if each.tag == f"{_DRAWING}p":
            found.append("".join(part.text or " " for part in each.iter() if part.tag in _WORDS))
        elif each.tag == f"{_CHART}v":
            found.append(each.text or "")
    return [line for line in (" ".join(line.split()) for line in found) if line and line != _SLIDE_NUMBER]


def _read_html(content: bytes, lines: _Lines) -> None:
    lines.add(*text_of_html(decode_text(content), "# ")[0].split("\n"))


def _read_mail(content: bytes, lines: _Lines) -> None:
    mail = message_from_bytes(content, policy=policy.default)
    assert isinstance(mail, EmailMessage)
    if not any(header in mail for header in ("From", "To", "Subject", "Date")):
        raise NotReadError(DAMAGED)
    _add_mail(mail, lines, MAX_MAIL_DEPTH)


def _add_mail(mail: EmailMessage, lines: _Lines, depth: int) -> None:
    for header in ("From", "To", "Cc", "Date", "Subject"):
        if value := str(mail.get(header) or ""):
            lines.add(f"{header}: {' '.join(value.split())}")
    plain, html = (mail.get_body((kind,)) for kind in ("plain", "html"))
    text = "" if plain is None else _text_of(plain).strip()
    if not text and html is not None:
        text = text_of_html(_text_of(html), "# ")[0]
    lines.add("", *text.split("\n"))
    for number, part in enumerate(mail.iter_attachments()):
        if number >= MAX_MAIL_FILES:
            lines.add("[more files]")
            return
        _add_mail_file(part, lines, depth)


def _add_mail_file(part: MIMEPart, lines: _Lines, depth: int) -> None:
    """A file of a mail: its name, and its text where it is of a kind that is read."""
    name, type = " ".join((part.get_filename() or "").split()), part.get_content_type()
    if type == "message/rfc822":
        inner = part.get_content()
        if isinstance(inner, EmailMessage) and depth > 1:
            lines.add("", f"# Mail {name}".rstrip())
            _add_mail(inner, lines, depth - 1)
        return
    kind, content = file_kind(name, type), part.get_payload(decode=True)
    lines.add("", f"# File {name or type}")
    if kind is None or not isinstance(content, bytes):
        return
    found = read_document(kind, content)
    lines.add(*([f"[{found.note}]"] if found.note else []), *found.text.split("\n"))


def _text_of(part: MIMEPart) -> str:
    """The text of a part, also where its encoding is unknown, or wrong."""
    try:
        return str(part.get_content())
    except (LookupError, UnicodeError):
        payload = part.get_payload(decode=True)
        return decode_text(payload) if isinstance(payload, bytes) else ""


def _read_text(content: bytes, lines: _Lines) -> None:
    lines.add(*decode_text(content).split("\n"))


def _read_other(content: bytes, lines: _Lines) -> None:
    raise NotReadError(OTHER_FORMAT)


_READERS: Final[dict[FileKind, Callable[[bytes, _Lines], None]]] = {
    FileKind.TEXT: _read_text,
    FileKind.PDF: _read_pdf,
    FileKind.WORD: _read_word,
    FileKind.SHEETS: _read_sheets,
    FileKind.SLIDES: _read_slides,
    FileKind.HTML: _read_html,
    FileKind.MAIL: _read_mail,
    FileKind.OTHER: _read_other,
}
