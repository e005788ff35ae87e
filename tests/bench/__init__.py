"""Measures Nexus on its embedded stores. Numbers are printed, never asserted: machines differ."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the entry point of `nexus` does, before numpy is loaded
