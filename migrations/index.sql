-- The search index: a file of its own beside the archive, derived from it. Anyone may delete it at any time.

-- How far each session is in the index.
CREATE TABLE indexed (
    session INTEGER PRIMARY KEY,            -- session.key
    nonce   INTEGER NOT NULL,               -- session.nonce: another one means that what is here is of a lost session
    rows    INTEGER NOT NULL,               -- seq of the first row that is not in the index
    version INTEGER NOT NULL                -- of package fulltext when it was indexed
) STRICT;

-- One row. archive.uuid and archive.change up to which every session was looked at.
CREATE TABLE watermark (
    only    INTEGER PRIMARY KEY CHECK (only = 1),
    uuid    TEXT    NOT NULL,
    change  INTEGER NOT NULL
) STRICT;

-- A part of the index: documents, which are rows of the entry table, and their words. It never changes. The blobs are
-- those of fulltext.Segment.
CREATE TABLE segment (
    key       INTEGER PRIMARY KEY AUTOINCREMENT CHECK (key < 549755813888), -- 2^39: see block.key
    version   INTEGER NOT NULL,             -- of package fulltext
    docs      INTEGER NOT NULL,             -- documents
    bytes     INTEGER NOT NULL,             -- of all blobs
    sum       INTEGER NOT NULL,             -- XXH64 of runs and directory, one behind the other
    rows_sum  INTEGER NOT NULL,             -- XXH64 of seqs and times
    runs      BLOB    NOT NULL,             -- which sessions the documents are of
    directory BLOB    NOT NULL,             -- the first word of each block
    seqs      BLOB    NOT NULL,             -- which rows of the sessions
    times     BLOB    NOT NULL              -- when they were written
) STRICT;

-- Words of a segment that follow each other.
CREATE TABLE block (
    key   INTEGER PRIMARY KEY,              -- segment.key << 24 | place among the blocks of the segment, from 0
    sum   INTEGER NOT NULL,                 -- XXH64 of the blobs, one behind the other
    heads BLOB NOT NULL,                    -- for each word how many documents have it, and where its list is
    words BLOB NOT NULL,                    -- a zstd frame of the words in order
    lists BLOB NOT NULL                     -- lists of documents
) STRICT;

-- Documents of one word that many have.
CREATE TABLE list (
    key   INTEGER PRIMARY KEY,              -- segment.key << 24 | number of the list, from 0
    sum   INTEGER NOT NULL,                 -- XXH64 of docs
    docs  BLOB NOT NULL,
    nexts BLOB NOT NULL                     -- a zstd frame: for each document which words come behind the word
) STRICT;

-- Documents that are gone but still in a segment.
CREATE TABLE lost (
    session INTEGER NOT NULL,
    nonce   INTEGER NOT NULL,
    version INTEGER NOT NULL,               -- segment.version
    PRIMARY KEY (session, nonce, version)
) STRICT, WITHOUT ROWID;
