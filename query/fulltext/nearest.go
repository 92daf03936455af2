package fulltext

import (
	"bytes"
	"cmp"
	"context"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

// Nearest returns words of the index that are spelled much like a word, the likeliest
// first and at most n: with one letter more, less, another, or two exchanged, in a word of
// more than four letters with two such differences; and words that begin with it. known says that the index has the
// word itself.
func (x *Index) Nearest(ctx context.Context, word string, n int) (nearest []string, known bool, err error) {
	for _, s := range x.segments {
		if _, known, err = x.find(ctx, s, indexWord([]byte(word))); known || err != nil {
			return nil, known, err
		}
	}
	wanted := []rune(word)
	allowed := 1
	if len(wanted) > 4 {
		allowed = 2
	}
	if len(wanted) < 3 || len(wanted) > maxWord/2 {
		return nil, false, nil
	}
	type candidate struct {
		word     string
		distance int
		docs     int
	}
	found := map[string]*candidate{}
	isASCII := len(wanted) == len(word)
	prefix := []byte(word)
	letters := lettersOf(prefix)
	var scratch distances
	for _, s := range x.segments {
		for i := range s.firsts {
			b, err := x.block(ctx, s, i)
			if err != nil {
				return nil, false, err
			}
			rest := b.words[1:]
			for number := 0; len(rest) > 0; number++ {
				end := bytes.IndexByte(rest, separator)
				other := rest[:end]
				rest = rest[end+1:]
				if len(other) < len(word)-allowed*utf8.UTFMax || other[0] <= rawMark {
					continue
				}
				d := 1
				if goesOn := bytes.HasPrefix(other, prefix) && other[len(other)-1] != truncated; !goesOn {
					if len(other) > len(word)+allowed*utf8.UTFMax {
						continue
					}
					have := lettersOf(other)
					if bits.OnesCount64(letters&^have) > allowed*utf8.UTFMax || bits.OnesCount64(have&^letters) > allowed*utf8.UTFMax ||
						isASCII && (bits.OnesCount64(letters&^have) > allowed || bits.OnesCount64(have&^letters) > allowed) {
						continue
					}
					if d = scratch.between(wanted, other, allowed); d > allowed {
						continue
					}
				}
				h, err := b.head(number)
				if err != nil {
					return nil, false, err
				}
				c := found[string(other)]
				if c == nil {
					c = &candidate{word: string(other), distance: d}
					found[c.word] = c
				}
				c.docs += int(h.docs)
			}
		}
	}
	list := make([]*candidate, 0, len(found))
	for _, c := range found {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(b.docs, a.docs), strings.Compare(a.word, b.word))
	})
	for _, c := range list[:min(len(list), n)] {
		nearest = append(nearest, c.word)
	}
	return nearest, false, nil
}

// lettersOf returns a bit for each byte of a word, some of which share one.
func lettersOf(word []byte) uint64 {
	var set uint64
	for _, c := range word {
		set |= 1 << (c & 63)
	}
	return set
}

// distances counts differences between words.
type distances struct {
	other []rune
	rows  [3][]int
}

// between returns how many letters are to be added, taken away, changed, or exchanged with
// the next one, to make one word of another; more than limit is limit + 1.
func (d *distances) between(word []rune, other []byte, limit int) int {
	d.other = d.other[:0]
	for len(other) > 0 {
		r, n := utf8.DecodeRune(other)
		d.other = append(d.other, r)
		other = other[n:]
	}
	if len(d.other) > len(word)+limit || len(d.other) < len(word)-limit {
		return limit + 1
	}
	for i := range d.rows {
		d.rows[i] = slices.Grow(d.rows[i][:0], len(d.other)+1)[:len(d.other)+1]
	}
	before, last, row := d.rows[0], d.rows[1], d.rows[2]
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(word); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(d.other); j++ {
			change := 1
			if word[i-1] == d.other[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && word[i-1] == d.other[j-2] && word[i-2] == d.other[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return last[len(d.other)]
}
