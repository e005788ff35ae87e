"""Loads parts of the program without garbage collection.

Imports make a hundred thousand objects, and all of them stay. The collector would look through them for garbage again
and again, and once more at the end: for a third of the time of a short command.
"""

import gc
import importlib
from types import ModuleType


def load(name: str) -> ModuleType:
    """Import a module; what it makes is not looked at by the collector, then or later."""
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        gc.freeze()
        gc.enable()
