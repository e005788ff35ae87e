"""The sections of a prompt and their sources, as the terminal shows them: a table, or lines where it has no room."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from bot.commands.explaining import reasons_sentence, sources_phrase
from bot.console.render import plain, wrapped
from composer.prompt.explain import ExplainedSection, ExplainedSource


def explained(sections: Sequence[ExplainedSection]) -> Table:
    """The sections of a prompt as a table: the sources of each, with their layer and score."""
    table = Table(show_lines=False, pad_edge=False)
    table.add_column("section", no_wrap=True)
    table.add_column("tokens", justify="right", no_wrap=True)
    table.add_column("source", ratio=3)
    table.add_column("from", no_wrap=True, max_width=28)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("because", ratio=1)
    for section in sections:
        shown = [source for source in section.sources if source.text]
        sources = "" if shown else ", ".join(sources_phrase(section))
        table.add_row(Text(section.name, style="bold"), str(section.tokens), sources, "", "", "")
        for source in shown:
            because = _because(source)
            table.add_row(
                "",
                "",
                Text(plain(source.text)),
                Text(plain(", ".join(source.messages) or source.layer)),
                "" if source.score is None else f"{source.score:.3f}",
                plain(because),
            )
    return table


def stacked(sections: Sequence[ExplainedSection], width: int) -> str:
    """The same in lines of at most `width` characters, for a terminal in which the table has no room."""
    lines = []
    for section in sections:
        shown = [source for source in section.sources if source.text]
        phrase = () if shown else sources_phrase(section)
        lines.append(f"{section.name}: {', '.join((f'{section.tokens:,} tokens', *phrase))}")
        for source in shown:
            lines.append(f"  {plain(source.text)}")
            details = (
                f"from {', '.join(source.messages) or source.layer}",
                "" if source.score is None else f"score {source.score:.3f}",
                _because(source),
            )
            lines.append(f"    {'; '.join(each for each in details if each)}")
    return wrapped("\n".join(lines), width)


def _because(source: ExplainedSource) -> str:
    """Whether a source is in the answer, where it came from, and why it was recalled."""
    said = "in the answer" if source.cited else ""
    return plain("; ".join(each for each in (said, source.came_from, reasons_sentence(source.reasons)) if each))
