"""The commands of the program: the file of this folder that has each, and what it does in a line.

Help and completion show these lines without loading the commands: that takes ten times as long as all else they do.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class CommandSummary:
    """A command or a group of commands. `summary`: the first paragraph of its help, to the letter."""

    file: str
    summary: str


CONTENTS: Final = {
    "setup": CommandSummary(
        "setup", "Connect a model, Discord and Slack: ask for each, check it at once, and write the settings."
    ),
    "chat": CommandSummary("talk", "Talk to the agent in the terminal."),
    "web": CommandSummary("web", "Open the web pages on this machine, and print a link that signs a user in."),
    "play": CommandSummary(
        "talk", "Play a script of events through the same pipeline as every platform, with the script's clock."
    ),
    "compose": CommandSummary(
        "talk", "Show the prompt that would be sent, with its sources and timings. Stores nothing."
    ),
    "import": CommandSummary(
        "history",
        "Load history from files. Nothing is answered, and importing again changes nothing. "
        "List imports, and undo one.",
    ),
    "run": CommandSummary(
        "service",
        "Serve until stopped. Without options: every configured platform, and the scheduled jobs. "
        "The web port is opened\n"
        "with --web, or where NEXUS_WEB_HOST or NEXUS_WEB_PORT is set; --web prints a link for the first admin, until\n"
        "one has signed in.",
    ),
    "migrate": CommandSummary("service", "Bring the database's schema up to date."),
    "doctor": CommandSummary(
        "service", "Check everything that Nexus needs; print what is wrong and what to do about it."
    ),
    "admin": CommandSummary(
        "service",
        "Make a user an admin of a workspace, who changes its settings, "
        "writes for all, and erases people and projects.",
    ),
    "backup": CommandSummary("stored", "Write a backup of everything. Nexus may run meanwhile."),
    "export": CommandSummary(
        "stored", "Write all that is one user's into a JSON file that only you may read (docs/export.md)."
    ),
    "replay": CommandSummary(
        "stored",
        "Compose an answer's prompt again as of then, and say where and why it differs. Shows no text, stores nothing.",
    ),
    "restore": CommandSummary("stored", "Restore a backup into an empty data folder or database."),
    "reembed": CommandSummary(
        "stored",
        "Embed everything again with the embedder of NEXUS_EMBEDDER, or the default, while Nexus serves with the old.",
    ),
    "usage": CommandSummary(
        "usage",
        "Show what models were used for, with tokens, cost and budgets. Days are those of each tenant's time zone.",
    ),
    "mcp": CommandSummary(
        "memory",
        "Serve one memory to one AI tool over standard input and output (MCP). "
        "The key in NEXUS_KEY says whose, and which\n"
        "tool. Tools start this program themselves: docs/mcp.md shows what to write into their settings.",
    ),
    "jobs": CommandSummary("jobs", "List and run the scheduled jobs."),
    "audit": CommandSummary("audit", "Show and verify the audit log."),
    "keys": CommandSummary("keys", "Make, list and revoke the keys to people's memories."),
    "login": CommandSummary("login", "Make a link that signs a person in to the web pages, once, within five minutes."),
}
