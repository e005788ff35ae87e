"""The variables that libraries read when they are imported."""

import os
from pathlib import Path


def configure_mem0(home: Path) -> None:
    """Set the variables that Mem0 reads when it is imported: telemetry off, its files in the data folder."""
    folder = home / "mem0"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ.update(MEM0_TELEMETRY="false", MEM0_DIR=str(folder))


def configure_onnxruntime() -> None:
    """Set the variable that onnxruntime reads when it is imported: it reports nothing and writes no device id."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
