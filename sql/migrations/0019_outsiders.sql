-- Whether people of other organisations read a room too (a channel that is shared with them).
ALTER TABLE conversations ADD COLUMN outsiders boolean NOT NULL DEFAULT false;
