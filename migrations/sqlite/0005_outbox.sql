-- What is to be said to whom. A row is written in the transaction of the decision that asks for it.
CREATE TABLE outbox (
    id               INTEGER PRIMARY KEY,
    number           INTEGER NOT NULL,
    kind             TEXT    NOT NULL,
    priority         INTEGER NOT NULL,
    receiver         TEXT    NOT NULL,
    address          TEXT,
    workflow         TEXT,
    incident_id      INTEGER,
    digest_id        INTEGER,
    template         TEXT    NOT NULL,
    view             TEXT    NOT NULL,
    content          TEXT    NOT NULL,
    state            TEXT    NOT NULL CHECK (state IN ('pending', 'sent', 'unsure', 'dead')),
    -- The named reason of the state, where it is not plain success.
    reason           TEXT,
    -- Counted when a try begins, so that a kill can't hide one.
    attempts         INTEGER NOT NULL DEFAULT 0,
    unsure_attempts  INTEGER NOT NULL DEFAULT 0,
    due_at           INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    sent_at          INTEGER,
    last_error       TEXT,
    lease_owner      TEXT,
    lease_until      INTEGER,
    fallback_of      INTEGER REFERENCES outbox (id),
    fallback_id      INTEGER REFERENCES outbox (id)
) STRICT;

-- The next entry of each receiver is one seek.
CREATE INDEX outbox_pending ON outbox (receiver, priority, due_at, id) WHERE state = 'pending';
CREATE INDEX outbox_incident ON outbox (incident_id) WHERE incident_id IS NOT NULL;
CREATE INDEX outbox_digest ON outbox (digest_id) WHERE digest_id IS NOT NULL;
CREATE INDEX outbox_fallback ON outbox (fallback_of) WHERE fallback_of IS NOT NULL;

-- Results of a mail, one row a mailbox: who has it is not sent it again, and who refuses it holds up nobody.
CREATE TABLE outbox_recipients (
    entry_id         INTEGER NOT NULL REFERENCES outbox (id) ON DELETE CASCADE,
    address          TEXT    NOT NULL,
    state            TEXT    NOT NULL CHECK (state IN ('waiting', 'sent', 'unsure', 'refused')),
    unsure_attempts  INTEGER NOT NULL DEFAULT 0,
    last_error       TEXT,
    PRIMARY KEY (entry_id, address)
) STRICT, WITHOUT ROWID;

-- Receivers that are broken or have asked for a pause. `address` is empty unless the receiver stands for owners.
CREATE TABLE receiver_state (
    receiver         TEXT    NOT NULL,
    address          TEXT    NOT NULL DEFAULT '',
    broken_since     INTEGER,
    reason           TEXT,
    told_at          INTEGER,
    probe_at         INTEGER,
    paused_until     INTEGER,
    PRIMARY KEY (receiver, address)
) STRICT, WITHOUT ROWID;
