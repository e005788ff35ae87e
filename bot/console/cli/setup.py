"""`nexus setup`: ask for what Nexus needs, check it, and write the settings."""

import getpass
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from bot.console import render
from bot.console.cli.failure import EXIT_FAILED, fail, unusable
from bot.console.cli.invocation import finish, read_or_fail
from bot.console.hardening import make_private, mask_output
from bot.setup import files, weights
from bot.setup.answers import API_KEY, SECRETS, Answers, stored_answers
from bot.setup.organisations import organised, workspaces_of
from composer.errors import BadInput, NexusError
from composer.settings import MIN_SECRET_CHARS, Settings, environment
from composer.settings.secrets_file import parse_secrets

cli = typer.Typer()


@cli.command()
def setup(
    home: Annotated[Path | None, typer.Option("--home", metavar="FOLDER", help="The data folder.")] = None,
    base_url: Annotated[
        str | None, typer.Option("--base-url", metavar="URL", help="The address of an OpenAI-compatible API.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", metavar="NAME", help="The model that answers.")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Use no model: Nexus quotes what it remembers.")] = False,
    timezone: Annotated[
        str | None,
        typer.Option("--timezone", metavar="ZONE", help="The zone in which times are meant, such as Europe/Berlin."),
    ] = None,
    secrets: Annotated[
        Path | None,
        typer.Option(
            "--secrets",
            metavar="FILE",
            help="Read keys and tokens from this file of NAME=value lines; - reads them here.",
        ),
    ] = None,
    systemd: Annotated[
        Path | None, typer.Option("--systemd", metavar="FILE", help="Also write a systemd unit that runs Nexus.")
    ] = None,
    compose: Annotated[
        Path | None,
        typer.Option(
            "--compose", metavar="FOLDER", help="Set up docker-compose.yml in this folder instead, by its .env."
        ),
    ] = None,
    with_weights: Annotated[
        bool | None,
        typer.Option("--weights/--no-weights", help="Only load the weights of the embedder; or leave them out."),
    ] = None,
    organisation: Annotated[
        str | None,
        typer.Option("--organisation", metavar="NAME", help="Only put each --workspace into this organisation."),
    ] = None,
    workspace: Annotated[
        list[str] | None,
        typer.Option(
            "--workspace",
            metavar="ID",
            help="A workspace or server, such as slack:T0123ABCD. Without --organisation: make it one by itself.",
        ),
    ] = None,
    slack_link: Annotated[
        bool, typer.Option("--slack-link", help="Only print the link that makes the Slack app, which is long.")
    ] = False,
    unchecked: Annotated[bool, typer.Option("--unchecked", help="Ask neither the model nor a platform.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing: use the options, and what is set already.")] = False,
) -> None:
    """Connect a model, Discord and Slack: ask for each, check it at once, and write the settings.

    Keys and tokens are typed unseen. Without a terminal they come from the environment (NEXUS_…) or from --secrets.
    It can be run again: what is set already is offered, and nothing is overwritten before you have seen what differs.
    """
    if with_weights:
        _load_weights()
        return
    if slack_link:
        from bot.setup.dialogue import slack_app_link  # noqa: PLC0415 - brings the SDKs

        typer.echo(slack_app_link())
        return
    asking = sys.stdin.isatty() and not yes
    if not asking and not yes:
        fail(BadInput("Without a terminal give the answers as options (nexus setup --help), and --yes."))
    if organisation is not None or workspace:
        _organise(home, organisation, workspace or [], asking)
        return
    if offline and (base_url or model):
        fail(BadInput("Give either --offline, or --base-url and --model."))
    known = read_or_fail(lambda: _known(home, secrets))
    _hide(known)
    if offline:
        kept = {name: value for name, value in known.secrets.items() if name != API_KEY}
        known = replace(known, base_url=None, model=None, secrets=kept)
    known = replace(
        known, base_url=base_url or known.base_url, model=model or known.model, timezone=timezone or known.timezone
    )
    if model and not (known.base_url or API_KEY in known.secrets):  # with a key alone it is OpenAI's
        fail(BadInput("Give --base-url with --model, such as https://api.openai.com/v1: no server is set yet."))
    answers = _asked(known, home is None, not (offline or base_url or model)) if asking else known
    _hide(answers)
    if not asking and not unchecked:
        _check_all(answers)
    planned = read_or_fail(lambda: _planned(answers, systemd, compose))
    _confirm_and_write(answers, planned, asking)
    if compose is None and with_weights is None and _wants_weights(asking):
        _load_weights()
    if answers.base_url is None:
        _warn_of_environment()
    _say_what_is_next(answers, systemd, compose)


def _organise(home: Path | None, name: str | None, workspaces: Sequence[str], asking: bool) -> None:
    """Put workspaces into an organisation, or take them out of any, and change nothing else."""
    if not workspaces:
        fail(BadInput("Give --workspace with --organisation, once for each, such as slack:T0123ABCD."))
    known = read_or_fail(lambda: _known(home, None))
    wanted = read_or_fail(lambda: organised(known.organisations, name, workspaces_of(workspaces)))
    answers = replace(known, organisations=wanted)
    _confirm_and_write(answers, [read_or_fail(lambda: files.planned_organisations(answers))], asking)
    render.next_step("nexus doctor says whether memory lies elsewhere now; Nexus heeds it once it starts again.")


def _warn_of_environment() -> None:
    """Say which variables of the environment keep Nexus from being offline: no file can take those out."""
    for name in (API_KEY, "NEXUS_OPENAI_BASE_URL"):
        if environment().get(name, "").strip():
            _say(f"{name} is set in the environment, where it counts before all files: unset it to be offline.", False)


def _known(home: Path | None, secrets: Path | None) -> Answers:
    """What is set already, with the secrets that are handed in."""
    variables = environment()
    if home is not None:
        variables["NEXUS_HOME"] = str(home.expanduser().absolute())
    known = stored_answers(variables, Path.cwd())
    if secrets is None:
        return known
    try:
        text = sys.stdin.read() if str(secrets) == "-" else secrets.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{secrets} is not UTF-8 text.") from error
    except OSError as error:
        raise BadInput(f"{secrets} cannot be read: {error.strerror or error}.") from error
    given = parse_secrets(text, str(secrets))
    for name in given:
        if name not in SECRETS:
            raise BadInput(f"{name} is none of the secrets that setup knows: {', '.join(SECRETS)}.")
    return replace(known, secrets={**known.secrets, **{name: value for name, value in given.items() if value}})


def _asked(known: Answers, ask_home: bool, ask_model: bool) -> Answers:
    from bot.setup import dialogue as questions  # noqa: PLC0415 - brings the SDKs

    if ask_home:
        chosen = questions.ask_home(known.home)
        if chosen != known.home:
            there, given = read_or_fail(lambda: _known(chosen, None)), known.secrets
            known = replace(there, secrets={**there.secrets, **given})
            _hide(known)
    dialogue = questions.Dialogue(_say, lambda check, settings: finish(check(settings)), _hide_typed)
    steps: list[Callable[[Answers], Answers]] = [dialogue.ask_discord, dialogue.ask_slack, dialogue.ask_organisations]
    for step in [dialogue.ask_timezone, *([dialogue.ask_model] if ask_model else []), *steps]:
        answers = known
        known = read_or_fail(lambda step=step, answers=answers: step(answers))  # type: ignore[misc]
    return known


def _hide(answers: Answers) -> None:
    """Show these secrets nowhere. An answer that is no setting is reported when it is checked."""
    for value in answers.secrets.values():
        _hide_typed(value)
    try:
        mask_output(answers.checked().secrets)
    except NexusError:
        return


def _hide_typed(secret: str) -> None:
    """Show a secret nowhere. One that is as short as a word is none, and would mask parts of our own sentences."""
    if len(secret) >= MIN_SECRET_CHARS:
        mask_output({secret})


def _check_all(answers: Answers) -> None:
    """Ask the model and the platforms. Ends the program, with nothing written, when an answer doesn't work."""
    from bot.setup.checks import check_all  # noqa: PLC0415 - brings the SDKs

    settings: Settings = read_or_fail(answers.checked)
    checked = finish(check_all(settings))
    for each in checked:
        for passed, sentence in each.found:
            _say(sentence, passed)
        if each.link:
            _say(f"Invite the bot to your server: {each.link}", None)
    if not all(each.ok for each in checked):
        render.next_step("correct what stands beside each ✗ and give the command again. Nothing was written.")
        raise typer.Exit(EXIT_FAILED)


def _planned(answers: Answers, systemd: Path | None, compose: Path | None) -> list[files.PlannedFile]:
    if compose is not None:
        return files.planned_compose(answers, compose)
    planned = files.planned_settings(answers)
    if systemd is not None:
        user = "" if os.geteuid() == 0 else getpass.getuser()
        planned.append(files.planned_unit(answers, systemd.absolute(), user))
    return planned


def _confirm_and_write(answers: Answers, planned: list[files.PlannedFile], asking: bool) -> None:
    for file in planned:
        if not file.changes:
            _say(f"{file.path}: nothing changes", None)
            continue
        _say(f"{file.path}:" if file.old is not None else f"{file.path} (new):", None)
        render.show(file.difference())
    if not any(file.changes for file in planned):
        return
    if asking and not typer.confirm("Write this?", default=True):
        render.next_step("nothing was written; nexus setup asks again.")
        raise typer.Exit(EXIT_FAILED)
    try:
        make_private(answers.home)
        files.write(planned)
    except OSError as error:
        fail(unusable(error))


def _wants_weights(asking: bool) -> bool:
    if weights.are_installed():
        return False
    return not asking or typer.confirm(f"Load the weights of the embedder now ({weights.SIZE})?", default=True)


def _load_weights() -> None:
    if not weights.are_installed():
        read_or_fail(weights.install)
    _say("the weights of the embedder are here", True)


def _say_what_is_next(answers: Answers, systemd: Path | None, compose: Path | None) -> None:
    if compose is not None:
        render.next_step(f"in {compose.absolute()}: docker compose up --build -d")
        return
    named = environment().get("NEXUS_HOME", "")
    default = read_or_fail(lambda: stored_answers({**environment(), "NEXUS_HOME": named}, Path.cwd())).home
    if answers.home != default:
        render.next_step(
            f"export NEXUS_HOME={shlex.quote(str(answers.home))}, so that every command finds this folder."
        )
    if systemd is not None:
        unit = shlex.quote(str(systemd.absolute()))
        name = systemd.name
        render.next_step(
            f"sudo cp {unit} /etc/systemd/system/ && sudo systemctl daemon-reload && sudo systemctl enable --now {name}"
        )
        return
    platforms = answers.secrets.keys() & {"NEXUS_DISCORD_TOKEN", "NEXUS_SLACK_BOT_TOKEN"}
    then = "nexus run serves" if platforms else "nexus chat talks to the agent here"
    render.next_step(f"nexus doctor checks everything, then {then}.")


def _say(sentence: str, passed: bool | None) -> None:
    sign, style = {True: ("✓ ", "green"), False: ("✗ ", "bold red"), None: ("", "")}[passed]
    render.show(f"{sign}{sentence}", style=style)
