"""`nexus jobs`: list and run the scheduled jobs."""

from typing import Annotated

import typer

from bot.console import render, schedule
from bot.console.cli.failure import EXIT_FAILED
from bot.console.cli.invocation import Json, load_settings, print_json, read_or_fail, run_in_app
from bot.console.play import ScriptClock
from composer.app import App
from composer.text.moments import moment_of

cli = typer.Typer(name="jobs", help="List and run the scheduled jobs.", no_args_is_help=True)


@cli.command("list")
def jobs_list(json_lines: Json = False) -> None:
    """List the jobs with their schedule and their last run."""
    settings = load_settings()

    async def show(app: App) -> None:
        for entry in await schedule.listed(app):
            if json_lines:
                print_json(entry)
            else:
                render.show(schedule.line(entry))

    run_in_app(settings, show, index=False)


@cli.command("run")
def jobs_run(
    name: Annotated[str, typer.Argument(help="The job's name; nexus jobs list shows them.")],
    at: Annotated[str | None, typer.Option("--at", help="Run it as of this time (ISO 8601 with a time zone).")] = None,
    json_lines: Json = False,
) -> None:
    """Run one job now, or as of another time. Running it twice changes nothing."""
    settings = load_settings()
    when = read_or_fail(lambda: None if at is None else moment_of(at))

    async def run(app: App) -> None:
        with render.progress(name) as bar:
            task = bar.add_task("", total=None)
            outcome = await schedule.run(app, name, when or app.clock.now(), lambda done, _: bar.advance(task, done))
        if json_lines:
            print_json(schedule.as_json(outcome))
        else:
            figures = f"{outcome.done:,} done, {outcome.failed:,} failed"
            render.show(
                f"{name}: {outcome.state}, {figures}" + (f"; {outcome.message}" if outcome.message else "") + "."
            )
            if outcome.state == "failed":
                render.next_step("nexus doctor says what is wrong; then run the job again.")
        if outcome.state != "done":
            raise typer.Exit(EXIT_FAILED)

    run_in_app(settings, run, index=False, **({"clock": ScriptClock(when)} if when else {}))
