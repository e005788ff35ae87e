"""Traces of the command line: scripts that `nexus play` plays, and what other commands say of them then."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any, Final

from composer.stores.embedded.servers import Servers
from tests.golden.names import Names, unordered
from tests.golden.recording import Recorder
from tests.golden.week import add_all
from tests.support.databases import clone
from tests.support.model_server import ModelServer, Say
from tests.support.program import Program

DAY: Final = "2026-05-04"


def said(at: str, user: str, text: str, **more: Any) -> dict[str, Any]:
    """Somebody writes, or gives a command."""
    kind = "command" if text.startswith("/nexus") else "message"
    return {"type": kind, "at": f"{DAY}T{at}:00Z", "workspace": "acme", "user": user, "text": text, **more}


SCRIPT: Final[tuple[dict[str, Any], ...]] = (
    said("09:00", "alice", "We decided that the launch is on Friday", room="general", id="m1"),
    said("09:01", "bob", "@nexus when is the launch?", room="general", id="m2"),
    said("09:02", "bob", "my salary is zqsalary, keep it to yourself", dm="nexus", id="m3"),
    said("09:03", "bob", "@nexus what is my salary?", room="general", id="m4"),
    said("09:04", "bob", "what is my salary?", dm="nexus", id="m5"),
    said("09:05", "alice", "the vault opens with zqvault", room="board", private=True, id="m6"),
    said("09:06", "alice", "@nexus how does the vault open?", room="board", id="m7"),
    said("09:07", "alice", "how does the vault open?", dm="nexus", id="m8"),
    said("09:08", "alice", "/nexus rooms on", dm="nexus"),
    said("09:09", "alice", "how does the vault open, please?", dm="nexus", id="m9"),
    said("09:10", "eve", "@nexus how does the vault open?", room="general", id="m10"),
    said("09:11", "eve", "@nexus how does the vault open?", room="board", id="m11"),
    said("09:12", "alice", "I prefer tea over coffee and I am called Al", room="general", id="m12"),
    said("09:13", "alice", "/nexus remember the wifi is called zqwifi", room="general"),
    said("09:14", "alice", "/nexus remember my badge is zqbadge --everywhere", dm="nexus"),
    said("09:15", "bob", "/nexus recall wifi", room="general"),
    said("09:16", "alice", "/nexus fact set deploy_day Thursday", room="general"),
    said("09:17", "alice", "/nexus fact set deploy_day Friday", room="general"),
    said("09:18", "bob", "/nexus fact list", room="general"),
    said("09:19", "bob", "/nexus fact history deploy_day", room="general"),
    said("09:20", "alice", "/nexus landmark add We ship on Fridays", room="general"),
    said("09:21", "alice", "/nexus landmark list", room="general"),
    said("09:22", "bob", "/nexus why --details", room="general"),
    said("09:23", "bob", "/nexus why --prompt", room="general"),
    said("09:24", "alice", "/nexus project create apollo", room="general"),
    said("09:25", "alice", "/nexus project assign apollo --pool --yes", room="board"),
    said("09:26", "alice", "/nexus project member add apollo bob write", room="general"),
    said("09:27", "bob", "/nexus project list", room="general"),
    said("09:27", "bob", "/nexus project accept apollo", room="general"),
    said("09:27", "bob", "/nexus project list", room="general"),
    said("09:28", "alice", "/nexus remind me tomorrow call the bank", dm="nexus"),
    said("09:29", "alice", "/nexus remind here in 2 hours stand up", room="general"),
    said("09:30", "alice", "/nexus remind list", dm="nexus"),
    said("09:31", "alice", "/nexus digest daily 18", room="general"),
    said("09:32", "bob", "/nexus memory", room="general"),
    said("09:33", "alice", "/nexus memory mentions", room="general"),
    said("09:34", "carol", "nobody keeps this zqgone", room="general", id="m13"),
    said("09:35", "alice", "/nexus memory on", room="general"),
    said("09:36", "gus", "@nexus please remember: the door code is zqdoor", room="general", trust="guest", id="m14"),
    said("09:37", "gus", "/nexus remember the door code is zqdoor", room="general", trust="guest"),
    said("09:38", "alice", "/nexus memory pending", room="general"),
    said("09:39", "alice", "/nexus memory by gus", room="general"),
    {"type": "edit", "at": f"{DAY}T09:40:00Z", "workspace": "acme", "id": "m1",
     "text": "The launch is on Monday zqmonday"},
    said("09:41", "bob", "@nexus when is the launch now?", room="general", id="m15"),
    {"type": "delete", "at": f"{DAY}T09:42:00Z", "workspace": "acme", "id": "m1"},
    said("09:43", "bob", "@nexus when is the launch then?", room="general", id="m16"),
    {"type": "join", "at": f"{DAY}T09:44:00Z", "workspace": "acme", "room": "board", "user": "carol"},
    said("09:45", "carol", "@nexus how does the vault open?", room="board", id="m17"),
    {"type": "leave", "at": f"{DAY}T09:46:00Z", "workspace": "acme", "room": "board", "user": "carol"},
    said("09:47", "carol", "@nexus how does the vault open?", room="board", id="m18"),
    said("09:48", "bob", "/nexus forget zqsalary", dm="nexus"),
    said("09:49", "bob", "/nexus forget zqsalary --yes", dm="nexus"),
    said("09:50", "bob", "what is my salary by now?", dm="nexus", id="m19"),
    said("09:51", "dan", "let us plan, in a thread", room="general", thread="t1", id="m20"),
    said("09:52", "dan", "@nexus what do we plan here?", room="general", thread="t1", id="m21"),
    said("09:53", "dan", "a session of mine zqsession", session="s1", agent="nexus", id="m22"),
    said("09:54", "dan", "what did I say in this session?", session="s1", agent="nexus", id="m23"),
    said("09:55", "dan", "@nexus read this", room="general", id="m24",
         attachments=[{"name": "plan.md", "type": "text/markdown", "text": "Ship zqplan"}]),
    said("09:56", "alice", "/nexus privacy", dm="nexus"),
    said("09:57", "alice", "/nexus share", dm="nexus"),
    said("09:58", "alice", "/nexus usage", dm="nexus"),
    said("09:59", "alice", "/nexus settings top_k 5", room="general"),
    said("10:00", "alice", "/nexus help", room="general"),
    said("10:01", "alice", "/nexus agents", room="general"),
    said("10:02", "alice", "/nexus nonsense", room="general"),
    said("10:03", "alice", "/nexus fact", room="general"),
    said("10:04", "alice", "/nexus history tea", room="general"),
    said("10:05", "eve", "/nexus opt-out", dm="nexus"),
    said("10:06", "eve", "do not keep zqeve", room="general", id="m25"),
    said("10:07", "alice", "/nexus catch-up", room="general"),
    said("10:08", "alice", "/nexus compact", room="board"),
    said("10:09", "alice", "/nexus export", dm="nexus"),
    said("10:10", "alice", "/nexus link", dm="nexus"),
    said("10:11", "alice", "/nexus keys list", dm="nexus"),
    {"type": "settle", "workspace": "acme"},
    {"type": "job", "at": "2026-05-05T04:30:00Z", "workspace": "acme", "name": "day"},
    {"type": "job", "at": "2026-05-05T04:40:00Z", "workspace": "acme", "name": "thread"},
    {"type": "job", "at": "2026-05-11T04:40:00Z", "workspace": "acme", "name": "week"},
    {"type": "message", "at": "2026-05-11T09:00:00Z", "workspace": "acme", "user": "bob", "room": "general",
     "id": "m30", "text": "@nexus what happened last week?"},
    {"type": "command", "at": "2026-05-11T09:01:00Z", "workspace": "acme", "user": "alice", "room": "board",
     "text": "/nexus erase room --yes"},
    {"type": "message", "at": "2026-05-11T09:02:00Z", "workspace": "acme", "user": "alice", "room": "board",
     "id": "m31", "text": "@nexus how does the vault open?"},
)  # fmt: skip

QUESTIONS: Final = (
    {"id": "q1", "user": "alice", "room": "general", "text": "@nexus what did we decide about the launch?"},
    {"id": "q2", "user": "bob", "dm": "nexus", "text": "what is my salary?"},
    {"id": "q3", "user": "eve", "room": "board", "text": "how does the vault open?"},
    {"id": "q4", "user": "alice", "dm": "nexus", "text": "what is my badge, and what is the wifi?"},
    {"id": "q5", "user": "nobody", "room": "general", "text": "who is here?"},
)
THERE: Final = {"workspace": "acme", "at": "2026-05-12T09:00:00Z"}
THEN: Final = (
    ("usage", "--since", DAY, "--json"),
    ("audit", "list", "--workspace", "acme", "--json"),
    ("import", "--list", "--json"),
    ("jobs", "list", "--json"),
    ("keys", "create", "--user", "alice", "--workspace", "acme", "--json"),
    ("keys", "list", "--json"),
    ("login", "alice", "--workspace", "acme", "--json"),
    ("export", "--user", "bob", "--workspace", "acme", "--json"),
    ("compose", "no place", "--as", "alice"),
    ("import", "no-such-file.jsonl"),
    ("--help",),
)
HISTORY: Final = (
    {"type": "message", "id": "h1", "at": "2026-04-01T08:00:00Z", "room": "old", "user": "alice", "text": "zqold plan",
     "workspace": "acme"},
    {"type": "message", "id": "h2", "at": "2026-04-01T08:01:00Z", "room": "old", "user": "bob", "text": "zqolder plan",
     "workspace": "acme"},
)  # fmt: skip


class Echo(ModelServer):
    """A model that says how many lines it was sent, and every word of the script that begins with zq."""

    def reply(self, body: Any) -> Say:
        texts = "\n".join(str(message["content"]) for message in body["messages"])
        words = sorted(set(re.findall(r"zq[a-z]+", texts)))
        return Say((f"I was told {' '.join(words) or 'nothing'}",))


async def record_play(servers: Servers, folder: Path, recorder: Recorder) -> None:
    """Run the command line on one database: a script, questions, an import, and what is told of it."""
    home = folder / "play"
    home.mkdir(mode=0o755)
    async with clone(servers.database_url, "goldenplay") as url, Echo() as model:
        settings = {
            "NEXUS_HOME": str(home / "data"),
            "NEXUS_DATABASE_URL": str.__str__(url),
            "NEXUS_REDIS_URL": servers.redis_url + "?db=6",
            "NEXUS_OPENAI_BASE_URL": model.url,
            "NEXUS_OPENAI_API_KEY": "sk-test",
            "NEXUS_CONFIG": str(home / "nexus.toml"),
        }
        (home / "nexus.toml").write_text('extraction = "pattern"\n\n[[agents]]\nmodel = "gpt-4o"\n', encoding="utf-8")
        program = Program(home, settings)
        steps = [await _run(program, model, "play", str(program.script(*SCRIPT)), "--json")]
        batch = program.script(*({**each, **THERE} for each in QUESTIONS), name="questions.jsonl")
        steps.append(await _run(program, model, "compose", "--batch", str(batch)))
        for question in QUESTIONS:
            place = ["--room", question["room"]] if "room" in question else ["--dm", question["dm"]]
            words = ["compose", question["text"], "--as", question["user"], *place, "--workspace", "acme", "--json"]
            steps.append(await _run(program, model, *words))
        history = program.script(*HISTORY, name="history.jsonl")
        steps.append(await _run(program, model, "import", str(history), "--json"))
        for then in THEN:
            steps.append(await _run(program, model, *then))
        for number, step in enumerate(steps):
            step["id"] = f"{number:02} {step['input'][0]}"
        await add_all(steps, Names(ahead=True), str.__str__(url), recorder)


async def _run(program: Program, model: Echo, *words: str) -> dict[str, Any]:
    before = len(model.requests)
    ran = await asyncio.to_thread(program.run, *words)
    out = [_parsed(line.replace(str(program.folder), "<home>")) for line in ran.out.splitlines()]
    if words[0] == "audit":  # of what happened in one moment, which is first is made up by chance
        out = unordered(out)
    asked = [each.body for each in model.requests[before:]]
    told = [word.replace(str(program.folder), "<home>") for word in words]
    sentences = [line.replace(str(program.folder), "<home>") for line in ran.sentences]
    return {"input": told, "came": {"status": ran.status, "out": out, "err": sentences, "asked": asked}}


def _parsed(line: str) -> Any:
    try:
        found = json.loads(line)
    except ValueError:
        return line
    if isinstance(found, dict) and "timings_ms" in found:
        found["timings_ms"] = sorted(found["timings_ms"])
    return found
