-- What batches say of workflows, one row a batch, until every part of the memory that it concerns is kept below.
CREATE TABLE symptom_signals (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    signals TEXT NOT NULL
) STRICT;

-- Memory of symptoms, one part a workflow. Signals up to `applied_id` are in it.
CREATE TABLE symptom_memory (
    part       TEXT    PRIMARY KEY,
    applied_id INTEGER NOT NULL,
    body       BLOB    NOT NULL
) STRICT, WITHOUT ROWID;

-- Symptoms that fire, and what became of each: the incident that it opened or joined, or the named reason why nobody was paged.
CREATE TABLE symptom_states (
    key  TEXT PRIMARY KEY,
    told TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- When a dead letter of the workflow was last resolved.
ALTER TABLE workflows ADD COLUMN letter_resolved_at INTEGER;
