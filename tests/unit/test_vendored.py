"""The files of others that pages load are those that the list beside them names."""

import hashlib
import re

from tests.vendored import PAGES, left_out, used_attributes, used_classes, without_unused


def test_each_file_of_others_has_the_digest_that_is_noted_beside_it() -> None:
    noted = re.findall(
        r"^\| (\S+) \|.*\| ([0-9a-f]{64}) \|$", (PAGES / "static" / "VENDORED.md").read_text(encoding="utf-8"), re.M
    )
    found = {name: hashlib.sha256((PAGES / "static" / name).read_bytes()).hexdigest() for name, _ in noted}
    assert found == dict(noted)
    assert {path.name for path in (PAGES / "static").iterdir() if re.search(r"-\d+\.\d+\.\d+", path.name)} == set(found)


def test_no_page_uses_what_was_left_out_of_the_component_sheet() -> None:
    gone = left_out()
    assert len(gone) > 20
    assert not gone & (used_classes() | used_attributes())


def test_a_sheet_keeps_what_may_fit_and_the_values_that_it_asks_for() -> None:
    sheet = (
        ':root{--a:1px;--b:2px}@property --tw-x{syntax:"*"}@layer components{.btn,.tabs,p{margin:var(--a)}'
        ".tabs{margin:var(--b)}.btn:is(.tabs *,:hover):not(.tabs){top:0}.tabs :where(p){top:1px}"
        "@media (hover){.tabs{a:b}}}"
    )
    kept = ":root{--a:1px;}@layer components{.btn,p{margin:var(--a)}.btn:is(:hover){top:0}}"
    assert without_unused(sheet, {".btn"}) == kept


def test_a_sheet_keeps_no_rule_for_attributes_that_no_page_has() -> None:
    sheet = ".btn[title],[data-tooltip]{top:0}.input[type=range],.input[type=text]:not([data-tooltip]){top:1px}"
    kept = ".btn[title]{top:0}.input[type=text]{top:1px}"
    assert without_unused(sheet, {".btn", ".input", "title", "type", "type=text"}) == kept


def test_a_sheet_keeps_no_rule_for_a_class_that_is_a_word_of_a_page() -> None:
    sheet = ".btn,.dialog > p,.btn:is(html.dark *){top:0}[dialog]{top:1px}"
    assert without_unused(sheet, {".btn", "dark", "dialog"}) == ".btn{top:0}[dialog]{top:1px}"
