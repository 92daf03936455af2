-- The archive.

CREATE TABLE archive (
    only       INTEGER PRIMARY KEY CHECK (only = 1),
    uuid       TEXT    NOT NULL,            -- names this archive among others
    created_ms INTEGER NOT NULL,            -- Unix milliseconds, UTC, as every column that ends in _ms
    change     INTEGER NOT NULL DEFAULT 0   -- grows by one with each transaction that changes lines
) STRICT;

CREATE TABLE chunk (
    key     INTEGER PRIMARY KEY,
    hash    BLOB    NOT NULL UNIQUE CHECK (length(hash) = 16), -- first half of the SHA-256 of the bytes
    size    INTEGER NOT NULL,               -- of the bytes, uncompressed
    codec   INTEGER NOT NULL CHECK (codec IN (0, 1)), -- 0: data is the bytes; 1: a zstd frame of them
    data    BLOB    NOT NULL
) STRICT;

CREATE TABLE document (
    session    INTEGER PRIMARY KEY REFERENCES session (key) ON DELETE CASCADE,
    store      TEXT    NOT NULL,            -- of which store it is: the folder that its sessions are for
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,            -- of the last save
    save       INTEGER NOT NULL             -- grows with every save of the archive: orders saves of one millisecond
) STRICT;

CREATE TABLE entry (
    ref      INTEGER PRIMARY KEY,           -- session.key << 26 | seq; seq counts rows of the session from 0 in file order
    line     INTEGER NOT NULL,              -- physical line, from 1
    part     INTEGER NOT NULL DEFAULT 0,    -- 0: the line; K: the K-th object recovered from it
    start    INTEGER NOT NULL,              -- offset of its first byte in the session
    size     INTEGER NOT NULL,              -- bytes, terminator excluded
    ending   INTEGER NOT NULL DEFAULT 1 CHECK (ending IN (0, 1, 2)), -- length of the terminator: none, LF, CR LF
    kind     TEXT    NOT NULL CHECK (kind IN ('entry', 'session', 'json', 'blank', 'malformed')),
    type     TEXT    CHECK (type IS NULL OR kind = 'entry'), -- NULL for an entry: no string
    role     TEXT,                          -- of a message entry
    id       TEXT,                          -- entry id; not unique. A lone surrogate stands as its escape
    parent   INTEGER,                       -- ref of the parent row; NULL: a root, an orphan, or its own parent (loop = 1)
    orphan   TEXT,                          -- parent id that no line has yet
    top      INTEGER NOT NULL DEFAULT 0 CHECK (top IN (0, 1)), -- 1: a root of the tree (also the earliest line of a cycle)
    loop     INTEGER,                       -- length of the cycle of parents that this row is part of
    ms       INTEGER,                       -- timestamp; NULL: none that JavaScript's Date reads
    digest   INTEGER,                       -- 64 bit hash of id, timestamp, type, role, text and usage: the same entry in forks
    target   TEXT,                          -- targetId of label and context_edit, firstKeptEntryId of compaction, fromId of branch_summary
    value    TEXT,                          -- label text, session name, custom type, tool name of a tool result
    -- What the path from the root gives, known where each parent link of it points to an earlier row; else NULL.
    depth    INTEGER,                       -- entries above it
    compaction INTEGER,                     -- ref of the latest compaction on the path, itself included
    kept     INTEGER,                       -- of a compaction: ref of the first kept entry on its path
    setting  INTEGER REFERENCES setting (key) -- model and thinking level here
) STRICT;

CREATE TABLE idempotency (
    key     TEXT    PRIMARY KEY NOT NULL,
    session INTEGER NOT NULL UNIQUE REFERENCES session (key) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE metadata (
    session INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
    key     TEXT    NOT NULL,
    value   TEXT    NOT NULL, fixed INTEGER NOT NULL DEFAULT 0 CHECK (fixed IN (0, 1)),               -- JSON, in the form of JSON.stringify
    PRIMARY KEY (session, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE piece (
    session INTEGER NOT NULL REFERENCES session (key) ON DELETE CASCADE,
    start   INTEGER NOT NULL,               -- offset of the chunk's first byte in the session
    chunk   INTEGER NOT NULL REFERENCES chunk (key),
    PRIMARY KEY (session, start)
) STRICT, WITHOUT ROWID;

CREATE TABLE session (
    key          INTEGER PRIMARY KEY AUTOINCREMENT CHECK (key < 137438953472), -- 2^37: see entry.ref
    id           TEXT    NOT NULL,          -- pi's session id; copies, forks and old versions share it
    source       INTEGER REFERENCES source (key), -- NULL: born here and in no file yet
    version      INTEGER NOT NULL DEFAULT 1, -- counts the versions of one source, from 1
    state        TEXT    NOT NULL CHECK (state IN (
                     'live',
                     'missing',             -- its source is gone
                     'superseded')),        -- its source was rewritten: a later version exists
    native       INTEGER NOT NULL DEFAULT 0 CHECK (native IN (0, 1)), -- 1: born here, may be appended to
    nonce        INTEGER NOT NULL,          -- random; tells a session from another that had its key before a crash
    change       INTEGER NOT NULL,          -- archive.change when its lines last changed

    bytes        INTEGER NOT NULL DEFAULT 0, -- of all lines and terminators
    lines        INTEGER NOT NULL DEFAULT 0, -- physical lines
    rows         INTEGER NOT NULL DEFAULT 0, -- seq of the next entry row
    sha256       BLOB    NOT NULL,          -- marshalled state of a SHA-256 (Go's crypto/sha256) over those bytes: goes on where it stopped
    decoder      BLOB    NOT NULL,          -- jsonl.State after those bytes

    format       INTEGER NOT NULL,          -- version in the header: 1, 2, 3, …
    headerless   INTEGER NOT NULL DEFAULT 0 CHECK (headerless IN (0, 1)), -- id comes from the file's name
    cwd          TEXT,
    parent_path  TEXT,                      -- parentSession of the header, as written
    created_ms   INTEGER,                   -- of the header

    name         TEXT,                      -- of the last session_info
    modified_ms  INTEGER NOT NULL,          -- last activity, as pi's listing has it
    activity_ms  INTEGER,                   -- newest user or assistant message; NULL: none, modified_ms is of header or file
    messages     INTEGER NOT NULL DEFAULT 0, -- message entries on all branches
    entries      INTEGER NOT NULL DEFAULT 0,
    tips         INTEGER NOT NULL DEFAULT 0, -- entries without a child
    problems     INTEGER NOT NULL DEFAULT 0, -- malformed lines, and one for a missing header
    leaf         INTEGER,                   -- entry.ref; NULL: no entries, or reset to before the first
    leaf_moved   INTEGER NOT NULL DEFAULT 0 CHECK (leaf_moved IN (0, 1)), -- 1: set by branch, holds until the next line
    model        TEXT,                      -- provider/model at the last entry
    tokens       INTEGER NOT NULL DEFAULT 0,
    cost         REAL    NOT NULL DEFAULT 0, -- US dollars
    first_message TEXT                      -- text of the first user message that has any; last, since it may be long
) STRICT;

CREATE TABLE setting (
    key      INTEGER PRIMARY KEY,
    provider TEXT,                          -- NULL: not named
    model    TEXT,                          -- NULL with has_model: not named
    has_model INTEGER NOT NULL CHECK (has_model IN (0, 1)), -- 0: no model chosen yet
    thinking TEXT                           -- NULL: a level that is no string
) STRICT;

CREATE TABLE source (
    key        INTEGER PRIMARY KEY,
    path       TEXT    NOT NULL UNIQUE,     -- absolute, lexically clean, symlinks unresolved; the bytes of the file system
    root       TEXT    NOT NULL,            -- the folder that was imported, a prefix of path: the rest is the relative path of an export
    size       INTEGER NOT NULL,            -- bytes, at the last read
    mtime_ns   INTEGER NOT NULL,            -- Unix nanoseconds
    ctime_ns   INTEGER NOT NULL,            -- Unix nanoseconds; 0 where the system has none
    inode      INTEGER NOT NULL,            -- 0 where the system has none
    state      TEXT    NOT NULL CHECK (state IN (
                   'present',               -- read, and its session is live
                   'missing',               -- no longer there; its session stays
                   'rejected',              -- no session; not read again until its stat changes
                   'deleted')),             -- its session was deleted here: a sync leaves it alone
    problem    TEXT    CHECK ((problem IS NOT NULL) = (state = 'rejected')), -- why it was rejected: a problem code
    detail     TEXT    NOT NULL DEFAULT ''  -- the same in words
) STRICT;

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

CREATE TABLE tombstone (
    key        INTEGER PRIMARY KEY,
    sha256     BLOB    NOT NULL,            -- of the deleted bytes
    bytes      INTEGER NOT NULL,
    id         TEXT    NOT NULL,
    deleted_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE usage (
    ref         INTEGER PRIMARY KEY,        -- entry.ref
    provider    TEXT,
    model       TEXT,
    input       INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    total       INTEGER NOT NULL,           -- totalTokens as written, else the sum of the four
    cost        REAL    NOT NULL            -- US dollars
) STRICT;

CREATE INDEX document_updated ON document (store, updated_ms, save);

CREATE INDEX entry_id ON entry (id) WHERE id IS NOT NULL;

CREATE INDEX entry_kind ON entry (kind) WHERE kind <> 'entry';

CREATE INDEX entry_orphan ON entry (orphan) WHERE orphan IS NOT NULL;

CREATE INDEX entry_parent ON entry (parent) WHERE parent IS NOT NULL;

CREATE INDEX entry_top ON entry (ref) WHERE top = 1;

CREATE INDEX entry_type ON entry (type) WHERE type <> 'message';

CREATE INDEX piece_chunk ON piece (chunk);

CREATE INDEX session_change ON session (change);

CREATE INDEX session_id ON session (id);

CREATE INDEX session_modified ON session (state, modified_ms, key);

CREATE INDEX session_source ON session (source, version);

CREATE INDEX tombstone_bytes ON tombstone (bytes);

-- The search index.

CREATE TABLE block (
    key   INTEGER PRIMARY KEY,              -- segment.key << 24 | place among the blocks of the segment, from 0
    sum   INTEGER NOT NULL,                 -- XXH64 of the blobs, one behind the other
    heads BLOB NOT NULL,                    -- for each word how many documents have it, and where its list is
    words BLOB NOT NULL,                    -- a zstd frame of the words in order
    lists BLOB NOT NULL                     -- lists of documents
) STRICT;

CREATE TABLE indexed (
    session INTEGER PRIMARY KEY,            -- session.key
    nonce   INTEGER NOT NULL,               -- session.nonce: another one means that what is here is of a lost session
    rows    INTEGER NOT NULL,               -- seq of the first row that is not in the index
    version INTEGER NOT NULL                -- of package fulltext when it was indexed
) STRICT;

CREATE TABLE list (
    key   INTEGER PRIMARY KEY,              -- segment.key << 24 | number of the list, from 0
    sum   INTEGER NOT NULL,                 -- XXH64 of docs
    docs  BLOB NOT NULL,
    nexts BLOB NOT NULL                     -- a zstd frame: for each document which words come behind the word
) STRICT;

CREATE TABLE lost (
    session INTEGER NOT NULL,
    nonce   INTEGER NOT NULL,
    version INTEGER NOT NULL,               -- segment.version
    PRIMARY KEY (session, nonce, version)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE watermark (
    only    INTEGER PRIMARY KEY CHECK (only = 1),
    uuid    TEXT    NOT NULL,
    change  INTEGER NOT NULL
) STRICT;

