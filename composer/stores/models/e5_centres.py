"""Write `e5_centres.npy`: where the vectors of multilingual-e5-small lie, of questions and of other texts.

Run `python -m composer.stores.models.e5_centres` after a change of `calibration.txt`. All vectors of the model point
the same way; seen from the middle of those of many languages, texts that have nothing to do with each other are at
about 0, and what recall and others decide by a cosine is decided as with MiniLM.
"""

from pathlib import Path

import numpy as np

from composer.ports.models import Vectors
from composer.stores.models import e5

TEXTS_FILE = Path(__file__).with_name("calibration.txt")


def texts() -> list[str]:
    """The texts of the file, of all languages."""
    lines = TEXTS_FILE.read_text(encoding="utf-8").splitlines()
    return [text for line in lines if line and not line.startswith("#") for text in line.split("|")[1:]]


def centres() -> Vectors:
    """The mean vectors, shape (2, width): of the texts as questions, and as other texts."""
    model = e5.loaded()
    return np.stack(
        [np.mean([model.raw_vector(f"{kind}{text}") for text in texts()], axis=0) for kind in (e5.QUESTION, e5.PASSAGE)]
    ).astype(np.float32)


if __name__ == "__main__":
    np.save(e5.CENTRES_FILE, centres())
