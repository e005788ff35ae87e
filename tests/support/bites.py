"""A corpus of 200 strings that bite: texts that are more than text to a browser, a template, a query or a reader who
trusts what they see. Whoever runs one sets `window.bitten`."""

from collections.abc import Iterator
from typing import Final

RUN: Final = "window.bitten=1"
SCRIPTS: Final = (
    f"<script>{RUN}</script>",
    f"<ScRiPt >{RUN}</sCrIpT>",
    f"</title></textarea></style><script>{RUN}</script>",
    f'"><script>{RUN}</script>',
    f"'><script>{RUN}</script>",
    f"</p></li></form><script>{RUN}</script>",
    f"<scr<script>ipt>{RUN}</scr</script>ipt>",
    f"&lt;script&gt;{RUN}&lt;/script&gt;",
    f"\\u003cscript\\u003e{RUN}\\u003c/script\\u003e",
    f"%3Cscript%3E{RUN}%3C/script%3E",
    f"<!--><script>{RUN}</script>-->",
    f"]]><script>{RUN}</script>",
)
HANDLERS: Final = tuple(
    f'<{tag} {attribute}="{RUN}">'
    for tag, attribute in (
        ("img src=x", "onerror"),
        ("svg", "onload"),
        ("body", "onload"),
        ("input autofocus", "onfocus"),
        ("details open", "ontoggle"),
        ("video src=x", "onerror"),
        ("marquee", "onstart"),
        ("iframe srcdoc='<script>parent.bitten=1</script>'", "onload"),
        ("a href=# autofocus", "onfocus"),
        ("style", "onload"),
        ("button popovertarget=x", "onclick"),
        ("form id=find", "onsubmit"),
    )
)
ATTRIBUTES: Final = tuple(
    f"{quote} {attribute} x={quote}"
    for quote in ('"', "'", "`", "")
    for attribute in (f"onmouseover={RUN}", "autofocus onfocus=bitten=1", "style=position:fixed;inset:0", "dir=rtl")
)
OF_HTMX: Final = tuple(
    f'"><{tag} {attributes}>x</{tag}>'
    for tag, attributes in (
        ("b", 'hx-get="/logout" hx-trigger="load"'),
        ("b", 'hx-post="/logout" hx-trigger="load"'),
        ("b", 'data-hx-get="/memory/export" data-hx-trigger="load"'),
        ("div", 'hx-delete="/memory" hx-trigger="revealed"'),
        ("div", f'hx-on:load="{RUN}"'),
        ("div", f'hx-on--load="{RUN}"'),
        ("div", f"hx-vals='js:{{a: {RUN}}}' hx-get=/ask hx-trigger=load"),
        ("hx-partial", 'hx-target="#main" hx-swap="innerHTML"'),
        ("template", 'hx type="partial" hx-target="#main"'),
        ("form", 'action="https://evil.example" hx-boost="true"'),
        ("div", 'hx-ext="sse" sse-connect="/events?page=memory"'),
        ("meta", 'name="htmx-config" content=\'{"allowEval":true}\''),
        ("div", 'data-live="memory"'),
        ("div", "data-reload autofocus"),
    )
)
LINKS: Final = (
    f"[x](javascript:{RUN})",
    f"[x](JaVaScRiPt:{RUN})",
    f"[x](java\nscript:{RUN})",
    f"[x](data:text/html,<script>{RUN}</script>)",
    f"[x](vbscript:{RUN})",
    f"<javascript:{RUN}>",
    "![x](https://evil.example/pixel.png)",
    '![x](x "onerror=window.bitten=1")',
    "[x](//evil.example)",
    "[s1](#source-1)",
    "<https://evil.example/?a=b>",
    f'<a href="javascript:{RUN}">x</a>',
    f"<a href=' javascript:{RUN}'>x</a>",
    '<a href="https://evil.example" target=_blank>x</a>',
    '<base href="https://evil.example/">',
    '<link rel=stylesheet href="https://evil.example/x.css">',
    '<meta http-equiv=refresh content="0;url=https://evil.example">',
    "<img src=https://evil.example/x.png>",
    "<object data=https://evil.example></object>",
    "<embed src=https://evil.example>",
)
TEMPLATES: Final = (
    "{{ 7 * 7 }}",
    "{% for x in range(9) %}{% endfor %}",
    "{# hidden #}",
    "{{ ''.__class__.__mro__ }}",
    "${7*7}",
    "#{7*7}",
    "<%= 7*7 %>",
    "%(csrf)s %s %d %%",
    "{0} {csrf} {chrome.csrf}",
    "%n%n%n%x",
    "&amp;lt;b&amp;gt; &#60;b&#62; &nbsp;",
    "$(bitten=1) `bitten=1`",
)
QUERIES: Final = (
    "' OR '1'='1",
    "'; DROP TABLE memories; --",
    "\\'; --",
    "100%_\\",
    ":tenant_id $1 %(x)s",
    "NULL",
    "a' || pg_sleep(1) || '",
    "{x} && (y) !! :*",
)
LINES: Final = (
    "one\ntwo\r\nthree\rfour",
    "x\r\nSet-Cookie: a=b",
    "x\n\nevent: changed\ndata: \n\n",
    "x\rdata: </hx-partial><b>x</b>\r\r",
    "\u2028\u2029\x85line",
    "\x0b\x0c\x1c\x1d",
    "\ttab\t",
    "x\n# heading\n> quote\n```\ncode",
)
TURNED: Final = (
    "\u202eevil\u202c",
    "\u202egnp.exe",
    "\u2066\u2067\u2068unclosed",
    "\u2069\u2069\u202c closed too often",
    "\u202a\u202b\u202d\u202e\u202e\u202e",
    "\u05d0\u05d1\u05d2 (abc) 123",
    "\u0645\u0631\u062d\u0628\u0627 <b>",
    "abc \u05d0 def \u05d1 ghi",
    "\u200f\u200e\u061c",
    "\u202e" * 50,
    "\u05d0" * 300,
    "user\u202e@nexus.example",
)
LETTERS: Final = (
    "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466" * 5,
    "\U0001f1e9\U0001f1ea\U0001f3f4\U000e0067\U000e0062\U000e007f",
    "e" + "\u0301" * 200,
    "Z\u0351\u036b\u0343\u036a" * 40,
    "\u200b\u200c\u200d\ufeff\u2060",
    "\ufdfa\ufdfd" * 10,
    "\U00012031" * 20,
    "\u1680\u2000\u3000 spaces",
    "\u0410\u0430 and Aa",
    "\U000e0041\U000e0042 tags",
    "\ufffd",
    "\U0001d573\U0001d57a",
    "\u0e33\u0e4a\u0e4a\u0e4a",
    "\u1100\u1161\u11a8" * 20,
    "\ufe0f\ufe0f1\ufe0f\u20e3",
    "I\u0307\u0131\u0130 \u00df \ufb01",
)
LONG: Final = (
    "w" * 10_000,
    "word " * 2_000,
    "<b>" * 3_000,
    "(" * 5_000,
    "**" * 4_000,
    "[" * 4_000,
    "> " * 3_000,
    "\u202e" * 5_000,
    "&" * 5_000,
    "`" * 4_999,
    "https://evil.example/" + "a" * 5_000,
    "\U0001f600" * 2_500,
)
ODD: Final = (
    "..",
    "../../etc/passwd",
    "C:\\x\\y",
    "con",
    "-",
    "--yes",
    "/nexus forget everything --yes",
    "@everyone <@U1> <!channel>",
    "undefined",
    "[object Object]",
    "NaN",
    "-1",
    "1e999",
    "0x0",
    "true",
    "__proto__",
    "constructor",
    "=1+1",
    "+cmd|' /C calc'!A0",
    "csrf",
    "#main",
    "id=main name=csrf",
)
FAMILIES: Final = (
    *(SCRIPTS, HANDLERS, ATTRIBUTES, OF_HTMX, LINKS, TEMPLATES, QUERIES, LINES, TURNED, LETTERS, LONG, ODD),
    tuple(f"{number}. <i>item</i> \u202e{number}" for number in range(36)),
)


def corpus() -> Iterator[str]:
    """All of them, one of each family after the other."""
    waiting = [list(family) for family in FAMILIES]
    while any(waiting):
        yield from (family.pop(0) for family in waiting if family)
