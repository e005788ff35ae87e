"""A form that is refused: its page comes again, with the sentence and with what was typed."""

import re
from html import unescape

import httpx2
import pytest

from bot.web.pages.refused_forms import with_refusal
from tests.support.harness import AppHarness
from tests.support.pages import BITES, OWN, Person

FROM = "http://test"


def sent_from(alice: Person, page: str) -> dict[str, str]:
    """The headers of a form that was sent from a page."""
    host = alice.client.base_url.netloc.decode()
    return OWN | {"Host": host, "Referer": f"http://{host}{page}"}


async def test_a_refused_form_stands_on_its_page_with_what_was_typed(harness: AppHarness, alice: Person) -> None:
    await alice.page("/you")
    refused = await alice.press("/you", _headers=sent_from(alice, "/you"), zone='Mars/"Base"', theme="dark")
    assert refused.status_code == 422
    assert "no-store" in refused.headers["cache-control"]
    form = refused.text[refused.text.index('action="/you"') :]
    assert "Mars" in unescape(re.search(r'role="alert"[^>]*>([^<]+)<', form)[1])  # type: ignore[index]
    assert re.search(r'name="zone"[^>]* value="Mars/&quot;Base&quot;"', form)
    assert re.search(r'<option value="dark" selected>', form)
    assert 'data-address="/you"' in refused.text
    assert "<h1>You</h1>" in refused.text


async def test_a_name_that_is_taken_is_said_where_it_was_typed(harness: AppHarness, alice: Person) -> None:
    await alice.page("/rooms")
    assert (await alice.press("/projects", name="launch")).status_code == 303
    refused = await alice.press("/projects", _headers=sent_from(alice, "/rooms?x=1"), name="launch")
    assert refused.status_code == 409
    assert 'data-address="/rooms?x=1"' in refused.text
    assert re.search(r'name="name"[^>]* value="launch"', refused.text)


@pytest.mark.parametrize("page", ["/nowhere", "/memory/export", "/admin", "/v1/me", ""])
async def test_without_a_page_of_theirs_the_sentence_stands_alone(
    harness: AppHarness, alice: Person, client: httpx2.AsyncClient, page: str
) -> None:
    await alice.page("/you")
    elsewhere = {"Referer": "http://elsewhere.example/you"}
    headers = sent_from(alice, page) if page else OWN | elsewhere
    refused = await alice.press("/you", _headers=headers, zone="Mars/Base")
    assert refused.status_code == 422
    assert "To the beginning" in refused.text
    assert "<form" not in refused.text


async def test_of_several_forms_the_one_that_was_sent_is_filled_and_opened() -> None:
    page = (
        '<main id="main"><h1 autofocus>x</h1><form method="post" action="/a"><input type="hidden" name="of" value="1">'
        '<input name="n"></form><details class="x"><summary>s</summary>'
        '<form method="post" action="/a"><input type="hidden" name="of" value="2">'
        '<input name="n" value="old"><textarea name="t">was</textarea><input type="checkbox" name="c" checked></form>'
        "</details></main>"
    )
    shown = with_refusal(page, "/a", {"of": ["2"], "n": ["new"], "t": ["typed"]}, "No.", "It says:", "/p")
    first, second = shown.split("<details", 1)
    assert "alert" not in first
    assert shown.count("autofocus") == 1, "one looks at the sentence"
    assert second.startswith(' class="x" open>')
    assert 'name="n" value="new"' in second
    assert "was" not in second
    assert "typed</textarea>" in second
    assert "checked" not in second
    gone = with_refusal(page, "/b", {}, "No.", "It says:", "/p")
    assert gone.startswith('<main id="main" data-address="/p"><p class="alert"')


_EDITED = (
    '<main><form action="/a"><input type="hidden" name="version" value="2"><label><span>Words</span>'
    '<textarea name="t">\nby her &lt;b&gt;</textarea></label><label><span>Kind</span><select name="k">'
    '<option value="n">Note</option><option value="h" selected>Habit</option></select></label>'
    '<label>Tags<input name="g" value="ops"></label><input type="checkbox" name="c" value="1"></form></main>'
)


def _beside(shown: str) -> list[tuple[str, str]]:
    return re.findall(r'<dt>(.*?)</dt><dd dir="auto">(.*?)</dd>', shown)


async def test_what_others_changed_meanwhile_stands_beside_what_was_typed() -> None:
    sent = {"version": ["1"], "t": ["by me"], "k": ["n"], "g": ["ops"]}
    shown = with_refusal(_EDITED, "/a", sent, "No.", "It says:", "/p")
    assert _beside(shown) == [("Words", "by her &lt;b&gt;"), ("Kind", "Habit")]
    assert "by me</textarea>" in shown
    assert 'name="version" value="2"' in shown, "to send it again is to have read it"
    assert _beside(with_refusal(_EDITED, "/a", sent | {"version": ["2"]}, "No.", "It says:", "/p")) == []
    same = {"version": ["1"], "t": ["by her\r\n<b>"], "k": ["h"], "g": ["ops"]}
    assert "It says:" not in with_refusal(_EDITED, "/a", same, "No.", "It says:", "/p")


@pytest.mark.parametrize("bite", BITES)
async def test_what_was_typed_is_text(harness: AppHarness, alice: Person, bite: str) -> None:
    page = '<main><form action="/a"><textarea name="t"></textarea><input name="n"></form></main>'
    sent = {"t": [f"{bite}</textarea>"], "n": [f'{bite}" onfocus="x']}
    shown = with_refusal(page, "/a", sent, bite, "It says:", f'/p?"{bite}')
    assert not re.search(r"<(script|img|b)\b", shown)
    assert shown.count("</textarea>") == 1
    assert not re.search(r'" onfocus', shown)
