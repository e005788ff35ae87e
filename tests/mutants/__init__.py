"""Mutants: the guarantee with one clause taken out or weakened, to see that the tests notice."""
