-- What batches say of workflows, one row a batch, until the memory below has it.
CREATE TABLE symptom_signals (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    signals TEXT NOT NULL
) STRICT;

-- Memory of symptoms, one part a workflow, as of the signals up to `applied_id`. It is saved in small transactions: a part counts
-- when it is not newer than the setting `symptom_memory`, which the last of them moves.
CREATE TABLE symptom_memory (
    part       TEXT    NOT NULL,
    applied_id INTEGER NOT NULL,
    body       BLOB    NOT NULL,
    PRIMARY KEY (part, applied_id)
) STRICT, WITHOUT ROWID;
INSERT INTO settings (name, value) VALUES ('symptom_memory', '0');

-- Symptoms that fire, and what became of each: the incident that it opened or joined, or the named reason why nobody was paged.
CREATE TABLE symptom_states (
    key  TEXT PRIMARY KEY,
    told TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Since when a workflow of config is known: one that was never heard is missed from then on.
CREATE TABLE symptom_known (
    workflow TEXT    PRIMARY KEY,
    since    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- When a dead letter of the workflow was last resolved.
ALTER TABLE workflows ADD COLUMN letter_resolved_at INTEGER;
