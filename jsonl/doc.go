// Package jsonl reads and writes the session files of pi, a coding agent: a tree of entries, one JSON object on each
// line behind a header. It touches neither files nor databases, only streams and bytes.
//
// # Lines
//
// A [LineReader] splits a stream into physical lines of any length. Only a line feed ends a line. The data and
// terminators of all lines, one behind the other, are the stream, whatever was in it.
//
// # Records
//
// A [Decoder] says of each line what it holds: the header, an entry, another JSON value, nothing, or text that is not
// JSON. From the latter it recovers the entries that stand complete behind or before a piece that was cut off, but
// never a part of such a piece. No content of a line is an error of the decoder; it has no error but that of its reader
// and that for another format.
//
// Entries of versions 1 and 2 are shown as version 3 has them. The ids that version 1 lacks follow from the session's
// id and the line, so that they are the same at each reading.
//
// # Values
//
// A [Doc] reads what JavaScript's JSON.parse reads once the bytes were decoded, and its [Value] and the views of
// [Object] never fail: a value that is missing or of another type is absent, empty or not ok.
//
// Strings come as valid UTF-8. Where they are compared they come in key form, in which strings that differ stay
// different; see [Value.Key].
//
// # Writing
//
// [Append] and the AppendNormal methods write, byte for byte, what JSON.stringify writes.
//
// # Concurrency and memory
//
// Nothing here is safe for concurrent use, but separate decoders are independent. Lines, records and values live until
// the next line is read. Memory follows the longest line, which [DecoderOptions] may bound; neither nesting nor damage makes the time more than
// linear in the length of a line, but for the order of names in an object that is written.
package jsonl
