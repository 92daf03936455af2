package repo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pidb/repo"
	"pidb/repo/redact"
)

// TestExportAllRedacted masks a secret in all sessions that only one of them shows to be
// one, and leaves the archive as it is.
func TestExportAllRedacted(t *testing.T) {
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	secret := "q8Zr2LxVb7TnWc4K" + "d9HyPf3Gs6JmXv5R"
	texts := map[string]string{
		"a.jsonl": header + entry("a1", "", "take "+secret),
		"b.jsonl": header + entry("b1", "", "apiKey="+secret) + entry("b2", "b1", "again "+secret),
		"c.jsonl": header + entry("c1", "", "nothing") + "\n\r\n{",
	}
	for name, text := range texts {
		write(t, text, dir, name)
	}
	a := open(t, nil)
	importPaths(t, a, dir)
	for _, present := range []int{0, 3} {
		redactor, err := redact.New()
		if err != nil {
			t.Fatal(err)
		}
		result, err := a.ExportAll(t.Context(), out, &repo.ExportAllOptions{Redact: redactor})
		if err != nil || len(result.Failed) > 0 || result.Sessions != 3 || result.Present != present {
			t.Fatalf("export: %+v, %v", result, err)
		}
		if r := result.Redacted; r.Secrets != 1 || r.Masks != 3 {
			t.Errorf("report: %+v", r)
		}
		size := 0
		for name, text := range texts {
			want := strings.ReplaceAll(text, secret, "[redacted:generic-api-key:1]")
			size += len(want)
			if got, err := os.ReadFile(filepath.Join(out, name)); err != nil || string(got) != want {
				t.Errorf("%s: %q, %v, want %q", name, got, err, want)
			}
		}
		if result.Bytes != int64(size) {
			t.Errorf("%d bytes, want %d", result.Bytes, size)
		}
	}
	proof, err := a.Verify(t.Context(), nil, nil)
	if err != nil || proof.OK != 3 {
		t.Errorf("verify: %+v, %v", proof, err)
	}
}
