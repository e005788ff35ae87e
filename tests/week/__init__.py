"""A scripted week of a team of eight on both platforms: the test `tests/deep/e2e/test_week.py`, and `make demo`."""
