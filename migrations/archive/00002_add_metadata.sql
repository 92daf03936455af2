-- +goose Up

-- What the program that owns a session born here keeps with it. No line holds it, and so no export does.
CREATE TABLE metadata (
    session INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
    key     TEXT    NOT NULL,
    value   TEXT    NOT NULL,               -- JSON, in the form of JSON.stringify
    PRIMARY KEY (session, key)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 2;
