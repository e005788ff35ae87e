-- Reservations are made and deleted, never changed: a right that no statement uses is no right of the service.
REVOKE UPDATE ON usage_reservations FROM nexus_service;
