"""Interfaces to what lies outside the process: the database, the cache, the models, the clock.

`composer.stores` implements them. Import each from the module of its noun.
"""
