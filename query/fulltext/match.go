package fulltext

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"slices"
)

// Kind says which words of the index stand for a [Match].
type Kind uint8

// The kinds of a match.
const (
	Exact  Kind = iota // the word itself
	Prefix             // words that begin so
	Suffix             // words that end so
	Inside             // words that hold it
)

// Match is a word asked for, folded as a [Tokenizer] gives it.
type Match struct {
	Word string
	Kind Kind
	// Raw asks for words with a part of a control sequence of a terminal too. A Suffix
	// and an Inside are always Raw.
	Raw bool
	// Next, if not empty, is a word that comes behind this one. Where nothing is known of
	// that, and sometimes where it does not, the document is a candidate all the same.
	Next string
}

// Choice is what one alternative asks for: all of its matches.
type Choice []Match

// Query says which documents are wanted.
type Query struct {
	Needs   [][]Choice // of each need at least one choice
	Not     []string   // words that a document must not have
	All     bool       // where there are no needs: all documents
	Tags    [][]string // of each list at least one
	NotTags []string   // that a document must not have
	Fields  Fields     // where to look

	// Accept, if given, says whether documents of a session are wanted.
	Accept func(session int64) bool
	// Modified returns the time of a session, for documents that have none.
	Modified func(session int64) int64
	// Since and Until bound the time, in Unix milliseconds: not before Since, before Until. 0 is no bound.
	Since, Until int64
	// Recent asks for the newest first, whatever the score.
	Recent bool
}

// AddTags asks for one of some tags, or for nothing if there are none.
func (q *Query) AddTags(tags []string) {
	if len(tags) > 0 {
		q.Tags = append(q.Tags, tags)
	}
}

func uvarint(b []byte) (uint64, int) { return binary.Uvarint(b) }

// indexWord returns a word as the index has it.
func indexWord(word []byte) []byte {
	if len(word) <= maxWord {
		return word
	}
	return append(slices.Clone(word[:maxWord]), truncated)
}

// found is where a match is in a segment.
type found struct {
	places []place
	docs   int // upper bound of the documents
}

// matcher finds the words of matches.
type matcher struct {
	x     *Index
	found []map[Match]found // for each segment
}

// lookup finds a match in all segments and returns how many documents have it at most.
func (m *matcher) lookup(ctx context.Context, matches []Match) error {
	var scanned []Match
	for _, match := range matches {
		switch {
		case match.Kind == Exact, match.Kind == Prefix:
			for i, s := range m.x.segments {
				if _, ok := m.found[i][match]; ok {
					continue
				}
				f, err := m.direct(ctx, s, match)
				if err != nil {
					return err
				}
				m.found[i][match] = f
			}
		default:
			scanned = append(scanned, match)
		}
	}
	if len(scanned) == 0 {
		return nil
	}
	for i, s := range m.x.segments {
		if err := m.scan(ctx, s, scanned, m.found[i]); err != nil {
			return err
		}
	}
	return nil
}

// direct finds a match by the order of words.
func (m *matcher) direct(ctx context.Context, s *segment, match Match) (f found, err error) {
	words := [][]byte{[]byte(match.Word)}
	if match.Raw {
		words = append(words, append([]byte{rawMark}, match.Word...))
	}
	for _, word := range words {
		// All that is known of a long word is its start.
		if match.Kind == Exact || len(word) > maxWord {
			p, ok, err := m.x.find(ctx, s, indexWord(word))
			if err != nil {
				return f, err
			}
			if ok {
				f.add(p)
			}
		} else if err := m.begins(ctx, s, word, &f); err != nil {
			return f, err
		}
	}
	return f, nil
}

// begins finds the words that begin with word.
func (m *matcher) begins(ctx context.Context, s *segment, word []byte, f *found) error {
	n, _ := slices.BinarySearchFunc(s.firsts, word, bytes.Compare)
	for n = max(n-1, 0); n < len(s.firsts); n++ {
		if bytes.Compare(s.firsts[n], word) > 0 && !bytes.HasPrefix(s.firsts[n], word) {
			break
		}
		b, err := m.x.block(ctx, s, n)
		if err != nil {
			return err
		}
		pattern := append([]byte{separator}, word...)
		at := bytes.Index(b.words, pattern)
		if at < 0 {
			continue
		}
		for i := bytes.Count(b.words[:at], []byte{separator}); bytes.HasPrefix(b.words[at:], pattern); i++ {
			h, err := b.head(i)
			if err != nil {
				return err
			}
			f.add(place{n, h})
			at += 1 + bytes.IndexByte(b.words[at+1:], separator)
		}
	}
	return nil
}

func (f *found) add(p place) {
	f.places = append(f.places, p)
	f.docs += int(p.docs)
}

// scan reads all words of a segment for matches that may be anywhere in them.
func (m *matcher) scan(ctx context.Context, s *segment, matches []Match, into map[Match]found) error {
	patterns := make([][]byte, len(matches))
	for i, match := range matches {
		patterns[i] = []byte(match.Word)
		if match.Kind == Suffix {
			patterns[i] = append(patterns[i], separator)
		}
		into[match] = found{}
	}
	cut := []byte{truncated, separator}
	for n := range s.firsts {
		b, err := m.x.block(ctx, s, n)
		if err != nil {
			return err
		}
		for i, match := range matches {
			// A word that is cut may go on with anything.
			places, err := b.scan(n, patterns[i], nil)
			if err == nil {
				places, err = b.scan(n, cut, places)
			}
			if err != nil {
				return err
			}
			f := into[match]
			for _, p := range places {
				f.add(p)
			}
			into[match] = f
		}
	}
	return nil
}

// scan appends the places of words that hold a pattern.
func (b *block) scan(n int, pattern []byte, places []place) ([]place, error) {
	number, at := 0, 1 // the first word begins behind a separator
	for {
		i := bytes.Index(b.words[at:], pattern)
		if i < 0 {
			return places, nil
		}
		number += bytes.Count(b.words[at:at+i], []byte{separator})
		at += i
		start := bytes.LastIndexByte(b.words[:at], separator) + 1
		if b.words[start] != tagMark {
			h, err := b.head(number)
			if err != nil {
				return nil, err
			}
			places = append(places, place{n, h})
		}
		at += bytes.IndexByte(b.words[at:], separator)
	}
}

// set is documents of a segment in order, and their scores.
type set struct {
	docs   []uint32
	scores []float32
}

func (s *set) add(doc uint32, score float32) {
	s.docs = append(s.docs, doc)
	s.scores = append(s.scores, score)
}

// collect returns the documents that have one of the words at places, in the fields asked
// for. rarity is what a weight of one counts.
func (x *Index) collect(ctx context.Context, s *segment, f found, next string, in Fields, rarity float32, more []byte) (set, error) {
	var out set
	if len(f.places) == 0 && len(more) == 0 {
		return out, nil
	}
	if len(f.places) == 1 && len(more) == 0 {
		err := x.read(ctx, s, f.places[0], next, func(doc uint32, weight byte) {
			if Fields(weight)&in != 0 {
				out.add(doc, float32(weight>>weightShift)*rarity)
			}
		})
		return out, err
	}
	best := make([]byte, s.docs)
	take := func(doc uint32, weight byte) {
		if Fields(weight)&in != 0 {
			best[doc] = max(best[doc], weight>>weightShift)
		}
	}
	if err := readList(more, s.docs, func(doc uint32, _ byte) { take(doc, byte(in)|1<<weightShift) }); err != nil {
		return out, err
	}
	for _, p := range f.places {
		if err := x.read(ctx, s, p, next, take); err != nil {
			return out, err
		}
	}
	for doc, weight := range best {
		if weight > 0 {
			out.add(uint32(doc), float32(weight)*rarity)
		}
	}
	return out, nil
}

// read calls f for the documents of a word in which next, if not empty, may come behind it.
func (x *Index) read(ctx context.Context, s *segment, p place, next string, f func(doc uint32, weight byte)) error {
	list, err := x.list(ctx, s, p)
	if err != nil {
		return err
	}
	if next == "" || !p.long {
		return readList(list, s.docs, f)
	}
	nexts, err := x.nexts(ctx, s, p)
	if err != nil {
		return err
	}
	bit := nextBit([]byte(next))
	at := 0
	return readList(list, s.docs, func(doc uint32, weight byte) {
		if at < len(nexts) && nexts[at]&bit != 0 {
			f(doc, weight)
		}
		at++
	})
}

// both returns the documents that are in both sets, with the sum of their scores.
func both(a, b set) set {
	var out set
	i := 0
	for j, doc := range b.docs {
		for i < len(a.docs) && a.docs[i] < doc {
			i++
		}
		if i == len(a.docs) {
			break
		}
		if a.docs[i] == doc {
			out.add(doc, a.scores[i]+b.scores[j])
		}
	}
	return out
}

// either returns the documents that are in one of two sets, with the higher score.
func either(a, b set) set {
	if len(a.docs) == 0 {
		return b
	}
	var out set
	i, j := 0, 0
	for i < len(a.docs) || j < len(b.docs) {
		switch {
		case j == len(b.docs) || i < len(a.docs) && a.docs[i] < b.docs[j]:
			out.add(a.docs[i], a.scores[i])
			i++
		case i == len(a.docs) || a.docs[i] > b.docs[j]:
			out.add(b.docs[j], b.scores[j])
			j++
		default:
			out.add(a.docs[i], max(a.scores[i], b.scores[j]))
			i++
			j++
		}
	}
	return out
}

// without returns the documents of a that are not in b.
func without(a, b set) set {
	var out set
	j := 0
	for i, doc := range a.docs {
		for j < len(b.docs) && b.docs[j] < doc {
			j++
		}
		if j == len(b.docs) || b.docs[j] != doc {
			out.add(doc, a.scores[i])
		}
	}
	return out
}

// rarity is how much a word says that so many of all documents have.
func rarity(docs, all int) float32 {
	return float32(math.Log(1 + (float64(all-min(docs, all))+0.5)/(float64(docs)+0.5)))
}
