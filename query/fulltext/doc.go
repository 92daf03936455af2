// Package fulltext is the search index: which words are in which entries.
//
// A [Builder] takes the text of entries and gives a [Segment]: its documents, its words
// in order, and for each word the documents that hold it. An [Index] reads the segments
// of a database that was made with the schema of package migrations and answers a
// [Query] with [Candidates], the best first. Nothing here knows what a session is beyond
// its number, and nothing is kept of a text but its words: whether they follow each
// other is for the caller to see in the text itself.
//
// # Words
//
// A [Tokenizer] cuts text into words as SQLite's unicode61 does, without case and
// accents. Beyond that, characters of scripts that are written without spaces, and
// emoji, are words of one character, full-width letters and digits are those of ASCII,
// and a control sequence of a terminal separates words. The index has for each word also
// its parts (session of parseSessionEntry, 0308 of E0308), two characters that follow
// each other where each is a word, and c++ or c# beside c. Of a word longer than 64
// bytes it has the start.
//
// # Segments
//
// A segment never changes. What is added makes a new one, and [Index.Merge] makes one of
// several small ones. A document is gone when its session is [Index.Forget]ed, at once
// for every query, and its words when its segment is merged next or by [Index.Purge].
//
// # Order
//
// The score of a document is the sum over the words asked for of how rare a word is,
// times how much the document is about it, as BM25 has it. What people and models said
// counts twice as much as what tools gave, the first message of a session and its name
// more still. Of equal scores the newer document comes first.
package fulltext
