-- Changes with each write of an incident, so that who has read it can see that it is the same. A new incident begins with the
-- milliseconds of its opening, because row numbers come again; one from before this column begins with 0.
ALTER TABLE incidents ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
