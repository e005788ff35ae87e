"""Compares two recordings: one line for each kind of difference, with how often it came up and the first example."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from tests.golden.recording import facts_of, path_of, traces

WIDTH: Final = 400  # of an example
MORE: Final = 6  # examples of a kind that is explained
# In recordings of both platforms: when a platform was asked last, by the real clock.
_ASKED: Final = {"trust_stated_at", "privacy_at", "public_at", "outsiders_at"}
_MISSING: Final = object()
# What was numbered as it came up, or by all columns of its row, those that only one of both has among them.
_NUMBERED: Final = re.compile(r"<([a-z_][^<>]*?)(?: (\d+))?(…?)>")


@dataclass
class Kind:
    """Differences of one kind: how many, in which traces, and examples."""

    count: int = 0
    found_in: set[str] = field(default_factory=set)
    examples: list[str] = field(default_factory=list)


@dataclass
class Differences:
    """All differences by their kinds, in the order in which the kinds came up."""

    kinds: dict[str, Kind] = field(default_factory=dict)

    def leave_out(self, known: set[Any]) -> None:
        """Leave out the kinds that came up only where two recordings of the same code differ in them."""
        for kind in list(self.kinds):
            if all((kind, trace) in known for trace in self.kinds[kind].found_in):
                print(f"(differs by itself, too: {kind}: {self.kinds.pop(kind).count})")

    def add(self, kind: str, trace: str, example: str) -> None:
        """Count a difference."""
        found = self.kinds.setdefault(kind, Kind())
        found.count += 1
        found.found_in.add(trace)
        if len(found.examples) < MORE and (not found.examples or example not in found.examples):
            found.examples.append(f"{trace}: {example}")


VARYING: Final = "varying.json"


def compare(before: Path, after: Path, families: list[str], explain: bool, note_varying: bool = False) -> int:
    """Print the differences; returns 1 if there are any, else 0. With `note_varying` both are recordings of the same
    code: what differs is noted beside the first one, as what differs by itself."""
    found, equal, compared = Differences(), 0, 0
    print(f"before: {facts_of(before).get('commit')} · after: {facts_of(after).get('commit')}")
    _compare_schemas(before, after, found)
    shared = _shared(before, after)
    for family in families:
        if not path_of(before, family).exists() or not path_of(after, family).exists():
            print(f"{family}: not in both recordings")
            continue
        same, all_, only = _compare_family(before, after, family, shared, found)
        equal, compared = equal + same, compared + all_
        print(f"{family}: {same} of {all_} traces are equal{only}")
    path = before / VARYING
    known = {tuple(each) for each in json.loads(path.read_text())} if path.exists() else set()
    if note_varying:
        pairs = known | {(kind, trace) for kind, each in found.kinds.items() for trace in each.found_in}
        path.write_text(json.dumps(sorted(pairs), indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    else:
        found.leave_out(known)
    for kind, each in sorted(found.kinds.items(), key=lambda pair: -pair[1].count):
        print(f"\n{kind}: {each.count} in {len(each.found_in)} traces")
        for example in each.examples if explain else each.examples[:1]:
            print(f"    {example}")
    print(f"\n{equal} of {compared} traces are equal; {len(found.kinds)} kinds of difference.")
    return 1 if found.kinds else 0


def _compare_schemas(before: Path, after: Path, found: Differences) -> None:
    """One line for each table or column that only one of both has."""
    one, two = facts_of(before).get("tables"), facts_of(after).get("tables")
    if one is None or two is None:
        return
    for table in sorted(one.keys() - two.keys()):
        found.add(f"table {table} is gone", "schema", ", ".join(one[table]))
    for table in sorted(two.keys() - one.keys()):
        found.add(f"table {table} is new", "schema", ", ".join(two[table]))
    for table in sorted(one.keys() & two.keys()):
        for column in sorted(set(one[table]) - set(two[table])):
            found.add(f"column {table}.{column} is gone", "schema", "")
        for column in sorted(set(two[table]) - set(one[table])):
            found.add(f"column {table}.{column} is new", "schema", "")


def _shared(before: Path, after: Path) -> dict[str, set[str]] | None:
    """The columns that both have, by table; None: nothing is known of them."""
    one, two = facts_of(before).get("tables"), facts_of(after).get("tables")
    if one is None or two is None:
        return None
    return {table: {*one[table], "terms"} & {*two[table], "terms"} for table in one.keys() & two.keys()}


def _compare_family(
    before: Path, after: Path, family: str, shared: dict[str, set[str]] | None, found: Differences
) -> tuple[int, int, str]:
    """Compare the traces that both have. Returns how many are equal, of how many, and what only one has."""
    equal = compared = 0
    lost: list[str] = []
    rest = iter(traces(after, family))
    later: dict[str, Any] = {}
    ids_after = {trace["id"] for trace in traces(after, family)}
    for one in traces(before, family):
        if one["id"] not in ids_after:
            lost.append(one["id"])
            continue
        while one["id"] not in later:
            each = next(rest)
            later[each["id"]] = each
        two = later.pop(one["id"])
        compared += 1
        equal += _compare_trace(family, one, two, shared, found)
    new = [*later, *(each["id"] for each in rest)]
    only = f"; {len(lost)} only before (such as {lost[0]})" if lost else ""
    return equal, compared, only + (f"; {len(new)} only after (such as {new[0]})" if new else "")


def _compare_trace(family: str, one: Any, two: Any, shared: dict[str, set[str]] | None, found: Differences) -> bool:
    if one == two:
        return True
    before = sum(kind.count for kind in found.kinds.values())
    if one.get("input") != two.get("input"):
        example = next(iter(_differences("input", one.get("input"), two.get("input"))), ("", ""))[1]
        found.add(f"{family}: the input itself is another (its outcome is not compared)", one["id"], example)
        return False
    for part in sorted((one.keys() | two.keys()) - {"id", "input", "rows"}):
        old, new = (_renumbered(trace.get(part, _MISSING)) for trace in (one, two))
        for kind, example in _differences(part, old, new):
            found.add(f"{family}: {kind}", one["id"], example)
    columns = shared
    if family in ("week", "wires") and shared is not None:
        columns = {table: kept - _ASKED for table, kept in shared.items()}
    for kind, example in _row_differences(one.get("rows", {}), two.get("rows", {}), columns):
        found.add(f"{family}: {kind}", one["id"], example)
    return sum(kind.count for kind in found.kinds.values()) == before


def _differences(path: str, one: Any, two: Any) -> Iterator[tuple[str, str]]:
    """What differs between two values, as the kind of difference and an example."""
    if one == two:
        return
    if isinstance(one, dict) and isinstance(two, dict):
        for key in sorted(one.keys() | two.keys(), key=str):
            yield from _differences(f"{path}.{_general(key)}", one.get(key, _MISSING), two.get(key, _MISSING))
    elif isinstance(one, list) and isinstance(two, list):
        yield from _list_differences(path, one, two)
    elif one is _MISSING:
        yield f"{path} is new", _short(two)
    elif two is _MISSING:
        yield f"{path} is gone", _short(one)
    elif isinstance(one, str) and isinstance(two, str):
        yield f"{path} changed", _changed(one, two)
    else:
        yield f"{path} changed", f"{_short(one)} → {_short(two)}"


def _list_differences(path: str, one: list[Any], two: list[Any]) -> Iterator[tuple[str, str]]:
    if sorted(map(_text, one)) == sorted(map(_text, two)):
        yield f"{path} has another order", f"{_short(one)} → {_short(two)}"
        return
    a, b = list(map(_text, one)), list(map(_text, two))
    for what, start, end, other, last in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if what == "equal":
            continue
        for old, new in zip_longest(one[start:end], two[other:last], fillvalue=_MISSING):
            yield from _differences(f"{path}[{_label(old if old is not _MISSING else new)}]", old, new)


def _label(value: Any) -> str:
    """What an element of a list is called in the kind of a difference: a section by its name."""
    return str(value["name"]) if isinstance(value, dict) and str(value.get("name", "")).isupper() else ""


def _general(key: str) -> str:
    """A key as part of a kind: those that are data, such as viewers, are alike."""
    return str(key) if re.fullmatch(r"[\w-]+", str(key)) else "*"


def _row_differences(one: Any, two: Any, shared: dict[str, set[str]] | None) -> Iterator[tuple[str, str]]:
    """What differs between rows, table by table: rows that are gone or new, and columns that changed."""
    one, two = _comparable(one, shared), _comparable(two, shared)
    for table in sorted(one.keys() | two.keys()):
        old, new = (_multiset(rows.get(table, [])) for rows in (one, two))
        for text in list(old):
            common = min(old[text], new.get(text, 0))
            old[text] -= common
            if common:
                new[text] -= common
        gone = [json.loads(text) for text, count in old.items() for _ in range(count)]
        come = [json.loads(text) for text, count in new.items() for _ in range(count)]
        while gone and come:
            row = gone.pop(0)
            best = max(come, key=lambda other: _likeness(row, other))
            if _likeness(row, best) * 2 < len(row):
                yield f"rows of {table} are gone", _short(row)
                continue
            come.remove(best)
            for column in sorted(row.keys() | best.keys()):
                for _, example in _differences(column, row.get(column, _MISSING), best.get(column, _MISSING)):
                    yield f"rows: {table}.{column} changed", example
                    break
        for row in gone:
            yield f"rows of {table} are gone", _short(row)
        for row in come:
            yield f"rows of {table} are new", _short(row)


def _renumbered(value: Any, numbers: dict[str, int] | None = None) -> Any:
    """A value in which what has a number is numbered anew, in the order in which it comes up."""
    if value is _MISSING:
        return value
    given: dict[str, int] = {} if numbers is None else numbers

    def renumbered(found: re.Match[str]) -> str:
        return f"<{found[1]} {_number(found, given)}{found[3]}>"

    return json.loads(_NUMBERED.sub(renumbered, json.dumps(value, ensure_ascii=False)))


def _number(found: re.Match[str], numbers: dict[str, int]) -> int:
    kind = found[1]
    same = sum(name.rpartition("/")[0] == kind for name in numbers)
    return numbers.setdefault(f"{kind}/{found[2]}", 1 + same)


def _comparable(tables: dict[str, list[Any]], shared: dict[str, set[str]] | None) -> dict[str, list[Any]]:
    """The rows of the tables and columns that both have, with what has a number numbered by these alone."""
    found: dict[str, list[Any]] = {}
    numbers: dict[str, int] = {}
    for table in sorted(tables):
        if shared is not None and table not in shared:
            continue
        columns = None if shared is None else shared[table]
        rows = [
            row if columns is None else {name: value for name, value in row.items() if name in columns}
            for row in tables[table]
        ]
        rows.sort(key=lambda row: _NUMBERED.sub(r"<\1>", _text(row)))
        found[table] = rows
        for own in (_NUMBERED.fullmatch(str(row.get("id", ""))) for row in rows):
            if own:  # first by the order of its own rows
                _number(own, numbers)
    return {table: _renumbered(rows, numbers) for table, rows in found.items()}


def _multiset(rows: list[dict[str, Any]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in rows:
        text = _text(row)
        counts[text] = counts.get(text, 0) + 1
    return counts


def _likeness(one: dict[str, Any], two: dict[str, Any]) -> int:
    return sum(name in two and two[name] == value for name, value in one.items())


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else _text(value)
    return text if len(text) <= WIDTH else f"{text[:WIDTH]}…"


def _changed(one: str, two: str) -> str:
    """Two texts around the first place where they differ."""
    start = next((n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    begin = max(0, start - 60)
    return f"…{_short(one[begin : start + 140])!r} → …{_short(two[begin : start + 140])!r}"
