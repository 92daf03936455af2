package repo_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pidb/query"
	"pidb/repo"
)

// longSession makes a session of n entries that alternate between user and assistant.
func longSession(b *testing.B, a *repo.Archive, n int) *repo.Session {
	b.Helper()
	s := create(b, a, nil)
	text := benchText()
	for done := 0; done < n; {
		var batch []repo.NewEntry
		for range min(2000, n-done) {
			if (done+len(batch))%2 == 0 {
				batch = append(batch, userMessage(text()))
			} else {
				batch = append(batch, reply(text()))
			}
		}
		appendTo(b, s, batch...)
		done += len(batch)
	}
	return s
}

// benchText returns texts of some 600 bytes.
func benchText() func() string {
	rng := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("the a function test error file returns because retry backoff session tree entry context model token cache write read")
	return func() string {
		var text strings.Builder
		for text.Len() < 600 {
			text.WriteString(words[rng.IntN(len(words))])
			text.WriteByte(" \n"[rng.IntN(12)/11])
		}
		return text.String()
	}
}

// BenchmarkAppend appends one message of some 800 bytes at a time and reports the median
// and the 99th percentile.
func BenchmarkAppend(b *testing.B) {
	for _, entries := range []int{10, 100_000} {
		for _, durability := range []repo.Durability{repo.DurabilityNormal, repo.DurabilityFull} {
			for _, readers := range []int{0, 4} {
				name := fmt.Sprintf("entries=%d/durability=%s/readers=%d", entries, []string{"normal", "full"}[durability], readers)
				b.Run(name, func(b *testing.B) { benchmarkAppend(b, entries, durability, readers) })
			}
		}
	}
}

func benchmarkAppend(b *testing.B, entries int, durability repo.Durability, readers int) {
	a, err := repo.Open(b.Context(), filepath.Join(b.TempDir(), "pidb.db"), &repo.OpenOptions{Durability: durability})
	if err != nil {
		b.Fatal(err)
	}
	defer a.Close()
	s := longSession(b, a, entries)
	ctx, stop := context.WithCancel(b.Context())
	var group sync.WaitGroup
	for range readers {
		group.Go(func() {
			for ctx.Err() == nil {
				read(ctx, a, s)
			}
		})
	}
	text := benchText()
	times := make([]time.Duration, 0, b.N)
	for b.Loop() {
		message := userMessage(text())
		began := time.Now()
		if _, err := s.Append(b.Context(), message); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(began))
	}
	stop()
	group.Wait()
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
}

// read is what an agent or a listing asks for: the last hundred entries and a page of sessions.
func read(ctx context.Context, a *repo.Archive, s *repo.Session) {
	_ = a.View(ctx, func(rx *query.Rx) error {
		if _, _, err := rx.List(ctx, nil); err != nil {
			return err
		}
		leaf := s.Leaf()
		for seq := max(leaf.Seq()-100, 1); seq < leaf.Seq(); seq++ {
			if _, err := rx.Raw(ctx, query.MakeRef(s.Key(), seq)); err != nil {
				return err
			}
		}
		return nil
	})
}
