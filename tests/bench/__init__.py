"""Measures Nexus on its embedded stores. Numbers are printed, never asserted: machines differ."""
