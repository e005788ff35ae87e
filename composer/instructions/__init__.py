"""Instructions for models, one file for each instruction and version. A changed text gets a new version number."""

from functools import cache
from importlib.resources import files


@cache
def template(name: str) -> str:
    """The text of an instruction, such as `summary.v1`, with placeholders in braces."""
    return files("composer").joinpath(f"instructions/{name}.txt").read_text("utf-8")
