// Package migrations owns the schema of an archive and of its search index.
//
// # Archive
//
// [Up] brings the archive behind a handle to the newest schema, from nothing or from
// any earlier one, and says nothing when there is nothing to do. It refuses what it
// must not touch: a database of a newer pidb ([ErrNewer]) and a file of another
// program ([ErrForeign]). The file is stamped: application_id is [ApplicationID],
// user_version the number of the newest migration it has seen.
//
// A migration that has landed is never edited. The golden dump in testdata/schema.sql
// shows what each one changes.
//
// # Index
//
// [Index] is the schema of the full-text index. The index is derived data, so it has
// no migrations: a file with another user_version than [IndexVersion] is made anew.
package migrations
