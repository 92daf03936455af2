package sessiongen_test

import (
	"bytes"
	"strings"
	"testing"

	"pidb/query/internal/sessiongen"
)

func TestGenerateRepeats(t *testing.T) {
	for seed := range uint64(50) {
		a := sessiongen.Generate(seed, sessiongen.Options{})
		b := sessiongen.Generate(seed, sessiongen.Options{})
		if !bytes.Equal(a.Bytes, b.Bytes) {
			t.Fatalf("seed %d gives two different sessions", seed)
		}
	}
}

func TestGenerateCoversFeatures(t *testing.T) {
	const seeds, least = 400, 30
	for _, start := range []uint64{0, 1_000, 777_777} {
		sessions := make(map[string]int)
		for seed := start; seed < start+seeds; seed++ {
			for name := range sessiongen.Generate(seed, sessiongen.Options{}).Features {
				sessions[name]++
			}
		}
		for _, name := range sessiongen.Features() {
			if sessions[name] < least {
				t.Errorf("from seed %d: feature %s is in %d of %d sessions, want %d", start, name, sessions[name], seeds, least)
			}
		}
	}
}

func TestGenerateKeepsScope(t *testing.T) {
	allowed := map[string]bool{"diff/newer-kind": true, "diff/version-1": true}
	for seed := range uint64(400) {
		for _, scope := range []sessiongen.Scope{sessiongen.ScopeOdd, sessiongen.ScopeSane} {
			session := sessiongen.Generate(seed, sessiongen.Options{Scope: scope})
			if len(session.Bytes) == 0 {
				t.Errorf("seed %d, scope %d: an empty file", seed, scope)
			}
			for name := range session.Features {
				if strings.HasPrefix(name, "diff/") && !allowed[name] || scope == sessiongen.ScopeSane && strings.HasPrefix(name, "odd/") {
					t.Errorf("seed %d, scope %d: has feature %s", seed, scope, name)
				}
			}
		}
	}
}

func TestGenerateEntries(t *testing.T) {
	session := sessiongen.Generate(9, sessiongen.Options{Scope: sessiongen.ScopeSane, Entries: 2_000})
	if lines := bytes.Count(session.Bytes, []byte("\n")); lines < 2_000 {
		t.Errorf("a session of 2000 entries has %d lines", lines)
	}
}
