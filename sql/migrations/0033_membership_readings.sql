-- Who is in a private room of a chat platform is known as long as events come in: who left while no process was connected is
-- still recorded as a member. So recorded membership counts only if it was read anew during a connection that lasts.
-- A row is one connection of one process to one workspace. It is deleted when the connection is lost; after a crash the
-- process's advisory lock is gone (see turns.claimed_by), and the row counts no more.
CREATE TABLE connections (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    platform text NOT NULL,
    workspace text NOT NULL,
    process bigint NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

-- The rooms of which the members were read during a connection. `read_at`: nobody who wrote or joined later was missing.
CREATE TABLE membership_readings (
    tenant_id uuid NOT NULL,
    connection_id uuid NOT NULL,
    room_id uuid NOT NULL,
    read_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, connection_id, room_id),
    FOREIGN KEY (tenant_id, connection_id) REFERENCES connections (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX membership_readings_by_room ON membership_readings (tenant_id, room_id);

ALTER TABLE connections ENABLE ROW LEVEL SECURITY;
ALTER TABLE connections FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON connections USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON connections TO nexus_service;
ALTER TABLE membership_readings ENABLE ROW LEVEL SECURITY;
ALTER TABLE membership_readings FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON membership_readings USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON membership_readings TO nexus_service;

-- The numbers of the processes that live: each holds an advisory lock on its own.
CREATE FUNCTION live_processes() RETURNS SETOF bigint LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT l.classid::bigint << 32 | l.objid::bigint FROM pg_locks AS l
    WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
          AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database());
END;

-- The rooms whose recorded members are those of now: rooms of the terminal and of scripts, where no member leaves
-- unnoticed, and those that were read during a connection that lasts.
CREATE FUNCTION rooms_with_certain_members(tenant uuid) RETURNS SETOF uuid LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT c.id FROM conversations AS c WHERE c.tenant_id = tenant AND c.platform = 'console' AND c.kind = 'room'
    UNION ALL
    SELECT r.room_id FROM membership_readings AS r
    JOIN connections AS k ON k.tenant_id = tenant AND k.id = r.connection_id
    WHERE r.tenant_id = tenant AND k.process IN (SELECT live_processes());
END;
