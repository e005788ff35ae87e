"""Draw vectors in two dimensions: the plane in which they differ most (their two principal components). Pure."""

from collections.abc import Sequence
from typing import Final

import numpy as np

HEADER: Final = 4  # bytes before the numbers of a vector, as the database sends it
WIDEST: Final = 2.5  # standard deviations from the middle to the border: what lies further stands on it
DIGITS: Final = 4
ALIKE: Final = 1e-9  # deviation of vectors that are the same


def in_two_dimensions(vectors: Sequence[bytes]) -> list[tuple[float, float]]:
    """Where each of some vectors of one width lies, from 0 to 1 in both directions. The same vectors in the same order
    always give the same places."""
    rows = np.stack([np.frombuffer(each, dtype=">f4", offset=HEADER) for each in vectors]).astype(np.float64)
    rows -= rows.mean(axis=0)
    _, axes = np.linalg.eigh(rows.T @ rows)  # the last ones are those in which the rows differ most
    axes = axes[:, ::-1][:, :2]
    # The largest number of each axis is positive, else signs are anybody's guess.
    axes = axes * np.sign(axes[np.argmax(np.abs(axes), axis=0), np.arange(axes.shape[1])])
    places = rows @ axes
    deviation = float(places.std(axis=0).max())
    places = places / deviation if deviation > ALIKE else np.zeros_like(places)  # one scale for both axes
    found = 0.5 + np.clip(places, -WIDEST, WIDEST) / (2 * WIDEST)
    return [(round(float(x), DIGITS), round(float(y), DIGITS)) for x, y in found]
