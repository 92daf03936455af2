// Package repo is the archive: coding-agent sessions in one SQLite file, taken in from
// JSONL and given back byte for byte.
//
// An [Archive] is opened with [Open]. [Archive.Import] and [Archive.Sync] take files
// in, [Archive.Export], [Archive.ExportAll] and [Archive.Restore] write them back,
// [Archive.Verify] proves them, [Archive.Delete] takes sessions out. Questions are
// asked through [Archive.View], which hands out a [query.Rx]; writes that belong
// together go through [Archive.Update].
//
// # Losslessness
//
// The bytes of a session are stored as they were read, in compressed chunks, each under
// the SHA-256 of what it holds. An export concatenates them; nothing derived from a
// line ever feeds one. A line may hold anything: the rows beside the bytes only say
// where it is and what of it could be understood.
//
// # Sources
//
// A file is opened for reading only. Its size, times and inode are kept, so that an
// unchanged file costs one stat; when it has grown, its old bytes are hashed and only
// the rest is parsed; when its old bytes are no longer there, it becomes a new version
// and the old one stays, superseded. A source that is gone leaves its session, missing.
//
// # Transactions and processes
//
// An archive has one writing connection with immediate transactions and several reading
// ones that see one instant each. Any number of processes may have it open: a writer
// waits for another up to a minute, a reader for nobody. What a committed transaction
// wrote survives a crash of the process; see [Durability] for a loss of power. A bulk
// import commits as it goes, whole files at a time, but for those of many megabytes,
// which a later import goes on with.
//
// # Live sessions
//
// A session that was born here grows by [Session.Append]: every append is one transaction,
// durable when it returns, and its lines are those that pi would write for the same
// values, so that pi opens an export and goes on with it. The cost does not grow with the
// session. Its leaf is durable; each handle has one of its own, so that writers who do
// not know of each other make branches and never lose a line. docs/api.md says which
// function of pi's session manager is which here.
//
// [Session.Wait] and [Archive.Wait] return what others have appended, in whatever process,
// some milliseconds after it was committed, and cost next to nothing while nobody does.
//
// Beside its lines a session has what its program keeps with it, and no export holds:
// metadata, fixed or not, an idempotency key, subagents. It goes with the session.
//
// # Documents
//
// A [DocumentStore] is for programs that have a message type of their own and save a
// conversation as a whole. What they save is a session as any other. docs/moa.md says which
// function of moa's package session is which here.
//
// # Search index
//
// Full text lives in a second file beside the archive, see [Archive.IndexPath]. It is
// derived: [Archive.UpdateIndex] feeds it what it lacks, and makes it anew when it is
// gone, damaged or of another version.
//
// # Keeping
//
// [Archive.Backup] writes a proved copy while others write, [Archive.Merge] brings another
// archive in, [Salvage] brings what is whole out of a damaged one, [Archive.Prune] takes
// old versions out and [Archive.Vacuum] gives their room back. docs/keeping.md says what is
// promised of each and what is not.
//
// # Privacy
//
// A new archive, its index and their side files have mode 0600, a folder that is made
// for them 0700; [Archive.Exposed] says where that is no longer so. There is no network.
// Package redact masks keys in what [Archive.ExportAll] writes, where that is asked for.
package repo
