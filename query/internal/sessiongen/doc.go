// Package sessiongen makes random session files of every shape that pi, an editor or a crash can leave, for
// differential and property tests.
//
// # Determinism
//
// The same seed and options give the same bytes, on every machine, until this package changes.
//
// # Features
//
// Each trait of a session has a name, listed by [Features] and counted in [Session.Features]:
//
//   - entry/, role/, label/, name/, usage/: what entries there are
//   - context/: each rule of pi's model context, built so that the rule applies on some branch
//   - tree/, time/: shapes that pi reads as pidb does
//   - line/, value/, header/, v1/, v2/: how lines and values are written
//   - odd/: what pi opens and docs/differences.md does not speak of
//   - diff/: each row of docs/differences.md's table of differences, and what it adds beyond the table
//
// Over any 400 consecutive seeds each feature occurs in at least 30 sessions of [ScopeAll].
//
// # What pi does with them
//
// Sessions of [ScopeSane] are opened by pi, listed by it, and free of cycles. A session of [ScopeAll] may be
// refused by pi, or keep it from returning: use the oracle, which looks first.
package sessiongen
