package repo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
)

// prove proves the stored bytes of a session: every chunk against its own hash, the whole
// against the hash of the file, the rows of the lines against the bytes. The bytes go to
// beside as well. It returns how many bytes are right, counted from
// the first, and an error that wraps [ErrDamaged] where not all are.
func (rx *reading) prove(ctx context.Context, s *sessionState, beside io.Writer) (int64, error) {
	sum := sha256.New()
	n, err := rx.Write(ctx, s.Key, 0, io.MultiWriter(sum, beside))
	if err != nil {
		return n, err
	}
	if n != s.Bytes {
		return n, fmt.Errorf("%w: %d bytes of %d", ErrDamaged, n, s.Bytes)
	}
	want, err := unmarshalHash(s.SHA256)
	if err != nil {
		return n, fmt.Errorf("%w: hash state: %w", ErrDamaged, err)
	}
	if !bytes.Equal(sum.Sum(nil), want.Sum(nil)) {
		return n, fmt.Errorf("%w: the bytes do not match the hash of the file", ErrDamaged)
	}
	return n, rx.verifyRows(ctx, s)
}
