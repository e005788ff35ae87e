"""Documents as programs write them, made in memory: as small as their formats allow."""

import zipfile
from collections.abc import Mapping, Sequence
from hashlib import md5
from io import BytesIO

import openpyxl

_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_SLIDES = "http://schemas.openxmlformats.org/presentationml/2006/main"
_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
_PADDING = bytes.fromhex("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a")


def pdf(pages: Sequence[Sequence[str]], *, password: str | None = None, extra: str = "") -> bytes:
    """A PDF with lines of text on each page. With a password, nobody opens it without; `extra` goes into its root."""
    owner = id = b"0123456789abcdef" * 2
    key = b""
    if password is not None:
        given = (password.encode() + _PADDING)[:32]
        key = md5(given + owner + (-4).to_bytes(4, "little", signed=True) + id[:16]).digest()[:5]
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {extra} >>".encode(),
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, lines in enumerate(pages):
        shown = [line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)") for line in lines]
        drawn = "".join(f"({line}) Tj 0 -14 Td\n" for line in shown)
        stream = f"BT /F1 11 Tf 50 800 Td\n{drawn}ET".encode("latin-1")
        if key:
            id_of = (5 + 2 * number).to_bytes(3, "little") + b"\0\0"
            stream = _rc4(md5(key + id_of).digest()[:10], stream)
        box = "/MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R {box} /Contents {5 + 2 * number} 0 R >>".encode())
        objects.append(f"<< /Length {len(stream)} >>\nstream\n".encode() + stream + b"\nendstream")
    trailer = f"/Size {len(objects) + 2} /Root 1 0 R /ID [<{id[:16].hex()}> <{id[:16].hex()}>]"
    if key:
        user = _rc4(key, _PADDING)
        lock = f"<< /Filter /Standard /V 1 /R 2 /O <{owner.hex()}> /U <{user.hex()}> /P -4 >>"
        objects.append(lock.encode())
        trailer += f" /Encrypt {len(objects)} 0 R"
    out, starts = BytesIO(), []
    out.write(b"%PDF-1.4\n")
    for number, each in enumerate(objects, 1):
        starts.append(out.tell())
        out.write(f"{number} 0 obj\n".encode() + each + b"\nendobj\n")
    table = out.tell()
    rows = "".join(f"{start:010} 00000 n \n" for start in starts)
    out.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{rows}".encode())
    out.write(f"trailer\n<< {trailer} >>\nstartxref\n{table}\n%%EOF".encode())
    return out.getvalue()


def _rc4(key: bytes, content: bytes) -> bytes:
    state, j = list(range(256)), 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    found, i, j = bytearray(), 0, 0
    for each in content:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        found.append(each ^ state[(state[i] + state[j]) % 256])
    return bytes(found)


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    """A zip of files."""
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as package:
        for name, content in files.items():
            package.writestr(name, content)
    return out.getvalue()


def _types(main: str, kind: str) -> str:
    start = "application/vnd.openxmlformats-officedocument"
    rels = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    xml = '<Default Extension="xml" ContentType="application/xml"/>'
    own = f'<Override PartName="/{main}" ContentType="{start}.{kind}.main+xml"/>'
    return f'<Types xmlns="{_PACKAGE}/content-types">{rels}{xml}{own}</Types>'


def relations(*rows: tuple[str, str, str], external: Sequence[str] = ()) -> str:
    """The relations of a part: (id, kind, target)."""
    given = "".join(
        f'<Relationship Id="{id}" Type="{_OFFICE}/{kind}" Target="{target}"'
        f"{' TargetMode=' + chr(34) + 'External' + chr(34) if id in external else ''}/>"
        for id, kind, target in rows
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{given}</Relationships>'


def docx(body: str, *, before: str = "", more: Mapping[str, str | bytes] | None = None) -> bytes:
    """A document of Word with a body in its XML. `before` stands before the root."""
    spaces = f'xmlns:w="{_WORD}" xmlns:r="{_OFFICE}"'
    document = f'<?xml version="1.0"?>{before}<w:document {spaces}><w:body>{body}</w:body></w:document>'
    files: dict[str, str | bytes] = {
        "[Content_Types].xml": _types("word/document.xml", "wordprocessingml.document"),
        "_rels/.rels": relations(("r1", "officeDocument", "word/document.xml")),
        "word/document.xml": document,
    }
    return zipped(files | dict(more or {}))


def paragraph(text: str, style: str = "") -> str:
    """A paragraph of Word."""
    of_style = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{of_style}<w:r><w:t>{text}</w:t></w:r></w:p>"


HEADINGS = (
    f'<w:styles xmlns:w="{_WORD}"><w:style w:type="paragraph" w:styleId="H1"><w:name w:val="heading 1"/></w:style>'
    "</w:styles>"
)


def xlsx(sheets: Mapping[str, Sequence[Sequence[object]]]) -> bytes:
    """A workbook of Excel, by sheets and their rows."""
    book, out = openpyxl.Workbook(write_only=True), BytesIO()
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(list(row))
    book.save(out)
    return out.getvalue()


def pptx(slides: Sequence[Sequence[str]], notes: Mapping[int, str] | None = None) -> bytes:
    """A presentation of PowerPoint, by slides and their paragraphs; `notes` by the number of the slide."""
    spaces = f'xmlns:a="{_DRAWING}" xmlns:r="{_OFFICE}" xmlns:p="{_SLIDES}"'

    def slide(lines: Sequence[str], tag: str) -> str:
        shown = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in lines)
        tree = f"<p:cSld><p:spTree><p:sp><p:txBody>{shown}</p:txBody></p:sp></p:spTree></p:cSld>"
        return f"<p:{tag} {spaces}>{tree}</p:{tag}>"

    listed = "".join(f'<p:sldId id="{256 + n}" r:id="s{n}"/>' for n in range(len(slides)))
    # The files are numbered backwards: their order is that of the list.
    names = [f"slide{len(slides) - n}.xml" for n in range(len(slides))]
    files: dict[str, str | bytes] = {
        "ppt/presentation.xml": f"<p:presentation {spaces}><p:sldIdLst>{listed}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(
            *((f"s{n}", "slide", f"slides/{name}") for n, name in enumerate(names))
        ),
    }
    for number, (name, lines) in enumerate(zip(names, slides, strict=True), 1):
        files[f"ppt/slides/{name}"] = slide(lines, "sld")
        if said := (notes or {}).get(number):
            files[f"ppt/slides/_rels/{name}.rels"] = relations(("n", "notesSlide", f"../notesSlides/{name}"))
            files[f"ppt/notesSlides/{name}"] = slide([said], "notes")
    return zipped(files)


def bomb(name: str, megabytes: int) -> bytes:
    """A zip with one file of so many megabytes, packed a thousand times smaller."""
    out, block = BytesIO(), b" " * 1_000_000
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as package, package.open(name, "w") as file:
        for _ in range(megabytes):
            file.write(block)
    return out.getvalue()
