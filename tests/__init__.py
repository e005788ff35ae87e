"""The tests. numpy is imported below, and starts threads unless it is told before: they would spin while they wait."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the workers have the other cores
