// Package query answers questions about an archive: which sessions there are, what was
// said in them, and what the shape of each one is. It reads and never writes.
//
// # A consistent view
//
// All questions are methods of [Rx], which package repo makes for one transaction: every
// answer is of the same instant, whatever others write meanwhile. Bounded answers are
// slices, unbounded ones are iterators, and breaking off an iteration frees what it holds.
//
// # Names
//
// A session is named by its [Key], since ids are shared by copies, forks and old versions;
// [Rx.Find] turns what a person types into one. A row of a session is named by its [Ref]:
// a physical line, or an entry that was recovered from a malformed one. [LineNumber] is
// the same for people; entry ids are not unique either, and [Rx.FindEntry] takes both.
//
// # Lists
//
// [Rx.List] reads session rows only, never entries, and in its usual order it reads no
// more of them than it gives. Its cursors hold the place of a session rather than a count,
// so that pages neither skip nor repeat a session that stays where it is.
//
// # Search
//
// [Rx.Search] takes any string: nothing but a bad regular expression is an error, and an
// error is never no hits. It asks the search index that is attached as schema idx, see
// package fulltext, and says of how many sessions lines are not in there yet. The index
// only says where words are: that they follow each other as a phrase asks is seen in the
// text, and every hit is read from the original line. In the modes Substring and Regexp
// the words of a pattern narrow what is looked at, through all words of the index: every
// match in the text of an entry is found, in the index or not. [Snippet] and [Printable]
// are safe for a terminal.
//
// # Trees
//
// [Rx.Entries], [Rx.Children], [Rx.Tips], [Rx.Tree] and [Rx.Branch] answer as pi does for
// every session that pi can open, from integer parents and without reading lines. Every
// walk, up or down, ends at the first repeat. A parent link means the nearest earlier line
// with that id, else the first later one.
//
// # Contexts
//
// [Rx.Context] gives what pi would hand to a model at a leaf: messages as JSON, the model
// and the thinking level. After a compaction it costs what it returns, not what the
// session holds. Labels, names and usage are those of now: [Rx.Labels], [Rx.Name] and
// [Rx.Stats], which counts an entry that forks share once.
//
// # Bytes
//
// [Rx.Bytes] and [Rx.Write] give the bytes of a session's file as they were imported, each
// chunk proved against its hash. What the archive no longer holds is [ErrDamaged].
package query
