-- The ledger of digests: how far each (digest, receiver) is told, and one frozen snapshot per window.
CREATE TABLE digest_cover (
    digest        TEXT    NOT NULL,
    receiver      TEXT    NOT NULL,
    covered_until INTEGER NOT NULL,
    schedule      TEXT    NOT NULL,
    in_force_since INTEGER,
    PRIMARY KEY (digest, receiver)
) STRICT, WITHOUT ROWID;

CREATE TABLE digests (
    id           INTEGER PRIMARY KEY,
    digest       TEXT    NOT NULL,
    receiver     TEXT    NOT NULL,
    window_start INTEGER NOT NULL,
    window_end   INTEGER NOT NULL,
    due_at       INTEGER NOT NULL,
    composed_at  INTEGER NOT NULL,
    state        TEXT    NOT NULL,
    late         INTEGER NOT NULL,
    incomplete   TEXT,
    number       INTEGER,
    counts       TEXT    NOT NULL,
    view         TEXT    NOT NULL,
    UNIQUE (digest, receiver, window_end)
) STRICT;

CREATE TABLE silences (
    id        INTEGER PRIMARY KEY,
    matcher   TEXT    NOT NULL,
    since     INTEGER NOT NULL,
    until     INTEGER NOT NULL,
    reason    TEXT    NOT NULL,
    by        TEXT    NOT NULL,
    protected INTEGER NOT NULL
) STRICT;
