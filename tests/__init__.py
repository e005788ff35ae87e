"""The tests. numpy is imported below, and starts threads unless it is told before: they would spin while they wait."""

import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the workers have the other cores
# Compiled files are kept, the tests' own too, or each run compiles hundreds of them anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
