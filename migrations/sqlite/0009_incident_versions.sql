-- Grows with each change of an incident, from when it was opened, so that who has read it can see that it is the same.
ALTER TABLE incidents ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
