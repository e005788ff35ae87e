"""Repositories: what is stored, by noun. Ordinary classes over `composer.ports.database`, without a driver."""
