"""Draw vectors in two dimensions: the plane in which they differ most (their two principal components). Pure."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
HEADER: Final = 4  # bytes before the numbers of a vector, as the database sends it
WIDEST: Final = 2.5  # standard deviations from the middle to the border: what lies further stands on it
DIGITS: Final = 4
ALIKE: Final = 1e-6  # deviation of vectors that are the same
# Of how many steps from two directions the plane is put together: it has all that the best one has of vectors with some
# order, and 99% of it of those without any.
STEPS: Final = 10


def in_two_dimensions(vectors: Sequence[bytes]) -> list[tuple[float, float]]:
    """Where each of some vectors of one width lies, from 0 to 1 in both directions. The same vectors in the same order
    always give the same places."""
    numbers = b"".join(each[HEADER:] for each in vectors)
    rows = np.frombuffer(numbers, dtype=">f4").reshape(len(vectors), -1).astype(np.float32)
    rows -= rows.mean(axis=0)
    axes = _axes(rows)
    # The largest number of each axis is positive, else signs are anybody's guess.
    axes = axes * np.sign(axes[np.argmax(np.abs(axes), axis=0), np.arange(axes.shape[1])])
    places = rows @ axes
    deviation = float(places.std(axis=0).max())
    places = places / deviation if deviation > ALIKE else np.zeros_like(places)  # one scale for both axes
    found = 0.5 + np.clip(places, -WIDEST, WIDEST) / (2 * WIDEST)
    return [(x, y) for x, y in found.astype(np.float64).round(DIGITS).tolist()]


def _axes(rows: Floats) -> Floats:
    """The two directions in which rows around 0 differ most, the first one first, as columns: by a block Krylov
    iteration (Musco and Musco, 2015) from directions that are always the same."""
    block: Floats = np.random.default_rng(0).standard_normal((rows.shape[1], 2), dtype=np.float32)
    found = list[Floats]()
    for _ in range(STEPS):
        block, _ = np.linalg.qr(rows.T @ (rows @ block))
        found.append(block)
    basis, _ = np.linalg.qr(np.hstack(found))
    within = rows @ basis
    _, axes = np.linalg.eigh(within.T @ within)  # the last are those in which the rows differ most
    return np.asarray(basis @ axes[:, ::-1][:, :2])
