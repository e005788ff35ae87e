"""The files that `nexus setup` writes: what would change in each, and all of them at once."""

import difflib
import json
import secrets
import sys
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bot.setup.answers import SECRETS, Answers
from bot.setup.organisations import set_organisations
from composer.errors import BadInput, Misconfigured
from composer.settings import SECRETS_NAME, private_files
from composer.settings.secrets_file import format_secrets, parse_secrets

COMPOSE_FILE: Final = "docker-compose.yml"
COMPOSE_SECRETS: Final = ".env"
PASSWORDS: Final = ("POSTGRES_PASSWORD", "SERVICE_PASSWORD")  # of the servers in docker-compose.yml
HEADER: Final = "# Settings of Nexus, as nexus setup wrote them. docs/settings.md lists all that can be set.\n"
SECRETS_HEADER: Final = "# Secrets of Nexus, as nexus setup wrote them. Only their owner may read them.\n"
UNIT: Final = """\
# Written by nexus setup.
[Unit]
Description=Nexus, an agent for Discord and Slack that remembers
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
{user}Environment={home}
{config}WorkingDirectory={folder}
ExecStart={command} run
Restart=on-failure
# A setting that is wrong stays wrong.
RestartPreventExitStatus=2
# Nexus finishes its answers and stops the servers that it has started itself.
KillMode=mixed
TimeoutStopSec=90
UMask=0077
NoNewPrivileges=true

[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file that is to be written. `old` is None where there is none; of a `secret` one no value is shown."""

    path: Path
    old: str | None
    new: str
    secret: bool = False

    @property
    def changes(self) -> bool:
        """Whether writing it changes anything."""
        return self.old != self.new

    def difference(self) -> str:
        """What would change, in lines. Of a file of secrets, the names alone."""
        if self.secret:
            return "\n".join(self._changed_names())
        before = (self.old or "").splitlines()
        return "\n".join(
            line
            for line in difflib.unified_diff(before, self.new.splitlines(), n=1, lineterm="")
            if not line.startswith(("---", "+++", "@@"))
        )

    def _changed_names(self) -> list[str]:
        before, after = parse_secrets(self.old or "", str(self.path)), parse_secrets(self.new, str(self.path))
        signs = []
        for name in sorted({*before, *after}):
            if name not in before:
                signs.append(f"+{name}=(not shown)")
            elif name not in after:
                signs.append(f"-{name}")
            elif before[name] != after[name]:
                signs.append(f"+{name}=(another value, not shown)")
        return signs


def planned_settings(answers: Answers) -> list[PlannedFile]:
    """nexus.toml and secrets.env with these answers; what else stands in them is left as it is.

    Raises Misconfigured or BadInput for a file or an answer that can't be written.
    """
    old = _read(answers.config)
    settings = {"openai_base_url": answers.base_url, "model": answers.model, "timezone": answers.timezone}
    stored = {"openai_api_key", "discord_token", "slack_bot_token", "slack_app_token", "slack_signing_secret"}
    moved = stored & set(tomllib.loads(old or ""))  # the secrets have a file of their own
    new = set_keys(HEADER if old is None else old, settings | dict.fromkeys(moved), answers.config)
    new = set_organisations(new, answers.organisations, answers.config)
    path = answers.home / SECRETS_NAME
    secrets_before = _read(path)
    wanted: dict[str, str | None] = {**dict.fromkeys(SECRETS), **answers.secrets}
    text = set_variables(SECRETS_HEADER if secrets_before is None else secrets_before, wanted, path)
    found = [PlannedFile(answers.config, old, new)]
    if answers.secrets or secrets_before is not None:
        found.append(PlannedFile(path, secrets_before, text, secret=True))
    return found


def planned_organisations(answers: Answers) -> PlannedFile:
    """nexus.toml with the organisations of these answers, and as it is besides. Raises Misconfigured."""
    old = _read(answers.config)
    new = set_organisations(HEADER if old is None else old, answers.organisations, answers.config)
    return PlannedFile(answers.config, old, new)


def planned_compose(answers: Answers, folder: Path) -> list[PlannedFile]:
    """The `.env` beside docker-compose.yml in `folder`, with the answers and a password for each of its servers."""
    if not (folder / COMPOSE_FILE).is_file():
        raise BadInput(f"{folder} has no {COMPOSE_FILE}: name the folder of the checkout of Nexus.")
    path = folder / COMPOSE_SECRETS
    old = _read(path)
    stored = parse_secrets(old or "", str(path))
    passwords = {name: stored.get(name) or secrets.token_hex(24) for name in PASSWORDS}
    model = {
        "NEXUS_OPENAI_BASE_URL": answers.base_url,
        "NEXUS_MODEL": answers.model,
        "NEXUS_TIMEZONE": answers.timezone,
    }
    text = set_variables(
        SECRETS_HEADER if old is None else old,
        {**dict.fromkeys(SECRETS), **passwords, **model, **answers.secrets},
        path,
    )
    return [PlannedFile(path, old, text, secret=True)]


def planned_unit(answers: Answers, path: Path, user: str) -> PlannedFile:
    """A systemd unit that runs Nexus as `user` ("" for root)."""
    program = Path(sys.executable).with_name("nexus")
    command = [str(program)] if program.exists() else [sys.executable, "-m", "bot.console.main"]
    default = answers.config == answers.home / answers.config.name
    text = UNIT.format(
        user=f"User={user}\n" if user else "",
        home=_quoted(f"NEXUS_HOME={answers.home}"),
        config="" if default else f"Environment={_quoted(f'NEXUS_CONFIG={answers.config}')}\n",
        folder=str(answers.home).replace("%", "%%"),
        command=" ".join(_quoted(word) for word in command),
    )
    return PlannedFile(path, _read(path), text)


def write(files: Sequence[PlannedFile]) -> None:
    """Write them, readable by their owner alone: each complete, and none when one of them can't be written.

    Raises OSError.
    """
    with ExitStack() as opened:
        for file in files:
            if file.changes:  # each takes its name only once all are written
                opened.enter_context(private_files.replaced(file.path)).write(file.new.encode())


def set_keys(text: str, values: Mapping[str, object | None], where: Path) -> str:
    """A TOML text with these keys of its top level set to strings, or taken out (None); its other lines are kept.

    Raises Misconfigured when it is written in a way that this can't be done in.
    """
    lines = text.splitlines(keepends=True)
    head = next((number for number, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
    top = list(lines[:head])
    for key, value in values.items():
        line = "" if value is None else f"{key} = {json.dumps(value, ensure_ascii=False)}\n"
        places = [number for number, each in enumerate(top) if _name_of(each) == key]
        for number in places[:1]:
            top[number] = line
        if not places and line:
            top.append(line if not top or top[-1].endswith("\n") else f"\n{line}")
    new = "".join(top) + "".join(lines[head:])
    wanted = tomllib.loads(text) | dict(values)
    try:
        if tomllib.loads(new) == {key: value for key, value in wanted.items() if value is not None}:
            return new
    except tomllib.TOMLDecodeError:
        pass
    raise Misconfigured(
        f"{where} is written in a way that setup can't change: set {' and '.join(values)} in it yourself."
    )


def _name_of(line: str) -> str:
    """What stands before the first equals sign of a line."""
    return line.partition("=")[0].strip()


def set_variables(text: str, values: Mapping[str, str | None], where: Path) -> str:
    """A text of NAME=value lines with these set, or taken out (None); its other lines are kept. Raises BadInput."""
    stored = parse_secrets(text, str(where))
    lines = text.splitlines(keepends=True)
    for name, value in values.items():
        if value is not None and stored.get(name) == value:
            continue
        lines = [line for line in lines if _name_of(line) != name]
        if value is not None:
            lines += [*(["\n"] if lines and not lines[-1].endswith("\n") else []), format_secrets({name: value})]
    return "".join(lines)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise Misconfigured(f"{path} is not UTF-8 text.") from error


def _quoted(word: str) -> str:
    """A word of a unit file."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'
