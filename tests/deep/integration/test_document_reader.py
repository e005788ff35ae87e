"""Documents are read as text in a process of their own; hostile ones end that process at the worst, and are named."""

import asyncio
import email.message
from collections.abc import Awaitable, Callable
from datetime import date, datetime
from email import policy

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from composer.ports.documents import DocumentText
from composer.stores.documents import child
from composer.stores.documents.process import BROKEN, TOO_LONG, DocumentProcesses
from composer.text.file_kinds import MAX_DOCUMENT_BYTES, MAX_DOCUMENT_CHARS
from composer.text.passages import passages
from tests.support.documents import HEADINGS, bomb, docx, paragraph, pdf, pptx, relations, xlsx, zipped
from tests.support.waiting import until

Reading = Callable[[str, bytes], Awaitable[DocumentText]]
NINE = datetime(2026, 5, 2, 9)  # noqa: DTZ001 - Excel knows no zones


@pytest.fixture
def read() -> Reading:
    reader = DocumentProcesses()

    async def read(name: str, content: bytes) -> DocumentText:
        return await reader.read(name, "", content)

    return read


def mail(text: str, *files: tuple[str, str, bytes], html: str = "", **headers: str) -> bytes:
    made = email.message.EmailMessage(policy=policy.default)
    for name, value in ({"From": "ann@acme.example", "To": "ben@acme.example", "Subject": "Plan"} | headers).items():
        made[name] = value
    made.set_content(text)
    if html:
        made.add_alternative(html, subtype="html")
    for name, type, content in files:
        kind, _, subtype = type.partition("/")
        made.add_attachment(content, maintype=kind, subtype=subtype, filename=name)
    return made.as_bytes()


WORD = docx(
    paragraph("Moving plan", "H1")
    + paragraph("The vans come on 3 May &amp; leave at 9.")
    + f"<w:tbl><w:tr><w:tc>{paragraph('van')}</w:tc><w:tc>{paragraph('driver')}</w:tc></w:tr></w:tbl>",
    more={"word/styles.xml": HEADINGS, "word/_rels/document.xml.rels": relations(("s", "styles", "styles.xml"))},
)


async def test_a_pdf_is_read_with_its_pages(read: Reading) -> None:
    found = await read("plan.pdf", pdf([["The vans (two) come", "on 3 May."], [], ["Bring gloves."]]))
    assert found == DocumentText("# Page 1\nThe vans (two) come\non 3 May.\n# Page 3\nBring gloves.")


async def test_a_document_of_word_is_read_with_its_headings_and_tables(read: Reading) -> None:
    found = await read("plan.docx", WORD)
    assert found == DocumentText("# Moving plan\nThe vans come on 3 May & leave at 9.\nvan | driver")


async def test_a_workbook_is_read_with_its_sheets(read: Reading) -> None:
    rows: list[list[object]] = [["what", "cost", "on"], ["vans", 1250.5, date(2026, 5, 3)], [None], ["gloves", 3, NINE]]
    found = await read("plan.xlsx", xlsx({"Budget": rows, "Empty": [], "Räume": [["", "", "attic"]]}))
    assert found.text.split("\n") == [
        "# Sheet Budget",
        "what\tcost\ton",
        "vans\t1250.5\t2026-05-03",
        "gloves\t3\t2026-05-02 09:00",
        "# Sheet Empty",
        "# Sheet Räume",
        "\t\tattic",
    ]


async def test_a_presentation_is_read_slide_by_slide_with_its_notes(read: Reading) -> None:
    found = await read("plan.pptx", pptx([["Moving"], ["Vans", "Two of them"]], {2: "Say that they are blue."}))
    assert found == DocumentText("# Slide 1\nMoving\n# Slide 2\nVans\nTwo of them\nNotes:\nSay that they are blue.")


async def test_a_page_in_html_is_read_without_its_scripts(read: Reading) -> None:
    html = "<title>x</title><h2>Moving</h2><script>track()</script><p>On 3&nbsp;May.<table><tr><td>a<td>b</table>"
    assert (await read("plan.html", html.encode())).text == "x\n# Moving\nOn 3 May.\na | b"
    assert (await read("plan.htm", "<p>Grüße".encode("cp1252"))).text == "Grüße"


async def test_a_mail_is_read_with_its_files(read: Reading) -> None:
    files = (
        ("vans.pdf", "application/pdf", pdf([["Two vans."]])),
        ("locked.pdf", "application/pdf", pdf([["no"]], password="x")),
        ("a.png", "image/png", b"\x89PNG"),
    )
    found = await read("plan.eml", mail("See you on 3 May.\n", *files, Date="Fri, 01 May 2026 10:00:00 +0000"))
    assert found.text == (
        "From: ann@acme.example\nTo: ben@acme.example\nDate: Fri, 01 May 2026 10:00:00 +0000\nSubject: Plan\n\n"
        "See you on 3 May.\n\n# File vans.pdf\n# Page 1\nTwo vans.\n\n"
        "# File locked.pdf\n[could not be read: it needs a password]\n\n\n# File a.png"
    )
    only_html = mail("", html="<h1>Hi</h1><p>Grüße")
    assert "Grüße" in (await read("b.eml", only_html)).text
    inner = mail("outer", ("first.eml", "application/octet-stream", mail("the inner words", Subject="Inner")))
    assert "the inner words" in (await read("c.eml", inner)).text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"name,seat\nOttilie,3", "name,seat\nOttilie,3"),
        ("name;seat\nJürgen;3".encode("utf-8-sig"), "name;seat\nJürgen;3"),
        ("name\tseat\nJürgen\t3".encode("utf-16"), "name\tseat\nJürgen\t3"),
        ("größe;straße;jürgen;öl;müller;fünf;übung\n".encode("cp1252"), "größe;straße;jürgen;öl;müller;fünf;übung\n"),
        (b"caf\xc3\xa9 \xff\xfe", None),
    ],
)
async def test_a_table_in_text_is_read_in_its_encoding(read: Reading, content: bytes, text: str | None) -> None:
    found = await read("seats.csv", content)
    assert found.text == text if text is not None else "caf" in found.text


async def test_the_end_of_sixty_pages_is_read_and_what_is_beyond_the_limit_is_said(read: Reading) -> None:
    page = [f"Line {n} of a page about nothing in particular, as reports have them." for n in range(50)]
    whole = await read("long.pdf", pdf([page] * 59 + [[*page, "The quokka sleeps in the vault."]]))
    assert whole.text.endswith("The quokka sleeps in the vault.")
    assert whole.note == ""
    cut = await read("longer.pdf", pdf([page] * 100))
    assert len(cut.text) == MAX_DOCUMENT_CHARS
    assert cut.note == "only its first 300,000 characters are read"
    text = await read("longer.txt", b"word " * 100_000)
    assert (len(text.text), text.note) == (MAX_DOCUMENT_CHARS, cut.note)


async def test_each_part_of_a_long_page_sheet_or_slide_says_where_it_stands(read: Reading) -> None:
    rows = [["person", "seat"], *([f"person number {n}", f"seat {n}"] for n in range(200))]
    shown = (await read("seats.xlsx", xlsx({"Seats": rows}))).text
    assert shown.count("(Sheet Seats: person\tseat)") >= 5
    for passage in passages(shown)[1:]:
        assert "Sheet Seats" in passage.of(shown)
    shown = (await read("long.pdf", pdf([[f"Line {n} of a page." for n in range(150)]] * 2))).text
    for passage in passages(shown):
        assert "Page 1" in passage.of(shown) or "Page 2" in passage.of(shown)


async def test_ten_thousand_pages_do_no_harm(read: Reading) -> None:
    found = await read("pages.pdf", pdf([[f"page {n}"] for n in range(10_000)]))
    assert found.text.startswith("# Page 1\npage 0\n")


ENTITIES = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(12))
LAUGHS = f'<!DOCTYPE x [<!ENTITY e0 "ha ha ha ha">{ENTITIES}]>'
QUADRATIC = f'<!DOCTYPE x [<!ENTITY e12 "{"a" * 500_000}">]>'
PART = b'Content-Type: multipart/mixed; boundary="%d"\n\n--%d\n'
OLE = bytes.fromhex("d0cf11e0a1b11ae1") + b"\0" * 2_000
EMPTY_PDF = pdf([[]])
UNREADABLE: dict[str, bytes | Callable[[], bytes]] = {
    # Protected
    "locked.pdf": pdf([["secret"]], password="heron"),
    "locked.docx": OLE + "EncryptedPackage".encode("utf-16-le") + b"\0" * 500,
    "locked.xlsx": OLE + "EncryptedPackage".encode("utf-16-le"),
    "locked.pptx": OLE + "EncryptedPackage".encode("utf-16-le"),
    "zip-lock.docx": WORD.replace(b"PK\x01\x02\x14\x03\x14\x00\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01\x00"),
    # Without text, or of another format
    "scan.pdf": EMPTY_PDF,
    "empty.docx": docx(""),
    "empty.html": b"<html></html>",
    "old.doc": OLE,
    "renamed.docx": OLE,
    "old.rtf": b"{\\rtf1 words}",
    # Bombs
    "bomb.docx": lambda: bomb("word/document.xml", 300),
    "bomb.xlsx": lambda: bomb("xl/workbook.xml", 300),
    "bomb.pptx": lambda: bomb("ppt/presentation.xml", 300),
    "many.docx": lambda: zipped({f"{n}": "" for n in range(20_001)}),
    "allowed.pptx": lambda: bomb("ppt/presentation.xml", 150),
    "laughs.docx": docx(paragraph("&e12;"), before=LAUGHS),
    "quadratic.docx": docx(paragraph("&e12;" * 2_000), before=QUADRATIC),
    "laughs.pptx": zipped({"ppt/presentation.xml": f'<?xml version="1.0"?>{LAUGHS}<p>&e12;</p>'}),
    "laughs.xlsx": zipped({"[Content_Types].xml": f'<?xml version="1.0"?>{LAUGHS}<p>&e12;</p>'}),
    "deep.docx": docx("<w:p>" * 50_000 + "</w:p>" * 50_000),
    # Damaged
    "cut.pdf": pdf([["words"]])[:60],
    "noise.pdf": b"%PDF-1.7\n" + bytes(range(256)) * 50,
    "loop.pdf": EMPTY_PDF.replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]"),
    "text.pdf": b"this is no PDF",
    "cut.docx": WORD[: len(WORD) // 2],
    "other.docx": zipped({"readme": "not of Office"}),
    "cut.xlsx": xlsx({"S": [["x"]]})[:-30],
    "other.pptx": WORD,
    "noise.xlsx": b"PK\x03\x04" + bytes(range(256)) * 4,
    "noise.eml": bytes(range(256)) * 20,
}


@pytest.mark.parametrize("name", UNREADABLE)
async def test_a_document_that_cannot_be_read_is_said_to_be_so(read: Reading, name: str) -> None:
    made = UNREADABLE[name]
    found = await read(name, made if isinstance(made, bytes) else made())
    assert found.text == ""
    assert found.note.startswith("could not be read: ")
    if "lock" in name:
        assert found.note == child.LOCKED


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("deep.html", b"<div>" * 200_000 + b"the end"),
        ("deep.eml", b"From: a\n" + b"".join(PART % (n, n) for n in range(900))),
        ("wide.xlsx", xlsx({"S": [[f"c{n}" for n in range(5_000)]] * 20})),
        ("far.xlsx", xlsx({"S": [["first"], *[[None]] * 50_000, ["last"]]})),
        ("action.pdf", pdf([["words"]], extra="/OpenAction << /S /JavaScript /JS (app.alert(1)) >>")),
        ("bad-header.eml", b"From: =?utf-9?q?=ff?=\nSubject: =?x\nContent-Type: text/plain; charset=none\n\nwords"),
        ("nulls.csv", b"a,b\0c\n" * 10),
    ],
)  # fmt: skip
async def test_odd_documents_are_read_as_far_as_they_go(read: Reading, name: str, content: bytes) -> None:
    found = await read(name, content)
    assert not found.note.startswith("could not be read") or name == "deep.eml"
    if name == "far.xlsx":
        assert found.text == "# Sheet S\nfirst\nlast"


@pytest.mark.parametrize("own", ["server", "file:///etc/passwd", "file:///proc/self/environ"])
async def test_what_a_document_refers_to_is_never_fetched(read: Reading, own: str) -> None:
    asked: list[str] = []

    async def serve(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(text="fetched words")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", serve)
    async with TestServer(app) as server:
        url = str(server.make_url("/x.png")) if own == "server" else own
        targets = (("i", "image", url), ("t", "attachedTemplate", url))
        linked = {"word/_rels/document.xml.rels": relations(*targets, external=("i", "t"))}
        drawing = "http://schemas.openxmlformats.org/drawingml/2006"
        picture = (
            f'<w:p><w:r><w:drawing><wp:inline xmlns:wp="{drawing}/wordprocessingDrawing">'
            f'<a:graphic xmlns:a="{drawing}/main"><a:graphicData><pic:pic xmlns:pic="{drawing}/picture">'
            '<pic:blipFill><a:blip r:link="i"/></pic:blipFill></pic:pic>'
            "</a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>"
        )
        outside = f'<!DOCTYPE x [<!ENTITY e SYSTEM "{url}"><!ENTITY % p SYSTEM "{url}">%p;]>'
        hostile = {
            "linked.docx": docx(paragraph("words") + picture, more=linked),
            "entity.docx": docx(paragraph("words &e;"), before=outside),
            "entity.pptx": zipped({"ppt/presentation.xml": f'<?xml version="1.0"?>{outside}<p>&e;</p>'}),
            "page.html": f'<img src="{url}"><link rel=stylesheet href="{url}"><iframe src="{url}"></iframe>'.encode(),
            "action.pdf": pdf([["words"]], extra=f"/OpenAction << /S /URI /URI ({url}) >>"),
            "body.eml": mail("words", html=f'<img src="{url}">'),
            "external.eml": f'From: a\nContent-Type: message/external-body; URL="{url}"\n\n'.encode(),
        }
        for name, content in hostile.items():
            found = await read(name, content)
            assert "fetched" not in found.text
            assert "root:" not in found.text
    assert asked == []


def test_the_process_opens_neither_connections_nor_files() -> None:
    with pytest.raises(PermissionError):
        child._refuse_outside("socket.connect", ())
    with pytest.raises(PermissionError):
        child._refuse_outside("subprocess.Popen", ())
    with pytest.raises(PermissionError):
        child._refuse_outside("open", ("/etc/passwd", "r", 0))
    child._refuse_outside("open", ("/usr/lib/python3/json/decoder.py", "r", 0))


async def test_what_takes_too_long_is_ended_and_named() -> None:
    found = await DocumentProcesses(seconds=0.0).read("plan.pdf", "", pdf([["words"]]))
    assert found == DocumentText(note=TOO_LONG)


async def test_a_process_that_dies_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("composer.stores.documents.process._COMMAND", ("/bin/sh", "-c", "kill -9 $$"))
    found = await DocumentProcesses().read("plan.pdf", "", pdf([["words"]]))
    assert found == DocumentText(note=BROKEN)


async def test_a_reading_that_is_cancelled_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("composer.stores.documents.process._COMMAND", ("/bin/sleep", "600"))
    started: list[asyncio.subprocess.Process] = []
    real = asyncio.create_subprocess_exec

    async def start(*given: object, **more: object) -> asyncio.subprocess.Process:
        started.append(await real("/bin/sleep", "600"))
        return started[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    task = asyncio.create_task(DocumentProcesses().read("plan.pdf", "", pdf([["words"]])))
    await until(lambda: bool(started))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert started[0].returncode is not None


async def test_a_file_that_is_too_large_or_of_another_kind_starts_no_process(
    read: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("composer.stores.documents.process._COMMAND", ("/does/not/exist",))
    assert await read("a.png", b"\x89PNG") == DocumentText()
    assert await read("a.pdf", b"") == DocumentText()
    large = await read("a.pdf", b"x" * (MAX_DOCUMENT_BYTES + 1))
    assert large.note == "could not be read: it has 20.0 MB, and the limit is 20 MB"
