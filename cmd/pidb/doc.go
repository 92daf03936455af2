// Command pidb keeps the sessions of the coding agent pi in one SQLite archive and
// answers questions about them.
//
// The package owns arguments, environment, the terminal and the words that are printed;
// it knows no SQL and decides nothing that package repo or query decides.
//
// # Output
//
// Results go to standard output, all else to standard error, where each line begins
// with "pidb: ". With --json results are objects, one a line for lists; their shapes are
// the structs of json.go, and the help of each command shows them.
//
// # Safety
//
// Nothing that comes from a session, a file name or an error reaches a terminal as it
// is: text passes through [query.Printable], and in JSON whatever could drive a terminal
// is escaped.
//
// # Exit codes
//
// They are in exit.go.
package main
