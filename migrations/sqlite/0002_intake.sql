-- What came in. Rows of `events` are written once and never updated.
-- Row numbers grow with arrival, so inserts touch the end of the tree; the one random index holds 16 bytes a row.

CREATE TABLE workflows (
    id               INTEGER PRIMARY KEY,
    name             TEXT    NOT NULL UNIQUE,
    first_heard_at   INTEGER NOT NULL,
    last_heard_at    INTEGER NOT NULL,
    heartbeat_status TEXT,
    heartbeat_at     INTEGER
) STRICT;

-- A cause is what counters are kept by: a fingerprint with its type, class, disposition, downstream and strategy.
CREATE TABLE causes (
    id             INTEGER PRIMARY KEY,
    key            BLOB    NOT NULL UNIQUE,
    fingerprint    TEXT    NOT NULL,
    workflow_id    INTEGER NOT NULL REFERENCES workflows (id),
    event_type     TEXT    NOT NULL,
    class          TEXT    NOT NULL,
    disposition    TEXT    NOT NULL,
    step           TEXT,
    downstream     TEXT,
    error_type     TEXT,
    strategy       TEXT,
    sample         TEXT    NOT NULL,
    first_seen_at  INTEGER NOT NULL,
    resolved_at    INTEGER,
    regressed_at   INTEGER,
    regressed_from INTEGER
) STRICT;
CREATE INDEX causes_fingerprint ON causes (fingerprint);
CREATE INDEX causes_workflow ON causes (workflow_id, disposition);

-- Who was to hear of an event and why, or why not. Interned: many events share one.
CREATE TABLE decisions (
    id             INTEGER PRIMARY KEY,
    config_version TEXT    NOT NULL,
    routes         TEXT    NOT NULL,
    page           TEXT    NOT NULL,
    digests        TEXT    NOT NULL,
    fate           TEXT    NOT NULL,
    fate_id        TEXT    NOT NULL,
    reason         TEXT    NOT NULL,
    UNIQUE (config_version, routes, fate, fate_id, reason)
) STRICT;

CREATE TABLE decision_targets (
    digest      TEXT    NOT NULL,
    receiver    TEXT    NOT NULL,
    decision_id INTEGER NOT NULL REFERENCES decisions (id),
    PRIMARY KEY (digest, receiver, decision_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    seq          INTEGER PRIMARY KEY,
    key          BLOB    NOT NULL UNIQUE,
    content_hash INTEGER NOT NULL,
    received_at  INTEGER NOT NULL,
    occurred_at  INTEGER NOT NULL,
    cause_id     INTEGER NOT NULL REFERENCES causes (id),
    decision_id  INTEGER NOT NULL REFERENCES decisions (id),
    class_rule   TEXT    NOT NULL,
    body         TEXT    NOT NULL
) STRICT;

-- Counts by minute of arrival. A minute is milliseconds since 1970, cut.
CREATE TABLE counters (
    minute       INTEGER NOT NULL,
    cause_id     INTEGER NOT NULL,
    decision_id  INTEGER NOT NULL,
    event_count  INTEGER NOT NULL,
    ok_count     INTEGER NOT NULL,
    failed_count INTEGER NOT NULL,
    took_ms      INTEGER NOT NULL,
    took_count   INTEGER NOT NULL,
    late_count   INTEGER NOT NULL,
    PRIMARY KEY (minute, cause_id, decision_id)
) STRICT, WITHOUT ROWID;

-- Last totals of producers that report cumulative outcomes.
CREATE TABLE producers (
    workflow_id  INTEGER NOT NULL,
    producer     TEXT    NOT NULL,
    epoch        TEXT    NOT NULL,
    ok_total     INTEGER NOT NULL,
    failed_total INTEGER NOT NULL,
    PRIMARY KEY (workflow_id, producer, epoch)
) STRICT, WITHOUT ROWID;

CREATE TABLE quarantine (
    id          INTEGER PRIMARY KEY,
    stream      TEXT    NOT NULL,
    sequence    INTEGER NOT NULL,
    subject     TEXT    NOT NULL,
    headers     TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    explanation TEXT    NOT NULL,
    received_at INTEGER NOT NULL,
    raw         BLOB    NOT NULL,
    UNIQUE (stream, sequence, received_at)
) STRICT;
CREATE INDEX quarantine_received ON quarantine (received_at);

-- Totals since the store was made, and how far each stream was read.
CREATE TABLE totals (
    name  TEXT    PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO totals (name, value) VALUES ('events', 0), ('duplicates', 0), ('quarantined', 0);

CREATE TABLE streams (
    name            TEXT    PRIMARY KEY,
    stream_made_at  INTEGER NOT NULL,
    last_sequence   INTEGER NOT NULL,
    last_arrival_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
