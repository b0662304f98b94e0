-- Which incidents a dead letter is of: an item that fails of several causes is of several, and none of them is over while it waits.
-- `dead_letters.incident_id` is the one that it failed for last.
CREATE TABLE letter_incidents (
    incident_id INTEGER NOT NULL REFERENCES incidents (id),
    letter_id   INTEGER NOT NULL REFERENCES dead_letters (id),
    PRIMARY KEY (incident_id, letter_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX letter_incidents_letter ON letter_incidents (letter_id);
INSERT INTO letter_incidents (incident_id, letter_id)
SELECT incident_id, id FROM dead_letters WHERE incident_id IN (SELECT id FROM incidents);
DELETE FROM incident_letters WHERE incident_id NOT IN (SELECT id FROM incidents);
DROP INDEX dead_letters_incident;

DROP TRIGGER dead_letters_count_opened;
CREATE TRIGGER dead_letters_count_opened AFTER INSERT ON dead_letters WHEN new.resolved_at IS NULL
BEGIN
    INSERT INTO letter_groups (cause_id, decision_id, open_count, version)
    VALUES (new.cause_id, new.decision_id, 1, (SELECT coalesce(max(version), 0) + 1 FROM letter_groups))
    ON CONFLICT (cause_id, decision_id) DO UPDATE SET open_count = open_count + 1, version = excluded.version;
END;

DROP TRIGGER dead_letters_count_changed;
CREATE TRIGGER dead_letters_count_changed AFTER UPDATE OF resolved_at, cause_id, decision_id ON dead_letters
BEGIN
    UPDATE letter_groups SET open_count = open_count - 1, version = (SELECT max(version) + 1 FROM letter_groups)
    WHERE cause_id = old.cause_id AND decision_id = old.decision_id AND old.resolved_at IS NULL;
    INSERT INTO letter_groups (cause_id, decision_id, open_count, version)
    SELECT new.cause_id, new.decision_id, 1, (SELECT coalesce(max(version), 0) + 1 FROM letter_groups) WHERE new.resolved_at IS NULL
    ON CONFLICT (cause_id, decision_id) DO UPDATE SET open_count = open_count + 1, version = excluded.version;
END;

CREATE TRIGGER dead_letters_left_incidents AFTER UPDATE OF resolved_at ON dead_letters
WHEN old.resolved_at IS NULL AND new.resolved_at IS NOT NULL
BEGIN
    UPDATE incident_letters SET open_count = open_count - 1
    WHERE incident_id IN (SELECT incident_id FROM letter_incidents WHERE letter_id = new.id);
END;

-- Dead letters are never deleted.
DROP TRIGGER dead_letters_count_forgotten;

CREATE TRIGGER letter_incidents_joined AFTER INSERT ON letter_incidents
WHEN (SELECT resolved_at FROM dead_letters WHERE id = new.letter_id) IS NULL
BEGIN
    INSERT INTO incident_letters (incident_id, open_count) VALUES (new.incident_id, 1)
    ON CONFLICT (incident_id) DO UPDATE SET open_count = open_count + 1;
END;
