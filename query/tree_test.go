package query_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pidb/query"
)

// TestSortTimes compares with what JavaScript does: testdata/siblings.mjs.
func TestSortTimes(t *testing.T) {
	text, err := os.ReadFile("testdata/siblings.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Times []*int64
		Order []int
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		if diff := cmp.Diff(c.Order, query.SortTimes(c.Times)); diff != "" {
			t.Errorf("case %d:\n%s", i, diff)
		}
	}
}

func TestSortTimesOfMany(t *testing.T) {
	times := make([]*int64, 200)
	for i := range times {
		ms := int64(len(times) - i)
		times[i] = &ms
	}
	times[0], times[150] = nil, nil
	order := query.SortTimes(times)
	// The first stands with the first that has a time, the other with the one before it.
	if order[len(order)-2] != 0 || order[len(order)-1] != 1 {
		t.Errorf("the end is %v", order[len(order)-3:])
	}
	for i, at := range order {
		if at == 150 && order[i-1] != 149 {
			t.Errorf("place 150 stands behind %d", order[i-1])
		}
	}
}
