-- How many dead letters are open, by cause and decision and by incident: kept beside every change of `dead_letters`, so that no digest
-- and no tick has to count them. A version grows with each change, so that a reader asks only for what changed since it last looked.
CREATE TABLE letter_groups (
    cause_id    INTEGER NOT NULL,
    decision_id INTEGER NOT NULL,
    open_count  INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    PRIMARY KEY (cause_id, decision_id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX letter_groups_version ON letter_groups (version);

CREATE TABLE incident_letters (
    incident_id INTEGER PRIMARY KEY,
    open_count  INTEGER NOT NULL
) STRICT;

INSERT INTO letter_groups (cause_id, decision_id, open_count, version)
SELECT cause_id, decision_id, count(*), row_number() OVER (ORDER BY cause_id, decision_id)
FROM dead_letters WHERE resolved_at IS NULL GROUP BY cause_id, decision_id;

INSERT INTO incident_letters (incident_id, open_count)
SELECT incident_id, count(*) FROM dead_letters WHERE resolved_at IS NULL AND incident_id IS NOT NULL GROUP BY incident_id;

CREATE TRIGGER dead_letters_count_opened AFTER INSERT ON dead_letters WHEN new.resolved_at IS NULL
BEGIN
    INSERT INTO letter_groups (cause_id, decision_id, open_count, version)
    VALUES (new.cause_id, new.decision_id, 1, (SELECT coalesce(max(version), 0) + 1 FROM letter_groups))
    ON CONFLICT (cause_id, decision_id) DO UPDATE SET open_count = open_count + 1, version = excluded.version;
    INSERT INTO incident_letters (incident_id, open_count) SELECT new.incident_id, 1 WHERE new.incident_id IS NOT NULL
    ON CONFLICT (incident_id) DO UPDATE SET open_count = open_count + 1;
END;

CREATE TRIGGER dead_letters_count_changed AFTER UPDATE OF resolved_at, cause_id, decision_id, incident_id ON dead_letters
BEGIN
    UPDATE letter_groups SET open_count = open_count - 1, version = (SELECT max(version) + 1 FROM letter_groups)
    WHERE cause_id = old.cause_id AND decision_id = old.decision_id AND old.resolved_at IS NULL;
    UPDATE incident_letters SET open_count = open_count - 1 WHERE incident_id = old.incident_id AND old.resolved_at IS NULL;
    INSERT INTO letter_groups (cause_id, decision_id, open_count, version)
    SELECT new.cause_id, new.decision_id, 1, (SELECT coalesce(max(version), 0) + 1 FROM letter_groups) WHERE new.resolved_at IS NULL
    ON CONFLICT (cause_id, decision_id) DO UPDATE SET open_count = open_count + 1, version = excluded.version;
    INSERT INTO incident_letters (incident_id, open_count)
    SELECT new.incident_id, 1 WHERE new.incident_id IS NOT NULL AND new.resolved_at IS NULL
    ON CONFLICT (incident_id) DO UPDATE SET open_count = open_count + 1;
END;

CREATE TRIGGER dead_letters_count_forgotten AFTER DELETE ON dead_letters WHEN old.resolved_at IS NULL
BEGIN
    UPDATE letter_groups SET open_count = open_count - 1, version = (SELECT max(version) + 1 FROM letter_groups)
    WHERE cause_id = old.cause_id AND decision_id = old.decision_id;
    UPDATE incident_letters SET open_count = open_count - 1 WHERE incident_id = old.incident_id;
END;

CREATE INDEX causes_regressed ON causes (regressed_at) WHERE regressed_at IS NOT NULL;
CREATE INDEX decisions_paged ON decisions (fate_id) WHERE fate = 'paged';
-- What stands in for a message is looked for when one is forgotten.
CREATE INDEX outbox_fallback_id ON outbox (fallback_id) WHERE fallback_id IS NOT NULL;
