// Package redact masks keys and tokens in session files that are to be shared.
//
// A [Redactor] searches what is written to its writers, line by line, with the rules of
// gitleaks and a few of its own, and writes [redacted:RULE:N] in the place of what they
// find. It knows nothing of archives.
//
// # What is searched
//
// The strings of a JSON line are searched as they read, whatever escapes they are written
// with, names of members included, and once more as they read where a string holds JSON
// itself. A value is also searched behind the name of its member. A line that is not JSON
// is searched as it stands. Text with control sequences of a terminal is searched once more
// with spaces in their place, and once without them.
//
// # What is written
//
// A line without a finding is written byte for byte. In any other only findings are
// replaced: a line that was JSON is JSON with the same members. N counts the secrets in
// the order in which they are found, so that a secret has one mask in all that one
// Redactor writes. Masking again what was masked changes nothing.
//
// # What is not promised
//
// Rules find what has a known form. docs/redact.md says what they miss.
package redact
