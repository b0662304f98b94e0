-- Dead letters: failed items, kept until resolved. One open letter per key; a key is a hash of workflow and item, else of the event id.
CREATE TABLE dead_letters (
    id               INTEGER PRIMARY KEY,
    key              BLOB    NOT NULL,
    cause_id         INTEGER NOT NULL REFERENCES causes (id),
    decision_id      INTEGER NOT NULL REFERENCES decisions (id),
    item             TEXT,
    error_message    TEXT,
    links            TEXT    NOT NULL,
    payload          TEXT,
    payload_cut      INTEGER NOT NULL,
    failed_at        INTEGER NOT NULL,
    dead_lettered_at INTEGER NOT NULL,
    last_failed_at   INTEGER NOT NULL,
    attempt_count    INTEGER NOT NULL,
    times            INTEGER NOT NULL,
    incident_id      INTEGER,
    redrive_count    INTEGER NOT NULL,
    resolved_at      INTEGER,
    resolution_note  TEXT,
    resolved_by      TEXT
) STRICT;
CREATE UNIQUE INDEX dead_letters_open ON dead_letters (key) WHERE resolved_at IS NULL;
CREATE INDEX dead_letters_waiting ON dead_letters (cause_id, decision_id, dead_lettered_at) WHERE resolved_at IS NULL;
CREATE INDEX dead_letters_incident ON dead_letters (incident_id) WHERE incident_id IS NOT NULL;
CREATE INDEX dead_letters_resolved ON dead_letters (resolved_at) WHERE resolved_at IS NOT NULL;
CREATE INDEX dead_letters_arrived ON dead_letters (dead_lettered_at);

-- Incidents of protected workflows. `body` is the incident as the `incident` room knows it; the columns are what lists ask for.
CREATE TABLE incidents (
    id          INTEGER PRIMARY KEY,
    state       TEXT    NOT NULL,
    downstream  TEXT,
    opened_at   INTEGER NOT NULL,
    resolved_at INTEGER,
    body        TEXT    NOT NULL
) STRICT;
CREATE INDEX incidents_open ON incidents (state) WHERE state <> 'resolved';

-- Keys that lead to an incident which is not resolved.
CREATE TABLE incident_keys (
    key         TEXT    PRIMARY KEY,
    incident_id INTEGER NOT NULL REFERENCES incidents (id)
) STRICT, WITHOUT ROWID;

-- Which event belongs to which incident.
CREATE TABLE incident_events (
    event_seq   INTEGER PRIMARY KEY,
    incident_id INTEGER NOT NULL REFERENCES incidents (id)
) STRICT;
