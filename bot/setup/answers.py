"""What `nexus setup` was told, and what is set already."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bot.setup.organisations import Organisations, listed_in
from composer.errors import Misconfigured
from composer.settings import SECRETS_NAME, Settings, load_settings, read_table, settings_files
from composer.settings.secrets_file import read_secrets

API_KEY: Final = "NEXUS_OPENAI_API_KEY"
DISCORD_TOKEN: Final = "NEXUS_DISCORD_TOKEN"
SLACK_BOT_TOKEN: Final = "NEXUS_SLACK_BOT_TOKEN"
SLACK_APP_TOKEN: Final = "NEXUS_SLACK_APP_TOKEN"
SLACK_SIGNING_SECRET: Final = "NEXUS_SLACK_SIGNING_SECRET"
SECRETS: Final = (API_KEY, DISCORD_TOKEN, SLACK_BOT_TOKEN, SLACK_APP_TOKEN, SLACK_SIGNING_SECRET)


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers: the data folder, the `nexus.toml` in use, the model (None: offline), secrets by variable, the time
    zone in which days and hours are meant (None: UTC), and the organisations that are named."""

    home: Path
    config: Path
    base_url: str | None
    model: str | None
    secrets: Mapping[str, str]
    timezone: str | None = None
    organisations: Organisations = field(default_factory=dict)

    def checked(self) -> Settings:
        """The settings that these answers make. Raises Misconfigured for one that is wrong."""
        given = {"NEXUS_OPENAI_BASE_URL": self.base_url, "NEXUS_MODEL": self.model, "NEXUS_TIMEZONE": self.timezone}
        given |= self.secrets
        # An empty file in place of nexus.toml, whose other settings are no answers.
        fixed = {"NEXUS_HOME": str(self.home), "NEXUS_CONFIG": os.devnull}
        named = {name: value for name, value in given.items() if value}
        return load_settings(fixed | named, Path.cwd(), stored_secrets=False)  # those that stay are among the answers


def stored_answers(variables: Mapping[str, str], cwd: Path) -> Answers:
    """What is set already: in `variables`, in secrets.env and in nexus.toml. Raises Misconfigured for bad files."""
    home, config = settings_files(variables, cwd)
    table = read_table(config) if config.exists() else {}
    merged = read_secrets(home / SECRETS_NAME) | {key: value for key, value in variables.items() if value.strip()}

    def found(name: str) -> str | None:
        value = merged.get(name) or table.get(name.removeprefix("NEXUS_").lower())
        return value if isinstance(value, str) else None

    secrets = {name: value for name in SECRETS if (value := found(name))}
    url, model, zone = (found(name) for name in ("NEXUS_OPENAI_BASE_URL", "NEXUS_MODEL", "NEXUS_TIMEZONE"))
    return Answers(home, config, url, model, secrets, zone, listed_in(table))


def require_one_line(name: str, value: str) -> str:
    """An answer without spaces around it. Raises Misconfigured for what no setting can be."""
    text = value.strip()
    if not text.isprintable():
        raise Misconfigured(f"{name} has characters that can't be printed: copy it again.")
    return text
