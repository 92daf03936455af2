-- +goose Up

-- A value that was fixed stays what it is: no later write replaces it or takes it away.
ALTER TABLE metadata ADD COLUMN fixed INTEGER NOT NULL DEFAULT 0 CHECK (fixed IN (0, 1));

-- The key under which a program asked for a session, so that asking again finds it. Primary data, as metadata: no line
-- holds it. A rebuild leaves it alone, backup, merge and salvage carry it, and it goes with its session.
CREATE TABLE idempotency (
    key     TEXT    PRIMARY KEY NOT NULL,
    session INTEGER NOT NULL UNIQUE REFERENCES session (key) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- A conversation that a session started beside its own. Primary data: no line holds it. A rebuild leaves it alone,
-- backup, merge and salvage carry it, and it goes with its session. Forks do not have it.
CREATE TABLE subagent (
    session     INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
    job         TEXT    NOT NULL,           -- names it within the session
    task        TEXT    NOT NULL,
    model       TEXT    NOT NULL,
    status      TEXT    NOT NULL,
    result      TEXT    NOT NULL,
    error       TEXT    NOT NULL,
    thinking    TEXT    NOT NULL,
    async       INTEGER NOT NULL CHECK (async IN (0, 1)),
    started_ms  INTEGER,
    finished_ms INTEGER,                    -- NULL: not finished
    usage       TEXT,                       -- JSON; NULL: unknown
    cost        REAL    NOT NULL,           -- US dollars
    context_percent INTEGER,                -- how full its context was at the end; NULL: unknown
    messages    BLOB    NOT NULL,           -- JSON array; last, since it may be long
    PRIMARY KEY (session, job)
) STRICT;

-- A session that a document store saves as a whole. Its lines are what was saved last. Primary data: a rebuild leaves it
-- alone, backup, merge and salvage carry it, and it goes with its session.
CREATE TABLE document (
    session    INTEGER PRIMARY KEY REFERENCES session (key) ON DELETE CASCADE,
    store      TEXT    NOT NULL,            -- of which store it is: the folder that its sessions are for
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,            -- of the last save
    save       INTEGER NOT NULL             -- grows with every save of the archive: orders saves of one millisecond
) STRICT;
CREATE INDEX document_updated ON document (store, updated_ms, save);

PRAGMA user_version = 3;
