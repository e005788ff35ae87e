-- The schema that the migrations up to 0067 made, as pg_dump writes it but for keys and what is the same for many tables. A backup of
-- such a database is loaded into it, and upgrade_0067.sql then brings it to the baseline. Never edited.
CREATE EXTENSION IF NOT EXISTS vector;
CREATE FUNCTION public.analyze_grown_table(passed text[]) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
DECLARE
    grown text;
BEGIN
    SELECT relname INTO grown FROM (
        SELECT relname, reltuples, relpages, pg_relation_size(oid) / current_setting('block_size')::int AS pages
        FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> ALL (passed)
    ) AS tables
    WHERE pages > CASE WHEN reltuples > 0 THEN 2 * relpages + 4 ELSE 0 END
    ORDER BY pages DESC, relname LIMIT 1;
    IF grown IS NOT NULL THEN
        EXECUTE format('ANALYZE (SKIP_LOCKED) %I', grown);
    END IF;
    RETURN grown;
END
$$;
CREATE FUNCTION public.audit_cut(through bigint, last_digest bytea, cut timestamp with time zone, signer text, anchor_signature bytea) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
DECLARE
    deleted bigint;
BEGIN
    PERFORM set_config('nexus.audit_cut', 'on', true);
    DELETE FROM audit_events AS e USING audit_seals AS s
    WHERE s.tenant_id = current_tenant() AND s.number <= through
          AND e.tenant_id = s.tenant_id AND e.id = s.event_id;
    DELETE FROM audit_seals WHERE tenant_id = current_tenant() AND number <= through;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    INSERT INTO audit_anchors AS a (tenant_id, number, digest, cut_at, key_id, signature)
    VALUES (current_tenant(), through, last_digest, cut, signer, anchor_signature)
    ON CONFLICT (tenant_id) DO UPDATE SET number = excluded.number, digest = excluded.digest, cut_at = excluded.cut_at,
        key_id = excluded.key_id, signature = excluded.signature;
    PERFORM set_config('nexus.audit_cut', '', true);
    RETURN deleted;
END
$$;
CREATE FUNCTION public.current_import() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE RETURN (NULLIF(current_setting('nexus.import'::text, true), ''::text))::uuid;
CREATE FUNCTION public.current_tenant() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE RETURN (NULLIF(current_setting('nexus.tenant'::text, true), ''::text))::uuid;
CREATE FUNCTION public.delete_unused_of_import(run uuid, OUT conversations bigint, OUT people bigint) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
DECLARE
    tenant uuid := current_tenant();
    gone bigint;
BEGIN
    conversations := 0;
    LOOP  -- threads and then their rooms
        DELETE FROM public.conversations AS c
        WHERE c.tenant_id = tenant AND c.import_id = run AND c.project_id IS NULL AND c.recording = 'on'
              AND c.noticed_at IS NULL AND c.notice_for IS NULL
              AND NOT EXISTS (SELECT FROM public.conversations AS t WHERE t.tenant_id = tenant AND t.room_id = c.id)
              AND NOT EXISTS (SELECT FROM messages AS m WHERE m.tenant_id = tenant AND m.conversation_id = c.id)
              AND NOT EXISTS (SELECT FROM members AS m WHERE m.tenant_id = tenant AND m.conversation_id = c.id)
              AND NOT EXISTS (SELECT FROM turns AS t WHERE t.tenant_id = tenant AND t.conversation_id = c.id)
              AND NOT EXISTS (SELECT FROM reminders AS r WHERE r.tenant_id = tenant AND r.conversation_id = c.id)
              AND NOT EXISTS (SELECT FROM digests AS d WHERE d.tenant_id = tenant AND d.conversation_id = c.id)
              AND (c.kind = 'thread'
                   OR NOT EXISTS (SELECT FROM memories AS i WHERE i.tenant_id = tenant AND i.namespace = c.namespace)
                      AND NOT EXISTS (SELECT FROM facts AS i WHERE i.tenant_id = tenant AND i.namespace = c.namespace)
                      AND NOT EXISTS (SELECT FROM landmarks AS i WHERE i.tenant_id = tenant AND i.namespace = c.namespace)
                      AND NOT EXISTS (SELECT FROM quarantine AS i
                                      WHERE i.tenant_id = tenant AND i.namespace = c.namespace));
        GET DIAGNOSTICS gone = ROW_COUNT;
        EXIT WHEN gone = 0;
        conversations := conversations + gone;
    END LOOP;
    -- Whoever is becoming a member of a room just now is waited for, and seen by the next statement.
    PERFORM FROM users AS u
    WHERE u.tenant_id = tenant AND u.import_id = run
          AND NOT EXISTS (SELECT FROM messages AS m WHERE m.tenant_id = tenant AND m.user_id = u.id)
          AND NOT EXISTS (SELECT FROM api_keys AS k WHERE k.tenant_id = tenant AND k.user_id = u.id)
          AND NOT EXISTS (SELECT FROM web_sessions AS w WHERE w.tenant_id = tenant AND w.user_id = u.id)
    ORDER BY u.id FOR UPDATE;
    DELETE FROM users AS u
    WHERE u.tenant_id = tenant AND u.import_id = run AND u.person_id IS NULL
          AND NOT u.admin AND NOT u.opted_out AND NOT u.reads_rooms
          AND NOT EXISTS (SELECT FROM messages AS m WHERE m.tenant_id = tenant AND m.user_id = u.id)
          AND NOT EXISTS (SELECT FROM members AS m WHERE m.tenant_id = tenant AND m.user_id = u.id)
          AND NOT EXISTS (SELECT FROM project_members AS m WHERE m.tenant_id = tenant AND m.user_id = u.id)
          AND NOT EXISTS (SELECT FROM team_members AS m WHERE m.tenant_id = tenant AND m.user_id = u.id)
          AND NOT EXISTS (SELECT FROM team_invites AS i
                          WHERE i.tenant_id = tenant AND (i.user_id = u.id OR i.created_by = u.id))
          AND NOT EXISTS (SELECT FROM public.conversations AS c WHERE c.tenant_id = tenant AND c.user_id = u.id)
          AND NOT EXISTS (SELECT FROM reminders AS r WHERE r.tenant_id = tenant AND r.user_id = u.id)
          AND NOT EXISTS (SELECT FROM memories AS i WHERE i.tenant_id = tenant AND i.user_id = u.id)
          AND NOT EXISTS (SELECT FROM facts AS i WHERE i.tenant_id = tenant AND i.user_id = u.id)
          AND NOT EXISTS (SELECT FROM landmarks AS i WHERE i.tenant_id = tenant AND i.user_id = u.id)
          AND NOT EXISTS (SELECT FROM quarantine AS i WHERE i.tenant_id = tenant AND i.user_id = u.id)
          AND NOT EXISTS (SELECT FROM api_keys AS k WHERE k.tenant_id = tenant AND k.user_id = u.id)
          AND NOT EXISTS (SELECT FROM web_sessions AS w WHERE w.tenant_id = tenant AND w.user_id = u.id)
          AND NOT EXISTS (SELECT FROM login_links AS l WHERE l.tenant_id = tenant AND l.user_id = u.id)
          AND NOT EXISTS (SELECT FROM openid_logins AS o WHERE o.tenant_id = tenant AND o.user_id = u.id);
    GET DIAGNOSTICS people = ROW_COUNT;
END;
$$;
CREATE FUNCTION public.live_processes() RETURNS SETOF bigint
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT (((l.classid)::bigint << 32) | (l.objid)::bigint)
    FROM pg_locks l
   WHERE ((l.locktype = 'advisory'::text) AND (l.objsubid = 1) AND l.granted AND (l.database = ( SELECT pg_database.oid
            FROM pg_database
           WHERE (pg_database.datname = current_database()))));
END;
CREATE FUNCTION public.magnitude(embedding public.vector) RETURNS bit varying LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN (SELECT ((public.binary_quantize((magnitude.embedding OPERATOR(public.-) (array_fill(of_it.far, ARRAY[of_it.width]))::public.vector)) | public.binary_quantize(((array_fill((- of_it.far), ARRAY[of_it.width]))::public.vector OPERATOR(public.-) magnitude.embedding))))::bit varying AS varbit FROM (SELECT ((((0.98)::double precision * public.vector_norm(magnitude.embedding)) / sqrt((public.vector_dims(magnitude.embedding))::double precision)))::real AS far, public.vector_dims(magnitude.embedding) AS width) of_it);
CREATE FUNCTION public.may_read(namespace text, visibility text, user_id uuid, vendors text[], pooled text[], visibilities text[], readers uuid[], vendor text, rooms text[] DEFAULT '{}'::text[]) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN COALESCE(((namespace IS NOT NULL) AND (visibility IS NOT NULL) AND (pooled IS NOT NULL) AND (visibilities IS NOT NULL) AND (readers IS NOT NULL) AND (vendor IS NOT NULL) AND (rooms IS NOT NULL) AND ((vendors IS NULL) OR (vendor = '*'::text) OR (vendors && ARRAY['*'::text, vendor])) AND ((visibility = ANY (visibilities)) OR ((visibility = 'private'::text) AND (user_id = ANY (readers)) AND (namespace <> ALL (rooms))) OR (namespace = ANY (pooled)) OR ((visibility = ANY (ARRAY['public'::text, 'shared'::text])) AND (namespace = ANY (rooms))))), false);
CREATE FUNCTION public.note_edited() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO summaries_due (tenant_id, tier, conversation_id, namespace, quarter)
    SELECT c.tenant_id, t.tier, CASE WHEN t.tier = 'day' THEN coalesce(c.room_id, c.id) ELSE c.id END, NEW.namespace,
           date_bin('15 minutes', NEW.at, '2000-01-01 00:00:00Z')
    FROM conversations AS c
    CROSS JOIN LATERAL unnest(CASE WHEN c.kind = 'thread' THEN ARRAY['thread', 'day'] ELSE ARRAY['session', 'day'] END) AS t (tier)
    WHERE c.tenant_id = NEW.tenant_id AND c.id = NEW.conversation_id
    ON CONFLICT (tenant_id, tier, conversation_id, namespace, quarter) DO UPDATE SET quarter = excluded.quarter;
    RETURN NULL;
END
$$;
CREATE FUNCTION public.note_opted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO summaries_due (tenant_id, tier, conversation_id, namespace, quarter)
    SELECT DISTINCT c.tenant_id, t.tier, CASE WHEN t.tier = 'day' THEN coalesce(c.room_id, c.id) ELSE c.id END, m.namespace,
           date_bin('15 minutes', m.at, '2000-01-01 00:00:00Z')
    FROM messages AS m
    JOIN conversations AS c ON c.tenant_id = m.tenant_id AND c.id = m.conversation_id
    CROSS JOIN LATERAL unnest(CASE WHEN c.kind = 'thread' THEN ARRAY['thread', 'day'] ELSE ARRAY['session', 'day'] END) AS t (tier)
    WHERE m.tenant_id = NEW.tenant_id AND m.user_id = NEW.id AND m.agent_id IS NULL AND NOT m.ephemeral
    ON CONFLICT (tenant_id, tier, conversation_id, namespace, quarter) DO UPDATE SET quarter = excluded.quarter;
    RETURN NULL;
END
$$;
CREATE FUNCTION public.note_summaries_due() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO summaries_due (tenant_id, tier, conversation_id, namespace, quarter)
    SELECT DISTINCT c.tenant_id, t.tier, CASE WHEN t.tier = 'day' THEN coalesce(c.room_id, c.id) ELSE c.id END, m.namespace,
           date_bin('15 minutes', m.at, '2000-01-01 00:00:00Z')
    FROM changed AS m
    JOIN conversations AS c ON c.tenant_id = m.tenant_id AND c.id = m.conversation_id
    CROSS JOIN LATERAL unnest(CASE WHEN c.kind = 'thread' THEN ARRAY['thread', 'day'] ELSE ARRAY['session', 'day'] END) AS t (tier)
    WHERE NOT m.ephemeral AND m.agent_id IS NULL
    ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (tenant_id, tier, conversation_id, namespace, quarter) DO UPDATE SET quarter = excluded.quarter;
    RETURN NULL;
END
$$;
CREATE FUNCTION public.refuse_audit_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP <> 'TRUNCATE' AND current_setting('nexus.audit_cut', true) = 'on' THEN
        RETURN coalesce(NEW, OLD); -- audit_cut
    END IF;
    RAISE EXCEPTION 'the audit log is append-only: % on % is refused', TG_OP, TG_TABLE_NAME;
END
$$;
CREATE TABLE public.connections ( tenant_id uuid NOT NULL, id uuid NOT NULL, platform text NOT NULL, workspace text NOT NULL, process bigint NOT NULL, CONSTRAINT connections_pkey PRIMARY KEY (tenant_id, id) );
CREATE TABLE public.conversations ( tenant_id uuid NOT NULL, id uuid NOT NULL, kind text NOT NULL, platform text NOT NULL, workspace text NOT NULL, name text NOT NULL, namespace text CONSTRAINT conversations_run_id_not_null NOT NULL, generation integer DEFAULT 0 NOT NULL, private boolean DEFAULT false NOT NULL, room_id uuid, thread text, user_id uuid, agent_id uuid, project_id uuid, pooled boolean DEFAULT false NOT NULL, last_seq bigint DEFAULT 0 NOT NULL, version bigint DEFAULT 0 NOT NULL, created_at timestamp with time zone NOT NULL, title text, recording text DEFAULT 'on'::text CONSTRAINT conversations_memory_not_null NOT NULL, noticed_at timestamp with time zone, seen_id text, seen_at timestamp with time zone, archived_at timestamp with time zone, notice_for text, notice_id text, outsiders boolean DEFAULT false NOT NULL, privacy_at timestamp with time zone, opened_at timestamp with time zone, private_since timestamp with time zone, outsiders_at timestamp with time zone, public_at timestamp with time zone, import_id uuid DEFAULT public.current_import(), later_ids text[] DEFAULT '{}'::text[] NOT NULL, history_changed_at timestamp with time zone, id_changed_at timestamp with time zone, CONSTRAINT conversations_check CHECK (((kind = 'thread'::text) = (room_id IS NOT NULL))), CONSTRAINT conversations_check1 CHECK (((kind = ANY (ARRAY['dm'::text, 'session'::text])) = ((user_id IS NOT NULL) AND (agent_id IS NOT NULL)))), CONSTRAINT conversations_kind_check CHECK ((kind = ANY (ARRAY['room'::text, 'thread'::text, 'dm'::text, 'session'::text]))), CONSTRAINT conversations_recording_check CHECK ((recording = ANY (ARRAY['on'::text, 'mentions'::text, 'off'::text]))), CONSTRAINT conversations_pkey PRIMARY KEY (tenant_id, id) );
CREATE TABLE public.membership_readings ( tenant_id uuid NOT NULL, connection_id uuid NOT NULL, room_id uuid NOT NULL, read_at timestamp with time zone NOT NULL, CONSTRAINT membership_readings_pkey PRIMARY KEY (tenant_id, connection_id, room_id) );
CREATE FUNCTION public.rooms_with_certain_members(tenant uuid) RETURNS SETOF uuid
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT c.id
    FROM public.conversations c
   WHERE ((c.tenant_id = rooms_with_certain_members.tenant) AND (c.platform = 'console'::text) AND (c.kind = 'room'::text))
 UNION ALL
  SELECT r.room_id
    FROM (public.membership_readings r
      JOIN public.connections k ON (((k.tenant_id = rooms_with_certain_members.tenant) AND (k.id = r.connection_id))))
   WHERE ((r.tenant_id = rooms_with_certain_members.tenant) AND (k.process IN ( SELECT public.live_processes() AS live_processes)));
END;
CREATE TABLE public.agents ( tenant_id uuid NOT NULL, id uuid NOT NULL, slug text NOT NULL, name text NOT NULL, CONSTRAINT agents_pkey PRIMARY KEY (tenant_id, id), CONSTRAINT agents_tenant_id_slug_key UNIQUE (tenant_id, slug) );
CREATE TABLE public.api_keys ( tenant_id uuid NOT NULL, id uuid NOT NULL, user_id uuid NOT NULL, vendor text, name text NOT NULL, prefix text NOT NULL, digest bytea, permissions text[] NOT NULL, created_at timestamp with time zone NOT NULL, created_by uuid, expires_at timestamp with time zone, revoked_at timestamp with time zone, last_used_at timestamp with time zone, client text, redirect_uri text, CONSTRAINT api_keys_opened_by CHECK ((((digest IS NULL) = (client IS NOT NULL)) AND ((client IS NULL) = (redirect_uri IS NULL)))), CONSTRAINT api_keys_pkey PRIMARY KEY (tenant_id, id), CONSTRAINT api_keys_tenant_id_digest_key UNIQUE (tenant_id, digest) );
CREATE TABLE public.api_requests ( tenant_id uuid NOT NULL, credential text NOT NULL, key_digest bytea NOT NULL, digest bytea NOT NULL, user_id uuid NOT NULL, made uuid, created_at timestamp with time zone NOT NULL, CONSTRAINT api_requests_pkey PRIMARY KEY (tenant_id, credential, key_digest) );
CREATE TABLE public.app_codes ( tenant_id uuid NOT NULL, digest bytea NOT NULL, key_id uuid NOT NULL, challenge text NOT NULL, redirect_uri text NOT NULL, redirect_given boolean NOT NULL, resource text NOT NULL, expires_at timestamp with time zone NOT NULL, CONSTRAINT app_codes_pkey PRIMARY KEY (tenant_id, digest) );
CREATE TABLE public.app_tokens ( tenant_id uuid NOT NULL, id uuid NOT NULL, key_id uuid NOT NULL, resource text NOT NULL, permissions text[] NOT NULL, access_digest bytea NOT NULL, access_expires_at timestamp with time zone NOT NULL, family_digest bytea NOT NULL, refresh_digest bytea NOT NULL, refresh_expires_at timestamp with time zone NOT NULL, CONSTRAINT app_tokens_pkey PRIMARY KEY (tenant_id, id), CONSTRAINT app_tokens_tenant_id_access_digest_key UNIQUE (tenant_id, access_digest), CONSTRAINT app_tokens_tenant_id_family_digest_key UNIQUE (tenant_id, family_digest) );
CREATE TABLE public.audit_anchors ( tenant_id uuid NOT NULL, number bigint NOT NULL, digest bytea NOT NULL, cut_at timestamp with time zone NOT NULL, key_id text NOT NULL, signature bytea NOT NULL, CONSTRAINT audit_anchors_pkey PRIMARY KEY (tenant_id) );
CREATE TABLE public.audit_events ( tenant_id uuid NOT NULL, id uuid NOT NULL, at timestamp with time zone NOT NULL, act text NOT NULL, actor_id uuid, user_ids uuid[] NOT NULL, conversation_id uuid, project_id uuid, details jsonb NOT NULL, key_id text NOT NULL, signature bytea NOT NULL, CONSTRAINT audit_events_pkey PRIMARY KEY (tenant_id, id) );
CREATE TABLE public.audit_seals ( tenant_id uuid NOT NULL, number bigint NOT NULL, event_id uuid NOT NULL, sealed_at timestamp with time zone NOT NULL, event_digest bytea NOT NULL, before bytea NOT NULL, key_id text NOT NULL, signature bytea NOT NULL, CONSTRAINT audit_seals_pkey PRIMARY KEY (tenant_id, number), CONSTRAINT audit_seals_tenant_id_event_id_key UNIQUE (tenant_id, event_id) );
CREATE TABLE public.audit_unsealed ( tenant_id uuid NOT NULL, id uuid NOT NULL, CONSTRAINT audit_unsealed_pkey PRIMARY KEY (tenant_id, id) );
CREATE TABLE public.changes ( tenant_id uuid NOT NULL, subject uuid NOT NULL, asked_at timestamp with time zone NOT NULL, CONSTRAINT changes_pkey PRIMARY KEY (tenant_id, subject) );
CREATE TABLE public.commands ( tenant_id uuid CONSTRAINT commands_run_tenant_id_not_null NOT NULL, id uuid CONSTRAINT commands_run_id_not_null NOT NULL, received_at timestamp with time zone CONSTRAINT commands_run_run_at_not_null NOT NULL, adapter text, workspace text, process bigint, call jsonb, done boolean DEFAULT false CONSTRAINT commands_run_done_not_null NOT NULL, CONSTRAINT commands_pkey PRIMARY KEY (tenant_id, id) );
CREATE TABLE public.compactions ( tenant_id uuid NOT NULL, id uuid NOT NULL, conversation_id uuid NOT NULL, agent_id uuid NOT NULL, namespace text CONSTRAINT compactions_run_id_not_null NOT NULL, user_id uuid, visibility text NOT NULL, through_at timestamp with time zone NOT NULL, through_seq bigint NOT NULL, made_at timestamp with time zone NOT NULL, made_seq bigint NOT NULL, messages integer NOT NULL, text text NOT NULL, tokens integer NOT NULL, model text NOT NULL, before_tokens integer NOT NULL, after_tokens integer NOT NULL, requested boolean CONSTRAINT compactions_asked_not_null NOT NULL, created_at timestamp with time zone NOT NULL, CONSTRAINT compactions_visibility_check CHECK ((visibility = ANY (ARRAY['public'::text, 'private'::text, 'shared'::text]))), CONSTRAINT compactions_pkey PRIMARY KEY (tenant_id, id) );
CREATE TABLE public.deliveries ( tenant_id uuid NOT NULL, turn_id uuid NOT NULL, part integer NOT NULL, external_id text NOT NULL, sent_at timestamp with time zone NOT NULL, CONSTRAINT deliveries_pkey PRIMARY KEY (tenant_id, turn_id, part) );
CREATE TABLE public.deployment ( key text NOT NULL, value jsonb NOT NULL, CONSTRAINT deployment_pkey PRIMARY KEY (key) );
CREATE TABLE public.digests ( tenant_id uuid NOT NULL, conversation_id uuid NOT NULL, period text NOT NULL, hour integer NOT NULL, due_at timestamp with time zone NOT NULL, CONSTRAINT digests_hour_check CHECK (((hour >= 0) AND (hour <= 23))), CONSTRAINT digests_period_check CHECK ((period = ANY (ARRAY['daily'::text, 'weekly'::text]))), CONSTRAINT digests_pkey PRIMARY KEY (tenant_id, conversation_id) );
CREATE TABLE public.episodes ( tenant_id uuid NOT NULL, id uuid NOT NULL, message_id uuid NOT NULL ) WITH (autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_insert_scale_factor='0.05', autovacuum_analyze_scale_factor='0.05');
CREATE TABLE public.erased ( tenant_id uuid CONSTRAINT erased_messages_tenant_id_not_null NOT NULL, id uuid CONSTRAINT erased_messages_id_not_null NOT NULL, erased_at timestamp with time zone CONSTRAINT erased_messages_erased_at_not_null NOT NULL, CONSTRAINT erased_pkey PRIMARY KEY (tenant_id, id) );
CREATE TABLE public.extraction_batches ( tenant_id uuid NOT NULL, conversation_id uuid NOT NULL, namespace text CONSTRAINT extraction_batches_run_id_not_null NOT NULL, visibility text NOT NULL, claim uuid, claimed_until timestamp with time zone, attempts integer DEFAULT 0 NOT NULL, due_at timestamp with time zone, parked_at timestamp with time zone, error text, CONSTRAINT extraction_batches_pkey PRIMARY KEY (tenant_id, conversation_id, namespace, visibility) );
CREATE TABLE public.extraction_queue ( tenant_id uuid NOT NULL, message_id uuid NOT NULL, conversation_id uuid NOT NULL, namespace text CONSTRAINT extraction_queue_run_id_not_null NOT NULL, visibility text NOT NULL, queued_at timestamp with time zone NOT NULL, CONSTRAINT extraction_queue_pkey PRIMARY KEY (tenant_id, message_id) );
CREATE TABLE public.facts ( tenant_id uuid NOT NULL, id uuid NOT NULL, namespace text CONSTRAINT facts_run_id_not_null NOT NULL, user_id uuid, agent_id uuid, visibility text NOT NULL, key text NOT NULL, value jsonb NOT NULL, author text NOT NULL, origin text NOT NULL, valid_from timestamp with time zone NOT NULL, valid_to timestamp with time zone, trust text DEFAULT 'member'::text NOT NULL, set_at timestamp with time zone, CONSTRAINT facts_trust_check CHECK ((trust = ANY (ARRAY['member'::text, 'guest'::text, 'tool'::text]))), CONSTRAINT facts_visibility_check CHECK ((visibility = ANY (ARRAY['public'::text, 'private'::text, 'shared'::text]))), CONSTRAINT facts_pkey PRIMARY KEY (tenant_id, id) );
CREATE TABLE public.gateway_exchanges ( tenant_id uuid NOT NULL, id uuid NOT NULL, user_id uuid NOT NULL, vendor text NOT NULL, question text NOT NULL, answer text NOT NULL, said_at timestamp with time zone NOT NULL, learnt_at timestamp with time zone, claim uuid, claimed_until timestamp with time zone, due_at timestamp with time zone, attempts integer DEFAULT 0 NOT NULL, CONSTRAINT gateway_exchanges_pkey PRIMARY KEY (tenant_id, id) );
CREATE TABLE public.gateway_forgets ( tenant_id uuid NOT NULL, user_id uuid NOT NULL, forgot_at timestamp with time zone NOT NULL, CONSTRAINT gateway_forgets_pkey PRIMARY KEY (tenant_id, user_id) );
CREATE TABLE public.gateway_turns ( tenant_id uuid NOT NULL, user_id uuid NOT NULL, vendor text NOT NULL, digest bytea NOT NULL, standing uuid[] NOT NULL, recalled uuid[] NOT NULL, created_at timestamp with time zone NOT NULL, CONSTRAINT gateway_turns_pkey PRIMARY KEY (tenant_id, user_id, vendor, digest) );
CREATE TABLE public.identities ( tenant_id uuid NOT NULL, platform text NOT NULL, workspace text NOT NULL, external_id text NOT NULL, user_id uuid NOT NULL, trust text, trust_stated_at timestamp with time zone, CONSTRAINT identities_trust_check CHECK ((trust = ANY (ARRAY['member'::text, 'guest'::text]))), CONSTRAINT identities_pkey PRIMARY KEY (tenant_id, platform, workspace, external_id) );
CREATE TABLE public.imports ( tenant_id uuid NOT NULL, id uuid NOT NULL, platform text NOT NULL, workspace text NOT NULL, source text NOT NULL, begun_at timestamp with time zone NOT NULL, ended_at timestamp with time zone, undone_at timestamp with time zone, CONSTRAINT imports_pkey PRIMARY KEY (tenant_id, id, platform, workspace) );
CREATE TABLE public.job_runs ( name text NOT NULL, due_at timestamp with time zone CONSTRAINT job_runs_slot_not_null NOT NULL, state text NOT NULL, attempts integer DEFAULT 1 NOT NULL, started_at timestamp with time zone NOT NULL, ended_at timestamp with time zone, done bigint DEFAULT 0 NOT NULL, failed bigint DEFAULT 0 NOT NULL, note text DEFAULT ''::text CONSTRAINT job_runs_said_not_null NOT NULL, CONSTRAINT job_runs_state_check CHECK ((state = ANY (ARRAY['running'::text, 'done'::text, 'failed'::text, 'late'::text]))), CONSTRAINT job_runs_pkey PRIMARY KEY (name, due_at) );
CREATE TABLE public.landmarks ( tenant_id uuid NOT NULL, id uuid NOT NULL, namespace text CONSTRAINT landmarks_run_id_not_null NOT NULL, user_id uuid, agent_id uuid, visibility text NOT NULL, text text NOT NULL, author text NOT NULL, decided_at timestamp with time zone NOT NULL, replaces uuid, retired_at timestamp with time zone, state text DEFAULT 'pinned'::text NOT NULL, settled_by text, trust text DEFAULT 'member'::text NOT NULL, CONSTRAINT landmarks_state_check CHECK ((state = ANY (ARRAY['proposed'::text, 'pinned'::text, 'retired'::text]))), CONSTRAINT landmarks_trust_check CHECK ((trust = ANY (ARRAY['member'::text, 'guest'::text, 'tool'::text]))), CONSTRAINT landmarks_visibility_check CHECK ((visibility = ANY (ARRAY['public'::text, 'private'::text, 'shared'::text]))), CONSTRAINT landmarks_pkey PRIMARY KEY (tenant_id, id) );
CREATE TABLE public.lineage ( tenant_id uuid NOT NULL, item_kind text NOT NULL, item_id uuid NOT NULL, source_kind text NOT NULL, source_id uuid NOT NULL ) WITH (autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_insert_scale_factor='0.05', autovacuum_analyze_scale_factor='0.05');
CREATE TABLE public.link_codes ( tenant_id uuid NOT NULL, code_hash text NOT NULL, user_id uuid NOT NULL, expires_at timestamp with time zone NOT NULL, CONSTRAINT link_codes_pkey PRIMARY KEY (tenant_id, code_hash) );
CREATE TABLE public.login_links ( tenant_id uuid NOT NULL, user_id uuid NOT NULL, digest bytea NOT NULL, created_at timestamp with time zone NOT NULL, expires_at timestamp with time zone NOT NULL, CONSTRAINT login_links_pkey PRIMARY KEY (tenant_id, user_id), CONSTRAINT login_links_tenant_id_digest_key UNIQUE (tenant_id, digest) );
CREATE TABLE public.members ( tenant_id uuid NOT NULL, conversation_id uuid NOT NULL, user_id uuid NOT NULL, admin boolean DEFAULT false NOT NULL, joined_at timestamp with time zone NOT NULL, left_at timestamp with time zone, import_id uuid DEFAULT public.current_import(), CONSTRAINT members_pkey PRIMARY KEY (tenant_id, conversation_id, user_id) );
CREATE TABLE public.memories ( tenant_id uuid NOT NULL, id uuid NOT NULL, namespace text CONSTRAINT memories_run_id_not_null NOT NULL, user_id uuid, agent_id uuid, visibility text NOT NULL, allowed_vendors text[] DEFAULT '{*}'::text[] NOT NULL, kind text NOT NULL, key text, text text NOT NULL, author text NOT NULL, origin text NOT NULL, created_at timestamp with time zone NOT NULL, expires_at timestamp with time zone, superseded_by uuid, trashed_at timestamp with time zone, valid_to timestamp with time zone, merged_into uuid, trust text DEFAULT 'member'::text NOT NULL, title text, content text, tags text[] DEFAULT '{}'::text[] NOT NULL, metadata json DEFAULT '{}'::json NOT NULL, session text, updated_at timestamp with time zone, version integer DEFAULT 1 NOT NULL, said_at timestamp with time zone, CONSTRAINT memories_trust_check CHECK ((trust = ANY (ARRAY['member'::text, 'guest'::text, 'tool'::text]))), CONSTRAINT memories_visibility_check CHECK ((visibility = ANY (ARRAY['public'::text, 'private'::text, 'shared'::text]))) ) WITH (autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_insert_scale_factor='0.05', autovacuum_analyze_scale_factor='0.05');
CREATE TABLE public.messages ( tenant_id uuid NOT NULL, id uuid NOT NULL, conversation_id uuid NOT NULL, seq bigint NOT NULL, external_id text NOT NULL, at timestamp with time zone NOT NULL, user_id uuid, agent_id uuid, author text NOT NULL, text text NOT NULL, attachments jsonb DEFAULT '[]'::jsonb NOT NULL, mentions uuid[] DEFAULT '{}'::uuid[] NOT NULL, namespace text CONSTRAINT messages_run_id_not_null NOT NULL, visibility text NOT NULL, edited_at timestamp with time zone, indexed boolean DEFAULT false NOT NULL, ephemeral boolean DEFAULT false CONSTRAINT messages_passing_not_null NOT NULL, reply_to text, trust text DEFAULT 'member'::text NOT NULL, skipped text, import_id uuid DEFAULT public.current_import(), edit_stated_at timestamp with time zone, CONSTRAINT messages_check CHECK (((user_id IS NOT NULL) OR (agent_id IS NOT NULL))), CONSTRAINT messages_trust_check CHECK ((trust = ANY (ARRAY['member'::text, 'guest'::text, 'tool'::text]))), CONSTRAINT messages_visibility_check CHECK ((visibility = ANY (ARRAY['public'::text, 'private'::text, 'shared'::text]))) ) WITH (autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_insert_scale_factor='0.05', autovacuum_analyze_scale_factor='0.05');
CREATE TABLE public.model_usage ( tenant_id uuid NOT NULL, day date NOT NULL, kind text NOT NULL, agent_id uuid NOT NULL, conversation_id uuid NOT NULL, user_id uuid NOT NULL, model text NOT NULL, calls bigint NOT NULL, failures bigint NOT NULL, refused bigint NOT NULL, estimated bigint NOT NULL, prompt_tokens bigint NOT NULL, completion_tokens bigint NOT NULL, cached_tokens bigint NOT NULL, unpriced_tokens bigint NOT NULL, cost numeric NOT NULL, CONSTRAINT model_usage_pkey PRIMARY KEY (tenant_id, day, kind, agent_id, conversation_id, user_id, model) );
CREATE TABLE public.oauth_clients ( id uuid NOT NULL, name text NOT NULL, redirect_uris text[] NOT NULL, auth_method text NOT NULL, secret_digest bytea, created_at timestamp with time zone NOT NULL, used_at timestamp with time zone, CONSTRAINT oauth_clients_auth_method_check CHECK ((auth_method = ANY (ARRAY['none'::text, 'client_secret_post'::text, 'client_secret_basic'::text]))), CONSTRAINT oauth_clients_check CHECK (((auth_method = 'none'::text) = (secret_digest IS NULL))), CONSTRAINT oauth_clients_pkey PRIMARY KEY (id) );
CREATE TABLE public.openid_logins ( tenant_id uuid NOT NULL, id uuid NOT NULL, user_id uuid NOT NULL, digest bytea NOT NULL, issuer text NOT NULL, name text NOT NULL, created_at timestamp with time zone NOT NULL, last_used_at timestamp with time zone, CONSTRAINT openid_logins_pkey PRIMARY KEY (tenant_id, id), CONSTRAINT openid_logins_tenant_id_digest_key UNIQUE (tenant_id, digest) );
CREATE TABLE public.operation_totals ( tenant_id uuid NOT NULL, month date NOT NULL, user_id uuid NOT NULL, vendor text NOT NULL, operation text NOT NULL, count bigint NOT NULL, tokens bigint NOT NULL, CONSTRAINT operation_totals_pkey PRIMARY KEY (tenant_id, month, user_id, vendor, operation) );
CREATE TABLE public.personal_settings ( tenant_id uuid NOT NULL, user_id uuid NOT NULL, recall boolean NOT NULL, strategy text, budget integer NOT NULL, trash_days integer NOT NULL, keep_days integer, changed_at timestamp with time zone NOT NULL, CONSTRAINT personal_settings_budget_check CHECK (((budget >= 0) AND (budget <= 16000))), CONSTRAINT personal_settings_keep_days_check CHECK (((keep_days >= 1) AND (keep_days <= 365))), CONSTRAINT personal_settings_strategy_check CHECK ((strategy = ANY (ARRAY['hybrid'::text, 'semantic'::text, 'recent'::text]))), CONSTRAINT personal_settings_trash_days_check CHECK (((trash_days >= 1) AND (trash_days <= 365))), CONSTRAINT personal_settings_pkey PRIMARY KEY (tenant_id, user_id) );
CREATE TABLE public.posted_files ( tenant_id uuid NOT NULL, platform text NOT NULL, workspace text NOT NULL, external_id text NOT NULL, user_id uuid NOT NULL, due boolean DEFAULT false NOT NULL, sharing_until timestamp with time zone, refused_since timestamp with time zone, retry_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL, CONSTRAINT posted_files_pkey PRIMARY KEY (tenant_id, platform, workspace, external_id) );
CREATE TABLE public.project_members ( tenant_id uuid NOT NULL, project_id uuid NOT NULL, user_id uuid NOT NULL, role text NOT NULL, CONSTRAINT project_members_role_check CHECK ((role = ANY (ARRAY['read'::text, 'write'::text, 'admin'::text]))), CONSTRAINT project_members_pkey PRIMARY KEY (tenant_id, project_id, user_id) );
CREATE TABLE public.projects ( tenant_id uuid NOT NULL, id uuid NOT NULL, slug text NOT NULL, isolated boolean NOT NULL, created_by uuid, created_at timestamp with time zone NOT NULL, CONSTRAINT projects_pkey PRIMARY KEY (tenant_id, id) );
CREATE TABLE public.quarantine ( tenant_id uuid NOT NULL, id uuid NOT NULL, kind text NOT NULL, item_id uuid NOT NULL, namespace text NOT NULL, user_id uuid NOT NULL, visibility text NOT NULL, trust text NOT NULL, detail text NOT NULL, text text NOT NULL, author text NOT NULL, origin text NOT NULL, at timestamp with time zone NOT NULL, state text NOT NULL, entry json, CONSTRAINT quarantine_kind_check CHECK ((kind = ANY (ARRAY['memory'::text, 'fact'::text, 'landmark'::text]))), CONSTRAINT quarantine_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'approved'::text, 'rejected'::text]))), CONSTRAINT quarantine_trust_check CHECK ((trust = ANY (ARRAY['member'::text, 'guest'::text, 'tool'::text]))), CONSTRAINT quarantine_visibility_check CHECK ((visibility = ANY (ARRAY['public'::text, 'private'::text, 'shared'::text]))), CONSTRAINT quarantine_pkey PRIMARY KEY (tenant_id, id) );
CREATE TABLE public.quota_notices ( tenant_id uuid NOT NULL, month date NOT NULL, quota text NOT NULL, user_id uuid NOT NULL, used bigint NOT NULL, most bigint NOT NULL, told_at timestamp with time zone, CONSTRAINT quota_notices_pkey PRIMARY KEY (tenant_id, month, quota, user_id) );
CREATE TABLE public.recall_index ( tenant_id uuid NOT NULL, id uuid NOT NULL, kind text NOT NULL, namespace text CONSTRAINT recall_index_run_id_not_null NOT NULL, user_id uuid, visibility text NOT NULL, vendors text[], at timestamp with time zone NOT NULL, expires_at timestamp with time zone, length integer NOT NULL, embedding public.vector, signature bit varying GENERATED ALWAYS AS ((public.binary_quantize(embedding))::bit varying) STORED, magnitude bit varying GENERATED ALWAYS AS ( CASE WHEN (embedding IS NOT NULL) THEN public.magnitude(embedding) ELSE NULL::bit varying END) STORED, CONSTRAINT recall_index_kind_check CHECK ((kind = ANY (ARRAY['episode'::text, 'memory'::text, 'summary'::text]))) ) WITH (autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_insert_scale_factor='0.05', autovacuum_analyze_scale_factor='0.05');
CREATE TABLE public.recall_terms ( tenant_id uuid NOT NULL, namespace text CONSTRAINT recall_terms_run_id_not_null NOT NULL, term text NOT NULL, item_id uuid NOT NULL, tf smallint NOT NULL, length integer NOT NULL, visibility text NOT NULL, user_id uuid, vendors text[], at timestamp with time zone NOT NULL, expires_at timestamp with time zone ) WITH (autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_insert_scale_factor='0.05', autovacuum_analyze_scale_factor='0.05');
CREATE TABLE public.receipts ( tenant_id uuid NOT NULL, id text NOT NULL, made_at timestamp with time zone NOT NULL, key bytea NOT NULL, counts jsonb NOT NULL, digests bytea[] NOT NULL, CONSTRAINT receipts_pkey PRIMARY KEY (tenant_id, id) );
CREATE TABLE public.reembedded ( tenant_id uuid NOT NULL, id uuid NOT NULL, embedding public.vector NOT NULL, CONSTRAINT reembedded_pkey PRIMARY KEY (tenant_id, id) );
CREATE TABLE public.reminders ( tenant_id uuid NOT NULL, id uuid NOT NULL, user_id uuid NOT NULL, conversation_id uuid NOT NULL, namespace text NOT NULL, visibility text NOT NULL, author text NOT NULL, text text NOT NULL, made_at timestamp with time zone NOT NULL, due_at timestamp with time zone NOT NULL, repeats text, posted_at timestamp with time zone, state text DEFAULT 'open'::text NOT NULL, CONSTRAINT reminders_state_check CHECK ((state = ANY (ARRAY['open'::text, 'refused'::text, 'ended'::text]))), CONSTRAINT reminders_visibility_check CHECK ((visibility = ANY (ARRAY['public'::text, 'private'::text]))), CONSTRAINT reminders_pkey PRIMARY KEY (tenant_id, id) );
CREATE TABLE public.retractions ( tenant_id uuid CONSTRAINT withdrawals_tenant_id_not_null NOT NULL, platform text CONSTRAINT withdrawals_platform_not_null NOT NULL, workspace text CONSTRAINT withdrawals_workspace_not_null NOT NULL, external_id text CONSTRAINT withdrawals_external_id_not_null NOT NULL, turn_id uuid CONSTRAINT withdrawals_turn_id_not_null NOT NULL, kind text CONSTRAINT withdrawals_kind_not_null NOT NULL, name text CONSTRAINT withdrawals_name_not_null NOT NULL, thread text, private boolean CONSTRAINT withdrawals_private_not_null NOT NULL, message text CONSTRAINT withdrawals_message_not_null NOT NULL, user_external_id text, part integer, since timestamp with time zone, refused_since timestamp with time zone, retry_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL, CONSTRAINT retractions_pkey PRIMARY KEY (tenant_id, platform, workspace, turn_id, external_id) );
CREATE TABLE public.schema_migrations ( version integer NOT NULL, name text NOT NULL, checksum text NOT NULL, applied_at timestamp with time zone DEFAULT now() NOT NULL, CONSTRAINT schema_migrations_pkey PRIMARY KEY (version) );
CREATE TABLE public.settings ( tenant_id uuid NOT NULL, key text NOT NULL, value jsonb NOT NULL, updated_at timestamp with time zone NOT NULL, CONSTRAINT settings_pkey PRIMARY KEY (tenant_id, key) );
CREATE TABLE public.summaries ( tenant_id uuid NOT NULL, id uuid NOT NULL, conversation_id uuid, tier text NOT NULL, namespace text CONSTRAINT summaries_run_id_not_null NOT NULL, user_id uuid, agent_id uuid, visibility text NOT NULL, starts_at timestamp with time zone NOT NULL, ends_at timestamp with time zone NOT NULL, text text NOT NULL, tokens integer NOT NULL, model text NOT NULL, created_at timestamp with time zone NOT NULL, CONSTRAINT summaries_tier_check CHECK ((tier = ANY (ARRAY['thread'::text, 'session'::text, 'day'::text, 'week'::text]))), CONSTRAINT summaries_visibility_check CHECK ((visibility = ANY (ARRAY['public'::text, 'private'::text, 'shared'::text]))), CONSTRAINT summaries_pkey PRIMARY KEY (tenant_id, id) );
CREATE TABLE public.summaries_due ( tenant_id uuid NOT NULL, tier text NOT NULL, conversation_id uuid NOT NULL, namespace text CONSTRAINT summaries_due_run_id_not_null NOT NULL, quarter timestamp with time zone NOT NULL, CONSTRAINT summaries_due_tier_check CHECK ((tier = ANY (ARRAY['thread'::text, 'session'::text, 'day'::text, 'week'::text]))), CONSTRAINT summaries_due_pkey PRIMARY KEY (tenant_id, tier, conversation_id, namespace, quarter) );
CREATE TABLE public.team_invites ( tenant_id uuid NOT NULL, id uuid NOT NULL, team_id uuid NOT NULL, user_id uuid NOT NULL, created_by uuid NOT NULL, created_at timestamp with time zone NOT NULL, expires_at timestamp with time zone NOT NULL, CONSTRAINT team_invites_pkey PRIMARY KEY (tenant_id, id) );
CREATE TABLE public.team_members ( tenant_id uuid NOT NULL, team_id uuid NOT NULL, user_id uuid NOT NULL, role text NOT NULL, joined_at timestamp with time zone NOT NULL, CONSTRAINT team_members_role_check CHECK ((role = ANY (ARRAY['member'::text, 'admin'::text]))), CONSTRAINT team_members_pkey PRIMARY KEY (tenant_id, team_id, user_id) );
CREATE TABLE public.teams ( tenant_id uuid NOT NULL, id uuid NOT NULL, name text NOT NULL, created_at timestamp with time zone NOT NULL, created_by uuid, CONSTRAINT teams_pkey PRIMARY KEY (tenant_id, id) );
CREATE TABLE public.tenants ( tenant_id uuid NOT NULL, slug text NOT NULL, created_at timestamp with time zone NOT NULL, CONSTRAINT tenants_pkey PRIMARY KEY (tenant_id), CONSTRAINT tenants_slug_key UNIQUE (slug) );
CREATE TABLE public.turns ( tenant_id uuid NOT NULL, id uuid NOT NULL, conversation_id uuid NOT NULL, message_id uuid NOT NULL, agent_id uuid NOT NULL, adapter text CONSTRAINT turns_door_not_null NOT NULL, state text NOT NULL, claimed_by bigint NOT NULL, queued_at timestamp with time zone NOT NULL, answered_at timestamp with time zone, sent_at timestamp with time zone, reply_id uuid, failure text, model text, prompt jsonb, timings_ms jsonb, counted_tokens integer, prompt_tokens integer, completion_tokens integer, cached_tokens integer, reused_tokens integer, prompt_expired boolean DEFAULT false NOT NULL, CONSTRAINT turns_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'answered'::text, 'sent'::text]))), CONSTRAINT turns_pkey PRIMARY KEY (tenant_id, id) );
CREATE TABLE public.usage_reservations ( tenant_id uuid NOT NULL, id uuid NOT NULL, kind text NOT NULL, agent text NOT NULL, tokens bigint NOT NULL, cost numeric NOT NULL, expires_at timestamp with time zone NOT NULL, CONSTRAINT usage_reservations_pkey PRIMARY KEY (tenant_id, id) );
CREATE TABLE public.users ( tenant_id uuid NOT NULL, id uuid NOT NULL, name text NOT NULL, admin boolean DEFAULT false NOT NULL, created_at timestamp with time zone NOT NULL, person_id uuid, opted_out boolean DEFAULT false NOT NULL, reads_rooms boolean DEFAULT false NOT NULL, usage_erasures bigint DEFAULT 0 NOT NULL, import_id uuid DEFAULT public.current_import(), CONSTRAINT users_pkey PRIMARY KEY (tenant_id, id) );
CREATE TABLE public.voice_notes ( tenant_id uuid NOT NULL, message_id uuid NOT NULL, adapter text NOT NULL, claimed_by bigint NOT NULL, tries smallint DEFAULT 1 NOT NULL, CONSTRAINT voice_notes_pkey PRIMARY KEY (tenant_id, message_id) );
CREATE TABLE public.web_sessions ( tenant_id uuid NOT NULL, id uuid NOT NULL, user_id uuid NOT NULL, digest bytea NOT NULL, created_at timestamp with time zone NOT NULL, expires_at timestamp with time zone NOT NULL, last_used_at timestamp with time zone, browser text NOT NULL, CONSTRAINT web_sessions_pkey PRIMARY KEY (tenant_id, id), CONSTRAINT web_sessions_tenant_id_digest_key UNIQUE (tenant_id, digest) );
CREATE TABLE public.workspaces ( tenant_id uuid NOT NULL, platform text NOT NULL, workspace text NOT NULL, created_at timestamp with time zone NOT NULL, history_unread_since timestamp with time zone, CONSTRAINT workspaces_pkey PRIMARY KEY (tenant_id, platform, workspace) );
ALTER TABLE ONLY public.episodes ADD CONSTRAINT episodes_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.lineage ADD CONSTRAINT lineage_pkey PRIMARY KEY (tenant_id, item_id, source_id);
ALTER TABLE ONLY public.memories ADD CONSTRAINT memories_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.messages ADD CONSTRAINT messages_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.recall_index ADD CONSTRAINT recall_index_pkey PRIMARY KEY (tenant_id, id);
CREATE INDEX api_keys_by_user ON public.api_keys USING btree (tenant_id, user_id, created_at);
CREATE INDEX api_requests_by_time ON public.api_requests USING btree (tenant_id, created_at);
CREATE INDEX app_codes_by_key ON public.app_codes USING btree (tenant_id, key_id);
CREATE INDEX app_tokens_by_key ON public.app_tokens USING btree (tenant_id, key_id);
CREATE INDEX audit_events_by_time ON public.audit_events USING btree (tenant_id, at, id);
CREATE INDEX commands_unanswered ON public.commands USING btree (tenant_id, adapter) WHERE (call IS NOT NULL);
CREATE INDEX compactions_latest ON public.compactions USING btree (tenant_id, conversation_id, agent_id, namespace, made_at DESC, made_seq DESC);
CREATE INDEX conversations_by_import ON public.conversations USING btree (tenant_id, import_id) WHERE (import_id IS NOT NULL);
CREATE INDEX conversations_by_name ON public.conversations USING btree (tenant_id, platform, workspace, kind, name);
CREATE INDEX conversations_by_platform ON public.conversations USING btree (tenant_id, platform, workspace) WHERE (seen_id IS NOT NULL);
CREATE INDEX conversations_by_project ON public.conversations USING btree (tenant_id, project_id) WHERE (project_id IS NOT NULL);
CREATE INDEX conversations_by_room ON public.conversations USING btree (tenant_id, room_id) WHERE (room_id IS NOT NULL);
CREATE INDEX conversations_sessions_by_user ON public.conversations USING btree (tenant_id, user_id) WHERE (kind = 'session'::text);
CREATE INDEX conversations_with_later_ids ON public.conversations USING btree (tenant_id, platform, workspace) WHERE (later_ids <> '{}'::text[]);
CREATE INDEX deliveries_by_external_id ON public.deliveries USING btree (tenant_id, external_id);
CREATE INDEX digests_due ON public.digests USING btree (tenant_id, due_at);
CREATE INDEX episodes_by_message ON public.episodes USING btree (tenant_id, message_id);
CREATE INDEX extraction_queue_by_scope ON public.extraction_queue USING btree (tenant_id, conversation_id, namespace, visibility);
CREATE INDEX facts_by_key ON public.facts USING btree (tenant_id, namespace, key, valid_from);
CREATE INDEX facts_by_user ON public.facts USING btree (tenant_id, user_id, id);
CREATE UNIQUE INDEX facts_current ON public.facts USING btree (tenant_id, namespace, visibility, key) WHERE (valid_to IS NULL);
CREATE INDEX gateway_exchanges_by_age ON public.gateway_exchanges USING btree (tenant_id, said_at);
CREATE INDEX gateway_exchanges_waiting ON public.gateway_exchanges USING btree (tenant_id, user_id, vendor, said_at) WHERE (learnt_at IS NULL);
CREATE INDEX gateway_turns_by_age ON public.gateway_turns USING btree (tenant_id, created_at);
CREATE INDEX identities_by_user ON public.identities USING btree (tenant_id, user_id);
CREATE INDEX landmarks_by_namespace ON public.landmarks USING btree (tenant_id, namespace, decided_at);
CREATE INDEX landmarks_by_user ON public.landmarks USING btree (tenant_id, user_id, id);
CREATE INDEX lineage_by_source ON public.lineage USING btree (tenant_id, source_id);
CREATE INDEX members_by_import ON public.members USING btree (tenant_id, import_id) WHERE (import_id IS NOT NULL);
CREATE INDEX members_by_user ON public.members USING btree (tenant_id, user_id) WHERE (left_at IS NULL);
CREATE INDEX membership_readings_by_room ON public.membership_readings USING btree (tenant_id, room_id);
CREATE INDEX memories_by_key ON public.memories USING btree (tenant_id, user_id, key) WHERE (key IS NOT NULL);
CREATE INDEX memories_by_namespace ON public.memories USING btree (tenant_id, namespace, created_at DESC, id DESC);
CREATE INDEX memories_by_user ON public.memories USING btree (tenant_id, user_id, id);
CREATE INDEX memories_entries ON public.memories USING btree (tenant_id) WHERE ((trashed_at IS NULL) AND (superseded_by IS NULL) AND (merged_into IS NULL) AND (origin <> 'extracted'::text) AND (starts_with(namespace, 'entries:'::text) OR starts_with(namespace, 'team:'::text) OR starts_with(namespace, 'project:'::text)));
CREATE INDEX memories_extracted ON public.memories USING btree (tenant_id, namespace, visibility, user_id) WHERE ((origin = 'extracted'::text) AND (trashed_at IS NULL));
CREATE INDEX memories_merged ON public.memories USING btree (tenant_id, merged_into) WHERE (merged_into IS NOT NULL);
CREATE INDEX memories_shared_with_teams ON public.memories USING btree (tenant_id, user_id, namespace) WHERE starts_with(namespace, 'team:'::text);
CREATE INDEX memories_superseded ON public.memories USING btree (tenant_id, superseded_by) WHERE (superseded_by IS NOT NULL);
CREATE INDEX memories_to_expire ON public.memories USING btree (tenant_id, expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX memories_to_purge ON public.memories USING btree (tenant_id, trashed_at) WHERE (trashed_at IS NOT NULL);
CREATE UNIQUE INDEX messages_by_conversation ON public.messages USING btree (tenant_id, conversation_id, at, seq);
CREATE INDEX messages_by_external_id ON public.messages USING btree (tenant_id, external_id);
CREATE INDEX messages_by_import ON public.messages USING btree (tenant_id, import_id) WHERE (import_id IS NOT NULL);
CREATE INDEX messages_by_user ON public.messages USING btree (tenant_id, user_id, id);
CREATE INDEX messages_ephemeral ON public.messages USING btree (tenant_id, id) WHERE ephemeral;
CREATE INDEX messages_skipped ON public.messages USING btree (tenant_id, id) WHERE (skipped IS NOT NULL);
CREATE INDEX messages_to_index ON public.messages USING btree (tenant_id, conversation_id, seq) WHERE (NOT indexed);
CREATE INDEX model_usage_by_user ON public.model_usage USING btree (tenant_id, user_id, day);
CREATE INDEX oauth_clients_by_time ON public.oauth_clients USING btree (created_at) WHERE (used_at IS NULL);
CREATE INDEX openid_logins_by_user ON public.openid_logins USING btree (tenant_id, user_id, created_at);
CREATE INDEX operation_totals_by_user ON public.operation_totals USING btree (tenant_id, user_id, month);
CREATE INDEX posted_files_by_user ON public.posted_files USING btree (tenant_id, user_id);
CREATE INDEX projects_by_slug ON public.projects USING btree (tenant_id, slug);
CREATE INDEX quarantine_by_user ON public.quarantine USING btree (tenant_id, user_id, id);
CREATE INDEX quarantine_pending ON public.quarantine USING btree (tenant_id, namespace, at) WHERE (state = 'pending'::text);
CREATE INDEX quota_notices_untold ON public.quota_notices USING btree (tenant_id, month) WHERE (told_at IS NULL);
CREATE INDEX recall_index_scan ON public.recall_index USING btree (tenant_id, namespace) INCLUDE (id, visibility, user_id, vendors, at, expires_at, length, signature, magnitude);
CREATE INDEX recall_index_to_embed ON public.recall_index USING btree (tenant_id, at, id) WHERE (embedding IS NULL);
CREATE INDEX recall_terms_by_item ON public.recall_terms USING btree (tenant_id, item_id);
CREATE INDEX recall_terms_scan ON public.recall_terms USING btree (tenant_id, namespace, term) INCLUDE (item_id, tf, length, visibility, user_id, vendors, at, expires_at);
CREATE INDEX reminders_by_user ON public.reminders USING btree (tenant_id, user_id, id);
CREATE INDEX reminders_due ON public.reminders USING btree (tenant_id, due_at) WHERE (state = 'open'::text);
CREATE INDEX reminders_refused ON public.reminders USING btree (tenant_id, due_at) WHERE (state = 'refused'::text);
CREATE INDEX summaries_by_namespace ON public.summaries USING btree (tenant_id, namespace, tier, ends_at DESC);
CREATE INDEX team_invites_by_user ON public.team_invites USING btree (tenant_id, user_id);
CREATE UNIQUE INDEX team_invites_once ON public.team_invites USING btree (tenant_id, team_id, user_id);
CREATE INDEX team_members_by_user ON public.team_members USING btree (tenant_id, user_id);
CREATE INDEX turns_by_agent ON public.turns USING btree (tenant_id, conversation_id, agent_id, queued_at DESC) WHERE (prompt IS NOT NULL);
CREATE INDEX turns_by_answer ON public.turns USING btree (tenant_id, answered_at) WHERE (answered_at IS NOT NULL);
CREATE INDEX turns_by_conversation ON public.turns USING btree (tenant_id, conversation_id, queued_at);
CREATE INDEX turns_by_message ON public.turns USING btree (tenant_id, message_id);
CREATE INDEX turns_open ON public.turns USING btree (tenant_id, queued_at) WHERE (state <> 'sent'::text);
CREATE INDEX turns_with_prompt ON public.turns USING btree (tenant_id, answered_at) WHERE (prompt IS NOT NULL);
CREATE INDEX users_by_import ON public.users USING btree (tenant_id, import_id) WHERE (import_id IS NOT NULL);
CREATE INDEX users_by_person ON public.users USING btree (tenant_id, person_id) WHERE (person_id IS NOT NULL);
CREATE INDEX web_sessions_by_user ON public.web_sessions USING btree (tenant_id, user_id, created_at);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON public.audit_anchors FOR EACH ROW EXECUTE FUNCTION public.refuse_audit_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON public.audit_events FOR EACH ROW EXECUTE FUNCTION public.refuse_audit_change();
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON public.audit_seals FOR EACH ROW EXECUTE FUNCTION public.refuse_audit_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON public.audit_anchors FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_audit_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON public.audit_events FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_audit_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON public.audit_seals FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_audit_change();
CREATE TRIGGER messages_edited AFTER UPDATE OF text ON public.messages FOR EACH ROW WHEN (((old.text IS DISTINCT FROM new.text) AND (new.agent_id IS NULL) AND (NOT new.ephemeral))) EXECUTE FUNCTION public.note_edited();
CREATE TRIGGER messages_erased AFTER DELETE ON public.messages REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.note_summaries_due();
CREATE TRIGGER messages_said AFTER INSERT ON public.messages REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.note_summaries_due();
CREATE TRIGGER users_opted AFTER UPDATE OF opted_out ON public.users FOR EACH ROW WHEN ((old.opted_out IS DISTINCT FROM new.opted_out)) EXECUTE FUNCTION public.note_opted();
ALTER TABLE ONLY public.agents ADD CONSTRAINT agents_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(tenant_id);
ALTER TABLE ONLY public.api_keys ADD CONSTRAINT api_keys_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES public.users(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.api_requests ADD CONSTRAINT api_requests_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES public.users(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.app_codes ADD CONSTRAINT app_codes_tenant_id_key_id_fkey FOREIGN KEY (tenant_id, key_id) REFERENCES public.api_keys(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.app_tokens ADD CONSTRAINT app_tokens_tenant_id_key_id_fkey FOREIGN KEY (tenant_id, key_id) REFERENCES public.api_keys(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.audit_anchors ADD CONSTRAINT audit_anchors_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(tenant_id);
ALTER TABLE ONLY public.audit_events ADD CONSTRAINT audit_events_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(tenant_id);
ALTER TABLE ONLY public.audit_seals ADD CONSTRAINT audit_seals_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(tenant_id);
ALTER TABLE ONLY public.audit_unsealed ADD CONSTRAINT audit_unsealed_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(tenant_id);
ALTER TABLE ONLY public.changes ADD CONSTRAINT changes_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(tenant_id);
ALTER TABLE ONLY public.compactions ADD CONSTRAINT compactions_tenant_id_conversation_id_fkey FOREIGN KEY (tenant_id, conversation_id) REFERENCES public.conversations(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.conversations ADD CONSTRAINT conversations_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(tenant_id);
ALTER TABLE ONLY public.conversations ADD CONSTRAINT conversations_tenant_id_project_id_fkey FOREIGN KEY (tenant_id, project_id) REFERENCES public.projects(tenant_id, id) ON DELETE SET NULL (project_id);
ALTER TABLE ONLY public.conversations ADD CONSTRAINT conversations_tenant_id_room_id_fkey FOREIGN KEY (tenant_id, room_id) REFERENCES public.conversations(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.deliveries ADD CONSTRAINT deliveries_tenant_id_turn_id_fkey FOREIGN KEY (tenant_id, turn_id) REFERENCES public.turns(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.digests ADD CONSTRAINT digests_tenant_id_conversation_id_fkey FOREIGN KEY (tenant_id, conversation_id) REFERENCES public.conversations(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.episodes ADD CONSTRAINT episodes_tenant_id_message_id_fkey FOREIGN KEY (tenant_id, message_id) REFERENCES public.messages(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.erased ADD CONSTRAINT erased_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(tenant_id);
ALTER TABLE ONLY public.extraction_batches ADD CONSTRAINT extraction_batches_tenant_id_conversation_id_fkey FOREIGN KEY (tenant_id, conversation_id) REFERENCES public.conversations(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.extraction_queue ADD CONSTRAINT extraction_queue_tenant_id_message_id_fkey FOREIGN KEY (tenant_id, message_id) REFERENCES public.messages(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.facts ADD CONSTRAINT facts_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(tenant_id);
ALTER TABLE ONLY public.gateway_exchanges ADD CONSTRAINT gateway_exchanges_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES public.users(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.gateway_forgets ADD CONSTRAINT gateway_forgets_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES public.users(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.gateway_turns ADD CONSTRAINT gateway_turns_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES public.users(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.identities ADD CONSTRAINT identities_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES public.users(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.imports ADD CONSTRAINT imports_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(tenant_id);
ALTER TABLE ONLY public.landmarks ADD CONSTRAINT landmarks_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(tenant_id);
ALTER TABLE ONLY public.lineage ADD CONSTRAINT lineage_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(tenant_id);
ALTER TABLE ONLY public.link_codes ADD CONSTRAINT link_codes_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES public.users(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.login_links ADD CONSTRAINT login_links_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES public.users(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.members ADD CONSTRAINT members_tenant_id_conversation_id_fkey FOREIGN KEY (tenant_id, conversation_id) REFERENCES public.conversations(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.members ADD CONSTRAINT members_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES public.users(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.membership_readings ADD CONSTRAINT membership_readings_tenant_id_connection_id_fkey FOREIGN KEY (tenant_id, connection_id) REFERENCES public.connections(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.memories ADD CONSTRAINT memories_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(tenant_id);
ALTER TABLE ONLY public.messages ADD CONSTRAINT messages_tenant_id_conversation_id_fkey FOREIGN KEY (tenant_id, conversation_id) REFERENCES public.conversations(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.openid_logins ADD CONSTRAINT openid_logins_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES public.users(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.personal_settings ADD CONSTRAINT personal_settings_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES public.users(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.posted_files ADD CONSTRAINT posted_files_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES public.users(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.project_members ADD CONSTRAINT project_members_tenant_id_project_id_fkey FOREIGN KEY (tenant_id, project_id) REFERENCES public.projects(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.project_members ADD CONSTRAINT project_members_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES public.users(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.projects ADD CONSTRAINT projects_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(tenant_id);
ALTER TABLE ONLY public.quarantine ADD CONSTRAINT quarantine_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(tenant_id);
ALTER TABLE ONLY public.quota_notices ADD CONSTRAINT quota_notices_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES public.users(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.recall_index ADD CONSTRAINT recall_index_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(tenant_id);
ALTER TABLE ONLY public.recall_terms ADD CONSTRAINT recall_terms_tenant_id_item_id_fkey FOREIGN KEY (tenant_id, item_id) REFERENCES public.recall_index(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.receipts ADD CONSTRAINT receipts_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(tenant_id);
ALTER TABLE ONLY public.reembedded ADD CONSTRAINT reembedded_tenant_id_id_fkey FOREIGN KEY (tenant_id, id) REFERENCES public.recall_index(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.reminders ADD CONSTRAINT reminders_tenant_id_conversation_id_fkey FOREIGN KEY (tenant_id, conversation_id) REFERENCES public.conversations(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.reminders ADD CONSTRAINT reminders_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES public.users(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.settings ADD CONSTRAINT settings_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(tenant_id);
ALTER TABLE ONLY public.summaries_due ADD CONSTRAINT summaries_due_tenant_id_conversation_id_fkey FOREIGN KEY (tenant_id, conversation_id) REFERENCES public.conversations(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.team_invites ADD CONSTRAINT team_invites_tenant_id_team_id_fkey FOREIGN KEY (tenant_id, team_id) REFERENCES public.teams(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.team_invites ADD CONSTRAINT team_invites_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES public.users(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.team_members ADD CONSTRAINT team_members_tenant_id_team_id_fkey FOREIGN KEY (tenant_id, team_id) REFERENCES public.teams(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.team_members ADD CONSTRAINT team_members_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES public.users(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.teams ADD CONSTRAINT teams_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(tenant_id);
ALTER TABLE ONLY public.turns ADD CONSTRAINT turns_tenant_id_conversation_id_fkey FOREIGN KEY (tenant_id, conversation_id) REFERENCES public.conversations(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.users ADD CONSTRAINT users_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(tenant_id);
ALTER TABLE ONLY public.voice_notes ADD CONSTRAINT voice_notes_tenant_id_message_id_fkey FOREIGN KEY (tenant_id, message_id) REFERENCES public.messages(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.web_sessions ADD CONSTRAINT web_sessions_tenant_id_user_id_fkey FOREIGN KEY (tenant_id, user_id) REFERENCES public.users(tenant_id, id) ON DELETE CASCADE;
ALTER TABLE ONLY public.workspaces ADD CONSTRAINT workspaces_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(tenant_id);
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN
        SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname <> 'tenants'
    LOOP
        EXECUTE format('ALTER TABLE public.%I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE public.%I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY tenant ON public.%I USING (tenant_id = public.current_tenant())', name);
    END LOOP;
END
$$;
GRANT USAGE ON SCHEMA public TO nexus_service;
REVOKE ALL ON FUNCTION public.analyze_grown_table(passed text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION public.analyze_grown_table(passed text[]) TO nexus_service;
REVOKE ALL ON FUNCTION public.audit_cut(through bigint, last_digest bytea, cut timestamp with time zone, signer text, anchor_signature bytea) FROM PUBLIC;
GRANT ALL ON FUNCTION public.audit_cut(through bigint, last_digest bytea, cut timestamp with time zone, signer text, anchor_signature bytea) TO nexus_service;
REVOKE ALL ON FUNCTION public.delete_unused_of_import(run uuid, OUT conversations bigint, OUT people bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION public.delete_unused_of_import(run uuid, OUT conversations bigint, OUT people bigint) TO nexus_service;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.connections, public.membership_readings, public.api_keys,
    public.api_requests, public.app_tokens, public.changes, public.commands, public.deliveries, public.deployment,
    public.digests, public.extraction_batches, public.extraction_queue, public.facts, public.gateway_exchanges,
    public.gateway_forgets, public.gateway_turns, public.job_runs, public.landmarks, public.link_codes, public.login_links,
    public.members, public.memories, public.messages, public.model_usage, public.oauth_clients, public.openid_logins,
    public.operation_totals, public.personal_settings, public.posted_files, public.project_members, public.quarantine,
    public.quota_notices, public.recall_index, public.reminders, public.settings, public.summaries_due, public.team_invites,
    public.team_members, public.turns, public.voice_notes, public.web_sessions TO nexus_service;
GRANT SELECT,INSERT,UPDATE ON TABLE public.conversations, public.imports, public.recall_terms, public.users TO nexus_service;
GRANT SELECT,INSERT ON TABLE public.agents, public.audit_events, public.audit_seals, public.episodes, public.erased,
    public.identities, public.receipts, public.tenants, public.workspaces TO nexus_service;
GRANT SELECT,INSERT,DELETE ON TABLE public.app_codes, public.audit_unsealed, public.compactions, public.lineage,
    public.projects, public.reembedded, public.retractions, public.summaries, public.teams, public.usage_reservations TO
    nexus_service;
GRANT SELECT ON TABLE public.audit_anchors, public.schema_migrations TO nexus_service;
GRANT UPDATE(erased_at) ON TABLE public.erased TO nexus_service;
GRANT UPDATE(trust) ON TABLE public.identities TO nexus_service;
GRANT UPDATE(trust_stated_at) ON TABLE public.identities TO nexus_service;
GRANT UPDATE(slug) ON TABLE public.projects TO nexus_service;
GRANT UPDATE(refused_since) ON TABLE public.retractions TO nexus_service;
GRANT UPDATE(retry_at) ON TABLE public.retractions TO nexus_service;
GRANT UPDATE(name) ON TABLE public.teams TO nexus_service;
GRANT UPDATE(history_unread_since) ON TABLE public.workspaces TO nexus_service;
