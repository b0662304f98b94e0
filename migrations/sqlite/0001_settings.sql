-- Keys and counters of the service itself.
CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO settings (name, value) VALUES ('next_number', '1');
