package jsonl_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"
	"time"
	_ "time/tzdata"

	"pidb/jsonl"
)

// An oracleCase is a line of testdata/oracle.jsonl, which testdata/oracle.mjs explains.
type oracleCase struct {
	JSON   *string
	Normal *string
	Number *string
	Date   *string
	MS     *int64
	Trim   *string
	Text   string
}

func readOracle(t *testing.T) []oracleCase {
	t.Helper()
	b, err := os.ReadFile("testdata/oracle.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var cases []oracleCase
	for dec := json.NewDecoder(bytes.NewReader(b)); dec.More(); {
		var c oracleCase
		if err := dec.Decode(&c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	if len(cases) < 500 {
		t.Fatalf("only %d cases", len(cases))
	}
	return cases
}

func TestAsJavaScriptDoes(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	local := time.Local
	time.Local = berlin
	t.Cleanup(func() { time.Local = local })

	var d jsonl.Doc
	for _, c := range readOracle(t) {
		switch {
		case c.JSON != nil:
			text, err := base64.StdEncoding.DecodeString(*c.JSON)
			if err != nil {
				t.Fatal(err)
			}
			err = d.Parse(text)
			if (err == nil) != (c.Normal != nil) {
				t.Errorf("Parse(%q): error %v, JavaScript gives %v", text, err, c.Normal)
			} else if err == nil {
				if got := string(d.Root().AppendNormal(nil)); got != *c.Normal {
					t.Errorf("normal form of %q:\n got %q\nwant %q", text, got, *c.Normal)
				}
			}
		case c.Number != nil:
			bits, err := strconv.ParseUint(*c.Number, 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(jsonl.AppendNumber(nil, math.Float64frombits(bits))); got != c.Text {
				t.Errorf("AppendNumber(%s) = %s, want %s", *c.Number, got, c.Text)
			}
		case c.Date != nil:
			if err := d.Parse([]byte(*c.Date)); err != nil {
				t.Fatal(err)
			}
			ms, ok := jsonl.ParseTime(d.Root())
			if ok != (c.MS != nil) || ok && ms != *c.MS {
				t.Errorf("ParseTime(%s) = %d, %v, want %v", *c.Date, ms, ok, deref(c.MS))
			}
		case c.Trim != nil:
			if got := jsonl.TrimSpace(*c.Trim); got != c.Text {
				t.Errorf("TrimSpace(%q) = %q, want %q", *c.Trim, got, c.Text)
			}
		default:
			t.Fatal("a case of no known kind")
		}
	}
}

func deref(ms *int64) any {
	if ms == nil {
		return nil
	}
	return *ms
}
