"""`nexus usage`: what models were used for, with tokens and cost."""

from functools import partial
from typing import Annotated

import typer

from bot.console import render
from bot.console import usage as reporting
from bot.console.cli.invocation import Json, load_settings, print_json, read_or_fail, run_in_app
from composer.app import App
from composer.repositories.usage import Dimension
from composer.text.dates.named import day_or_words

cli = typer.Typer()


@cli.command()
def usage(
    by: Annotated[Dimension, typer.Option("--by", help="What to show it by.")] = Dimension.DAY,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="DAY",
            help="From this day on (2026-05-01, yesterday, monday); default: the first of this month.",
        ),
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="DAY", help="Until the end of this day.")] = None,
    json_lines: Json = False,
) -> None:
    """Show what models were used for, with tokens, cost and budgets. Days are those of each tenant's time zone."""
    settings = load_settings()
    for day in filter(None, (since, until)):
        read_or_fail(partial(day_or_words, day))

    async def show(app: App) -> None:
        empty = True
        async for found in reporting.usage(app, by, since, until):
            empty = False
            if json_lines:
                for row in reporting.as_json(found, app, by):
                    print_json(row)
            else:
                render.show(reporting.text(found, app, by))
        if empty and not json_lines:
            render.show("No call of a model is recorded in this time.")

    run_in_app(settings, show, index=False)
