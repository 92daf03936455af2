package repo

// ProblemCode says what is wrong with a file or a line, in a word that scripts may rely on.
type ProblemCode string

const (
	CodeNotFound          ProblemCode = "not-found"          // a named path does not exist
	CodeUnreadable        ProblemCode = "unreadable"         // the file system gave an error
	CodeEmpty             ProblemCode = "empty"              // no bytes: nothing to list
	CodeNotASession       ProblemCode = "not-a-session"      // no header, and no line that is an entry
	CodeUnsupportedFormat ProblemCode = "unsupported-format" // sessions of another format
	CodeTooLarge          ProblemCode = "too-large"          // more than an archive can hold
	CodeNoHeader          ProblemCode = "no-header"          // a session without header, kept
	CodeMalformedLine     ProblemCode = "malformed-line"     // a line that is no JSON, kept
)

// Problem is what an import has to say of a file or of one of its lines.
type Problem struct {
	Path   string
	Line   int64 // physical line, from 1; 0: the file as a whole
	Code   ProblemCode
	Detail string // in words
}
