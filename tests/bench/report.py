"""Figures and plain tables."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Report:
    """The results of one bench: tables to print, and the same data for a program."""

    name: str
    text: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    def table(self, title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Format a table with its first column aligned left and the others right."""
        cells = [list(head), *([_shown(cell) for cell in row] for row in rows)]
        widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
        lines = [
            "  ".join(
                cell.rjust(w) if n else cell.ljust(w) for n, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
            for row in cells
        ]
        self.text += [title, *(f"  {line.rstrip()}" for line in lines), ""]


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of the values does not exceed."""
    return float(np.quantile(values, share))
