-- What the doors need for images, for commands that a crash cut off, and for the first-use notice.

-- Which message of its platform a message answers.
ALTER TABLE messages ADD COLUMN reply_to text;

-- A command that a door has begun: what was called and where its answer goes, as long as that is not told (`call` goes with
-- the answer, and with it every word). `done` is set in the very transaction that the command changes something with.
ALTER TABLE commands_run
    ADD COLUMN door text,
    ADD COLUMN workspace text,
    ADD COLUMN process bigint,
    ADD COLUMN call jsonb,
    ADD COLUMN done boolean NOT NULL DEFAULT false;
CREATE INDEX commands_unanswered ON commands_run (tenant_id, door) WHERE call IS NOT NULL;

-- The first-use notice of a room: after which message it is posted, and its id on the platform once it stands there. It no
-- longer goes with an answer, but with the first message that is kept.
ALTER TABLE conversations
    ADD COLUMN notice_for text,
    ADD COLUMN notice_id text,
    DROP COLUMN noticed_by;
UPDATE conversations SET notice_id = '' WHERE noticed_at IS NOT NULL;
