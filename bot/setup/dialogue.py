"""The questions of `nexus setup` in a terminal. Each answer is checked at once, and can be typed again."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import typer
from tzlocal import get_localzone_name

from bot.setup import answers as given
from bot.setup.answers import Answers, require_one_line
from bot.setup.checks import Checked, check_address, check_discord, check_model, check_slack
from bot.setup.organisations import WORKSPACE, organised, workspaces_of
from composer.errors import BadInput, NexusError
from composer.settings import Settings
from composer.text.zones import zone_named, zone_of_text

MANIFEST_FILE: Final = Path(__file__).parents[1] / "slack" / "manifest.yaml"
SLACK_APPS: Final = "https://api.slack.com/apps"
DISCORD_APPS: Final = "https://discord.com/developers/applications"
AGAIN, KEEP, SKIP = "again", "keep", "skip"

Check = Callable[[Settings], Coroutine[Any, Any, Checked]]


def slack_app_link() -> str:
    """The address at which Slack makes the app from our manifest."""
    lines = MANIFEST_FILE.read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    return f"{SLACK_APPS}?new_app=1&manifest_yaml={quote(text, safe='')}"


def ask_home(default: Path) -> Path:
    """Ask for the data folder."""
    return Path(typer.prompt("Data folder (messages, database, keys)", default=str(default))).expanduser().absolute()


class Dialogue:
    """Asks for the time zone, the model, Discord and Slack. `say` shows a sentence and whether it is good news (None:
    neither); `run` runs one check; `hide` gets each secret that is typed."""

    def __init__(
        self,
        say: Callable[[str, bool | None], None],
        run: Callable[[Check, Settings], Checked],
        hide: Callable[[str], None],
    ) -> None:
        self._say, self._run, self._hide = say, run, hide
        self._connected: list[str] = []  # servers and workspaces that the checks have named

    def ask_timezone(self, known: Answers) -> Answers:
        """Ask for the zone in which "tomorrow at 9" is meant; this machine's is offered."""
        here = get_localzone_name()
        here = here if here and zone_named(here) else "UTC"
        while True:
            typed = self._ask("Time zone (Europe/Berlin, or a city)", known.timezone or here)
            try:
                return replace(known, timezone=zone_of_text(typed))
            except BadInput as error:
                self._say(str(error), False)

    def ask_model(self, known: Answers) -> Answers:
        """Ask for the base URL, the key and the name of the model."""
        self._say(
            "The model: any server with an OpenAI-compatible API. Without one Nexus quotes what it remembers.", None
        )

        def ask(before: Answers) -> Answers:
            url = self._ask_base_url(before)
            if url is None:
                return replace(before, base_url=None, model=None, secrets=_without(before.secrets, given.API_KEY))
            secrets = self._ask_secret(before.secrets, given.API_KEY, "API key")
            name = self._ask("Name of the model", before.model or "")
            return replace(before, base_url=url, model=name or None, secrets=secrets)

        skipped = replace(known, base_url=None, model=None, secrets=_without(known.secrets, given.API_KEY))
        return self._checked(known, ask, check_model, skipped)

    def _ask_base_url(self, known: Answers) -> str | None:
        """Ask for the base URL until a server answers there, or until it is kept in spite of that. None: offline."""
        while True:
            url = self._ask("Base URL (- for offline)", known.base_url or "-")
            if url == "-":
                return None
            checked = self._checked_once(check_address, replace(known, base_url=url))
            if checked.ok:
                return url
            choice = self._choice()
            if choice == KEEP:
                return url
            if choice == SKIP:
                return None

    def ask_discord(self, known: Answers) -> Answers:
        """Ask for the token of the Discord bot, and show the invitation."""
        self._say(f"Discord: make an application at {DISCORD_APPS}; under Bot, copy its token and switch on", None)
        self._say("Message Content Intent and Server Members Intent (docs/discord.md).", None)

        def ask(before: Answers) -> Answers:
            return replace(before, secrets=self._ask_secret(before.secrets, given.DISCORD_TOKEN, "Discord token"))

        return self._checked(
            known, ask, check_discord, replace(known, secrets=_without(known.secrets, given.DISCORD_TOKEN))
        )

    def ask_slack(self, known: Answers) -> Answers:
        """Ask for the two tokens of the Slack app, and before the first time, whether there is to be one."""
        names = (given.SLACK_BOT_TOKEN, given.SLACK_APP_TOKEN, given.SLACK_SIGNING_SECRET)
        if known.secrets.keys().isdisjoint(names) and not typer.confirm("Connect Slack?", default=False):
            return known
        self._say(f"Slack: at {SLACK_APPS} press Create New App, From a manifest, and paste this file", None)
        self._say(f"(docs/slack.md): {MANIFEST_FILE}", None)
        self._say("nexus setup --slack-link prints a link that does the same, to open in a browser.", None)

        def ask(before: Answers) -> Answers:
            secrets = self._ask_secret(before.secrets, given.SLACK_BOT_TOKEN, "Bot token (xoxb-…)")
            if given.SLACK_BOT_TOKEN in secrets:
                secrets = self._ask_secret(secrets, given.SLACK_APP_TOKEN, "App token (xapp-…)")
            return replace(before, secrets=secrets)

        return self._checked(known, ask, check_slack, replace(known, secrets=_without(known.secrets, *names)))

    def ask_organisations(self, known: Answers) -> Answers:
        """Ask which servers and workspaces are one organisation. Nothing is asked while no platform is connected."""
        if known.secrets.keys().isdisjoint((given.DISCORD_TOKEN, given.SLACK_BOT_TOKEN)):
            return known
        self._say(
            "Each server and workspace is an organisation with a memory of its own. Put those that are to share one",
            None,
        )
        self._say(
            "memory under one name, before Nexus first connects to them: one that is added later starts afresh.", None
        )
        for name, workspaces in known.organisations.items():
            self._say(f"{name}: {' '.join(workspaces)}", None)
        while name := self._ask("Name of an organisation (Enter: as it is)", ""):
            listed = (*known.organisations.get(name, ()), *dict.fromkeys(self._connected))
            typed = self._ask("Its servers and workspaces", " ".join(dict.fromkeys(listed)))
            try:
                wanted = organised(known.organisations, name, workspaces_of(typed.split()))
                known = replace(known, organisations=wanted)
            except BadInput as error:
                self._say(str(error), False)
        return known

    def _checked(
        self,
        known: Answers,
        ask: Callable[[Answers], Answers],
        check: Check,
        skipped: Answers,
    ) -> Answers:
        """The answers once the check passes, or once they are kept or skipped in spite of it."""
        while True:
            found = ask(known)
            checked = self._checked_once(check, found)
            if checked.link:
                self._say(f"Invite the bot to your server: {checked.link}", None)
            if checked.ok:
                return found
            choice = self._choice()
            if choice == KEEP:
                return found
            if choice == SKIP:
                return skipped

    def _checked_once(self, check: Check, answers: Answers) -> Checked:
        """Run one check, and say what it found."""
        try:
            checked = self._run(check, answers.checked())
        except NexusError as error:
            checked = Checked(((False, str(error)),))
        for passed, sentence in checked.found:
            self._say(sentence, passed)
            self._connected += WORKSPACE.findall(sentence)
        return checked

    def _choice(self) -> str:
        """What to do about an answer that does not work; asked until it is one of the three."""
        while True:
            typed = typer.prompt(f"Type it {AGAIN}, {KEEP} it as it is, or {SKIP} this", default=AGAIN).strip().lower()
            for choice in (AGAIN, KEEP, SKIP):
                if typed in (choice, choice[0]):
                    return choice
            self._say(f"Answer {AGAIN}, {KEEP} or {SKIP}.", False)

    def _ask(self, question: str, default: str) -> str:
        return require_one_line(question, typer.prompt(question, default=default, show_default=bool(default)))

    def _ask_secret(self, known: Mapping[str, str], name: str, question: str) -> dict[str, str]:
        """The secrets with what is typed, unseen, for one of them. Nothing typed leaves it; - takes it out."""
        hint = "Enter keeps the one that is set, - takes it out" if name in known else "Enter for none"
        typed = require_one_line(
            question, typer.prompt(f"{question} ({hint})", default="", hide_input=True, show_default=False)
        )
        if typed == "-":
            return _without(known, name)
        if typed:
            self._hide(typed)
            return {**known, name: typed}
        return dict(known)


def _without(secrets: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in secrets.items() if name not in names}
