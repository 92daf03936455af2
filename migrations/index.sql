-- The search index: a file of its own beside the archive, derived from it. Anyone may delete it at any time.

-- How far each session is in the index.
CREATE TABLE indexed (
    session INTEGER PRIMARY KEY,            -- session.key
    nonce   INTEGER NOT NULL,               -- session.nonce: another one means that the rows are of a lost session
    rows    INTEGER NOT NULL                -- seq of the first row that is not in the index
) STRICT;

-- One row. archive.uuid and archive.change up to which every session was looked at.
CREATE TABLE watermark (
    only    INTEGER PRIMARY KEY CHECK (only = 1),
    uuid    TEXT    NOT NULL,
    change  INTEGER NOT NULL
) STRICT;

-- rowid is entry.ref. The text is not stored: it is read from the lines.
CREATE VIRTUAL TABLE text USING fts5 (
    talk,      -- user and assistant text, summaries, custom messages, labels
    tool,      -- tool names and arguments, tool output, shell commands and their output
    name,      -- session names
    thinking,
    content = '', contentless_delete = 1, columnsize = 1,
    tokenize = "unicode61 remove_diacritics 2"
);

-- Segments of the index are merged eight at a time: half the work of the default four, for searches that are as fast.
INSERT INTO text (text, rank) VALUES ('automerge', 8);
