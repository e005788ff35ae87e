"""`nexus usage`: what models were used for, with tokens and cost."""

from datetime import date
from typing import Annotated

import typer

from bot.console import render
from bot.console import usage as reporting
from bot.console.cli.failing import fail
from bot.console.cli.invocation import Json, load_settings, print_json, read_or_fail, run_in_app
from composer.app import App
from composer.errors import BadInput
from composer.moments import day_of
from composer.repositories.usage import Dimension

cli = typer.Typer()


@cli.command()
def usage(
    by: Annotated[Dimension, typer.Option("--by", help="What to show it by.")] = Dimension.DAY,
    since: Annotated[
        str | None, typer.Option("--since", metavar="DAY", help="From this day on; default: the first of this month.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="DAY", help="Until the end of this day.")] = None,
    json_lines: Json = False,
) -> None:
    """Show what models were used for, with tokens, cost and budgets. Days are those of each tenant's time zone."""
    settings = load_settings()
    first, last = _day(since), _day(until)
    if first is not None and last is not None and last < first:
        fail(BadInput(f"--until {last} is before --since {first}: exchange them."))

    async def show(app: App) -> None:
        empty = True
        async for found in reporting.usage(app, by, first, last):
            empty = False
            if json_lines:
                for row in reporting.as_json(found, app, by):
                    print_json(row)
            else:
                render.show(reporting.text(found, app, by))
        if empty and not json_lines:
            render.show("No call of a model is recorded in this time.")

    run_in_app(settings, show, index=False)


def _day(text: str | None) -> date | None:
    return None if text is None else read_or_fail(lambda: day_of(text))
