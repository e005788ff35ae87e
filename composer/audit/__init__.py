"""The audit log: what is signed, how it is sealed, verified and cut."""
