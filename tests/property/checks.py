"""Checks on a world: the product shows everything that the reference allows, and nothing else."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from composer.prompt.sections import Prompt
from tests.property.product import Outcome, Product
from tests.property.reference import (
    AGENTS,
    BUSY_LATEST,
    BUSY_RELATED,
    BUSY_SPAN,
    VIEW_SIZES,
    Entry,
    Reference,
    View,
    may_be_busy,
)
from tests.property.setting import EVERYTHING, PROJECTS, Words
from tests.property.trace import (
    MAIN,
    TERMINAL,
    UNTRUSTED,
    Edit,
    Pin,
    Remember,
    Review,
    Say,
    SetFact,
    Share,
    Spot,
    canaries,
    mentioned,
    message_id,
    platform_of,
)
from tests.property.worlds import World

MOST_CANDIDATES: Final = 60  # of each kind that recall searches for (composer.layers.semantic.CANDIDATES)
STRANGER: Final = "stranger"

UNNAMED = 'project "unnamed'


class Broken(AssertionError):
    """A world that violates a rule. `method` is what found it: reference or interference."""

    def __init__(self, method: str, world: str, what: str) -> None:
        super().__init__(f"[{method}] world {world}: {what}")
        self.method = method


@dataclass(frozen=True, slots=True)
class Viewer:
    """A person at a place, for whom a prompt is made."""

    user: str
    spot: Spot

    def __str__(self) -> str:
        return f"{self.user} in {self.spot}"


def viewers(world: World, rules: Reference, rng: random.Random, most: int) -> list[Viewer]:
    """Choose some people in places where they may take part, and one where they may not."""
    inside, outside = everyone(world, rules)
    several = (viewers_in_projects, viewers_of_rooms, viewers_with_accounts, viewers_apart)
    involved = list(dict.fromkeys(viewer for group in several for viewer in group(rules, inside)))
    near = viewers_elsewhere(rules, inside)
    some = rng.sample(near or involved, min(most // 2, len(near or involved)))
    others = [viewer for viewer in inside if viewer not in some]
    some += rng.sample(others, min(most - 1 - len(some), len(others)))
    return [*some, *rng.sample(outside if not world.small or rng.random() < 0.5 else others, min(1, len(outside)))]


def viewers_in_projects(rules: Reference, inside: list[Viewer]) -> list[Viewer]:
    """Return the viewers in conversations that are assigned to a project, whether or not it applies to them."""
    return [v for v in inside if rules.assigned(MAIN, rules.conversation_key(MAIN, v.user, v.spot)) is not None]


def viewers_of_rooms(rules: Reference, inside: list[Viewer]) -> list[Viewer]:
    """Return the viewers in DMs that are open to rooms."""
    return [v for v in inside if v.spot.kind == "dm" and v.user in rules.tenant(MAIN).read_rooms]


def viewers_elsewhere(rules: Reference, inside: list[Viewer]) -> list[Viewer]:
    """Return those of them who have an account on a platform where people move unheard."""
    moved = {platform_of(user) for user, _ in rules.tenant(MAIN).inside} - {TERMINAL}
    accounts = rules.tenant(MAIN).accounts
    return [v for v in viewers_of_rooms(rules, inside) if moved & {platform_of(each) for each in accounts(v.user)}]


def viewers_with_accounts(rules: Reference, inside: list[Viewer]) -> list[Viewer]:
    """Return the viewers who are known under several accounts."""
    return [v for v in inside if len(rules.tenant(MAIN).accounts(v.user)) > 1]


def viewers_apart(rules: Reference, inside: list[Viewer]) -> list[Viewer]:
    """Return the guests and tools, and those in rooms that other organisations read."""
    rooms = {name for name, room in rules.tenant(MAIN).rooms.items() if room.outsiders}
    return [v for v in inside if v.user in UNTRUSTED or (v.spot.kind == "room" and v.spot.name in rooms)]


def everyone(world: World, rules: Reference) -> tuple[list[Viewer], list[Viewer]]:
    """Return all people at all places that exist: those who may take part, and those who may not."""
    inside: list[Viewer] = []
    outside: list[Viewer] = []
    for user in (*world.people, STRANGER):
        for spot in [each for each in world.spots if each.may_be_named_by(user)]:
            conversation_key = rules.conversation_key(MAIN, user, spot)
            there = rules.may_take_part(MAIN, user, conversation_key)
            if there or rules.exists(MAIN, conversation_key):
                (inside if there else outside).append(Viewer(user, spot))
    return inside, outside


async def check(product: Product, name: str, world: World, counts: Counter[str]) -> Reference:
    """Play a world and compare what some viewers are shown with the reference. Raises Broken."""
    rng = random.Random(f"viewers {world.seed}")
    rules = Reference.after(world.events)
    check_accepted(name, world, rules, await product.play(name, world.events, rules.accepted))
    count_actions(world, rules, counts)
    await check_erased(product, name, rules, counts)
    await check_answered(product, name, rules)
    for viewer in viewers(world, rules, rng, 2 if world.small else 4):
        await check_viewer(product, name, world, rules, viewer, counts)
    return rules


def check_accepted(name: str, world: World, rules: Reference, taken: Sequence[bool]) -> None:
    """Check that the product accepted exactly the events that the rules allow."""
    for event, expected, was in zip(world.events, rules.accepted, taken, strict=True):
        if expected != was:
            raise Broken("reference", name, f"{event} was {'taken' if was else 'refused'}")


def count_actions(world: World, rules: Reference, counts: Counter[str]) -> None:
    """Count each kind of action, accepted and refused ones apart."""
    for event, taken in zip(world.events, rules.accepted, strict=True):
        kind = type(event).__name__.lower()
        counts[f"{'' if taken else 'refused '}{kind}"] += 1
        if isinstance(event, Remember | SetFact | Pin | Share) and taken:
            counts[f"{kind} {event.scope}"] += 1
        if isinstance(event, Remember | SetFact | Pin) and taken and event.user in UNTRUSTED:
            counts["written by guests"] += 1
        if isinstance(event, Review) and taken:
            counts["approved" if event.approve else "rejected"] += 1
        counts["edit, not recorded"] += isinstance(event, Edit) and event.n in rules.unrecorded
        if isinstance(event, Say):
            where = event.spot.kind if event.private is None else f"{event.spot.kind}, {_privacy(event.private)}"
            counts[f"say in a {where}"] += 1
            counts["say again"] += event.again is not None
            counts["say with an attachment"] += bool(event.attachment)
            counts["say with a mention"] += bool(mentioned(event.text))
    counts["answers"] += sum(e.kind == "reply" for t in rules.tenants.values() for e in t.entries)
    counts["follow-ups"] += rules.follow_ups
    counts["worlds"] += 1


def _privacy(private: bool) -> str:
    return "closed" if private else "opened"


async def check_answered(product: Product, name: str, rules: Reference) -> None:
    """Check that those messages were answered, and by those agents, that should be."""
    for tenant, here in rules.tenants.items():
        asked = {e.n for e in here.entries if e.kind == "message" and e.alive}
        expected = {(message_id(e.n), e.agent) for e in here.entries if e.kind == "reply" and e.n in asked}
        answered = await product.answered(name, tenant)
        if answered != expected:
            more, missing = sorted(answered - expected), sorted(expected - answered)
            raise Broken("reference", name, f"in {tenant} answered though not to be: {more}, not answered: {missing}")


async def check_erased(product: Product, name: str, rules: Reference, counts: Counter[str]) -> None:
    """Check that nothing erased is left in the database."""
    for tenant, words in rules.erased.items():
        if words:
            counts["erased words looked for"] += len(words)
            left = words & canaries(await product.everything(name, tenant))
            if left:
                raise Broken("reference", name, f"erased, yet stored in {tenant}: {sorted(left)}")


async def check_viewer(
    product: Product, name: str, world: World, rules: Reference, viewer: Viewer, counts: Counter[str]
) -> None:
    """Ask about everything as one viewer: expect a refusal where they may not take part, else all that they may see."""
    user, spot = viewer.user, viewer.spot
    text = EVERYTHING
    view = rules.view(MAIN, user, spot, text, world.end)
    asked = await product.ask(name, MAIN, user, spot, text, world.end)
    if view is None:
        counts["refused"] += 1
        await _check_refusal(product, name, world, viewer, asked)
        return
    counts[f"viewed {spot.kind}"] += 1
    counts["viewed dm, of linked accounts"] += spot.kind == "dm" and len(rules.tenant(MAIN).accounts(user)) > 1
    counts["viewed by guests"] += user in UNTRUSTED
    counts["viewed where outsiders read"] += bool(viewers_apart(rules, [viewer])) and user not in UNTRUSTED
    with_rooms = spot.kind == "dm" and user in rules.tenant(MAIN).read_rooms
    counts["viewed dm, with rooms"] += with_rooms
    counts["viewed dm, with a private room elsewhere"] += with_rooms and rules.reads_private_elsewhere(
        MAIN, user, world.end
    )
    if asked.prompt is None:
        raise Broken("reference", name, f"{viewer} was refused: {asked.refusal}")
    try:
        check_prompt(asked.prompt, view, counts)
    except AssertionError as error:
        raise Broken("reference", name, f"{viewer}: {error}") from error


async def _check_refusal(product: Product, name: str, world: World, viewer: Viewer, asked: Outcome) -> None:
    """Check that a hidden conversation is refused in the same words as one that does not exist."""
    user, spot = viewer.user, viewer.spot
    if asked.prompt is not None:
        raise Broken("reference", name, f"{viewer} may not be there, and was shown a prompt")
    nowhere = Spot(spot.kind, "nowhere", spot.thread, spot.agent)
    if spot.kind in ("room", "thread", "session"):
        absent = await product.ask(name, MAIN, user, nowhere, EVERYTHING, world.end)
        if asked.refusal.replace(spot.name, "nowhere") != absent.refusal:
            raise Broken("reference", name, f"{viewer}: '{asked.refusal}' tells more than '{absent.refusal}'")
    behind = await product.compose_without_membership_check(name, MAIN, user, spot, EVERYTHING, world.end)
    if behind.prompt is not None:
        raise Broken("reference", name, f"{viewer} was refused by the door alone")


def check_prompt(prompt: Prompt, view: View, counts: Counter[str]) -> None:
    """Compare a prompt with the reference. Raises AssertionError."""
    sections = {section.name: section for section in prompt.sections}
    stray = canaries(str(prompt.as_json())) - view.canaries
    assert not stray, f"{sorted(stray)} may not be shown"
    in_project = [slug for slug in PROJECTS if slug in sections["CONTEXT"].text]
    # The name of a project goes with the person who made it, if nobody else was in it.
    is_unnamed = view.project is not None and UNNAMED in sections["CONTEXT"].text
    named = [] if view.project is None or is_unnamed else [view.project]
    assert in_project == named, f"CONTEXT names {in_project}"
    for kind, name in (("fact", "FACTS"), ("landmark", "LANDMARKS")):
        shown = [_entry_of(item.text, view, (kind,), name) for item in sections[name].sources]
        missing = [e for e in view.sure if e.kind == kind and e not in shown]
        assert not missing, f"{name} lacks {missing}"
        assert canaries(sections[name].text) == frozenset().union(*(e.canaries for e in shown)), f"{name} contains more"
        counts[f"{kind}s shown"] += len(shown)
    _check_working(prompt, view, counts)
    shown = [_entry_of(item.text, view, ("summary",), "SUMMARIES") for item in sections["SUMMARIES"].sources]
    assert shown == list(view.summaries), f"SUMMARIES are {shown}, not {view.summaries}"
    _check_recall(prompt, view, counts)


def _entry_of(text: str, view: View, kinds: tuple[str, ...], section: str) -> Entry:
    """Return the only entry that a source comes from; the source contains nothing of other entries."""
    found = [e for e in view.possible if e.kind in kinds and e.canaries & canaries(text)]
    assert len(found) == 1, f"{section} contains '{text}', which comes from {len(found)} entries that may be shown"
    stray = canaries(text) - found[0].canaries
    assert not stray, f"{section} joins {sorted(stray)} to {found[0]}"
    return found[0]


def _check_working(prompt: Prompt, view: View, counts: Counter[str]) -> None:
    """Check that WORKING has the latest messages without gaps, at least 40. In a busy room it has at least the
    latest 30, and before them ten of the latest 199, in their order."""
    sections = {section.name: section for section in prompt.sections}
    shown = [*sections["RELATED"].sources, *sections["WORKING"].sources]
    ids = [item.messages[0] for item in shown]
    expected = [_id_of(entry) for entry in view.log]
    gaps = ids != expected[len(expected) - len(ids) :]
    assert not gaps or may_be_busy(view.conversation_key, view.log), f"WORKING has {ids} of {expected}"
    last = ids[BUSY_RELATED:] if gaps else ids
    assert last == expected[len(expected) - len(last) :], f"WORKING ends with {last}, the conversation with {expected}"
    assert not gaps or len(last) >= BUSY_LATEST, f"WORKING has no more than the last {len(last)} messages"
    places = [expected.index(id, max(len(expected) - BUSY_SPAN, 0)) for id in ids]
    assert places == sorted(set(places)), f"WORKING has {ids} in another order than {expected}"
    least, most = VIEW_SIZES
    assert min(least, len(expected)) <= len(ids) <= most, f"WORKING has {len(ids)} of {len(expected)} messages"
    counts["views with gaps"] += gaps
    for item, entry in zip(shown, (view.log[place] for place in places), strict=True):
        assert canaries(item.text) <= entry.canaries, f"WORKING shows '{item.text}' for {entry}"
        if entry.kind == "message":
            assert item.text == entry.text, f"WORKING shows '{item.text}' for {entry}"
    counts["messages shown"] += len(ids)
    counts["answers shown"] += sum(entry.kind == "reply" for entry in view.log)
    counts["long talks"] += len(expected) > most


def _id_of(entry: Entry) -> str:
    return f"m{entry.n}" if entry.kind == "message" else f"reply:m{entry.n}:{entry.agent}"


def _check_recall(prompt: Prompt, view: View, counts: Counter[str]) -> None:
    """Check that RECALL has only allowed entries that are not in the view, and all of them where the limits permit."""
    sections = {section.name: section for section in prompt.sections}
    in_view = {item.messages[0] for name in ("RELATED", "WORKING") for item in sections[name].sources}
    shown = set()
    for item in sections["RECALL"].sources:
        entry = _entry_of(item.text, view, ("message", "memory", "summary"), "RECALL")
        assert entry.kind != "message" or _id_of(entry) not in in_view, f"RECALL repeats {entry}"
        shown.add((entry.kind, entry.n))
        counts["recalled from a dm of another account"] += entry.home[0] == "dm" and entry.home != view.home
        counts["recalled from a room in a dm"] += view.conversation_key[0] == "dm" and entry.home[0] == "room"
    counts["items recalled"] += len(shown)
    recallable = [e for e in view.possible if e.kind in ("message", "memory", "summary")]
    if 2 * len(recallable) > MOST_CANDIDATES:  # a message can be stored as an episode and as memories
        counts["too many to recall all"] += 1
        return
    counts["recalled all"] += 1
    summaries = {e.n for e in view.summaries}
    covered = {
        n for e in view.possible if (e.kind, e.n) in shown for n in e.sources
    }  # covered by a summary that is shown
    for entry in view.sure:
        unseen = entry.kind == "message" and _id_of(entry) not in in_view and entry.n not in covered
        if unseen or entry.kind == "memory":
            assert (entry.kind, entry.n) in shown, f"RECALL lacks {entry}"
        if entry.kind == "summary" and not entry.sources and entry.n not in summaries:
            assert (entry.kind, entry.n) in shown, f"RECALL lacks {entry}"


# Questions that name no subject, which list what may be read.
PLAIN: Final = (
    *("what did I miss?", "what do you know about me?", "list the decisions", "which tasks are open?"),
    *("what did bob say?", "Was hat carol gesagt?", f"what did {STRANGER} say?", "what are my reminders?"),
    *("summarise this week", "summarise yesterday", "what are the open questions?", "Was habe ich verpasst?"),
)


def probe(rng: random.Random, secrets: list[str]) -> list[str]:
    """Return questions of a curious viewer, one of them with a word that only a secret contains."""
    words = Words(rng, 900_000)
    asked = [EVERYTHING, words.question()]
    if secrets:
        asked.append(f"is {rng.choice(secrets)} of the {words.rng.choice(('salary', 'merger'))}?")
    if rng.random() < 0.4:
        asked.append(f"@{rng.choice(('bob', 'carol', STRANGER))} @{rng.choice(AGENTS)} {words.question()}")
    if rng.random() < 0.3:
        asked.append(f"@scout {words.question()}")
    return [*asked, random.Random(asked[1]).choice(PLAIN)]
