package repo

import (
	"context"
	"io"
)

// prove proves the stored bytes of a session: every chunk against its own hash, the whole
// against the hash of the file, the rows of the lines against the bytes. The bytes go to
// beside as well. It returns how many bytes are right, counted from
// the first, and an error that wraps [ErrDamaged] where not all are.
func (rx *reading) prove(ctx context.Context, s *sessionState, beside io.Writer) (int64, error) {
	n, err := rx.Write(ctx, s.Key, 0, beside)
	if err != nil {
		return n, err
	}
	return n, rx.verifyRows(ctx, s)
}
