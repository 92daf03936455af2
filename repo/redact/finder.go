package redact

import (
	"encoding/binary"
	"strings"
)

// minHead is what a word that a finder looks for has in bytes, at least.
const minHead = 2

// A finder finds words in text without regard to the case of ASCII letters.
type finder struct {
	first [1 << 13]uint64 // a bit for each start of three bytes that a word may have
	words map[[minHead]byte][]word
}

type word struct {
	text string // in lower case
	id   int
}

// folded is each byte, capitals in lower case.
var folded = func() (table [256]byte) {
	for c := range table {
		table[c] = byte(c)
		if 'A' <= c && c <= 'Z' {
			table[c] += 'a' - 'A'
		}
	}
	return table
}()

func startOf(a, b, c byte) uint32 {
	return (uint32(a)<<11 ^ uint32(b)<<6 ^ uint32(c)) & (1<<19 - 1)
}

// add adds a word in lower case, of minHead bytes or more.
func (f *finder) add(text string, id int) {
	if f.words == nil {
		f.words = map[[minHead]byte][]word{}
	}
	key := [minHead]byte([]byte(text))
	f.words[key] = append(f.words[key], word{text, id})
	set := func(c byte) {
		at := startOf(text[0], text[1], c)
		f.first[at>>6] |= 1 << (at & 63)
	}
	if len(text) > minHead {
		set(text[minHead])
		return
	}
	for c := range 256 {
		set(byte(c))
	}
}

// each calls found with the place and the id of each word in text, by place, until found
// is false.
func (f *finder) each(text []byte, found func(at, id int) bool) {
	if len(text) < minHead {
		return
	}
	a, b := folded[text[0]], folded[text[1]]
	for i := range len(text) - minHead + 1 {
		var c byte
		if i+minHead < len(text) {
			c = folded[text[i+minHead]]
		}
		at := startOf(a, b, c)
		if f.first[at>>6]&(1<<(at&63)) != 0 {
			for _, w := range f.words[[minHead]byte{a, b}] {
				if hasFolded(text[i:], w.text) && !found(i, w.id) {
					return
				}
			}
		}
		a, b = b, c
	}
}

// any reports whether one of the words is in text.
func (f *finder) any(text []byte) bool {
	is := false
	f.each(text, func(int, int) bool { is = true; return false })
	return is
}

// hasFolded reports whether text begins with a word.
func hasFolded(text []byte, w string) bool {
	if len(text) < len(w) {
		return false
	}
	for i := range len(w) {
		if folded[text[i]] != w[i] {
			return false
		}
	}
	return true
}

// minKnown is what a secret has in bytes, at least, that is masked wherever it stands.
const minKnown = 12

// known finds secrets of minKnown bytes or more, as they are.
type known struct {
	first   [1 << 10]uint64 // a bit for each hash of the first eight bytes
	secrets map[uint64][]*secret
}

func (k *known) add(s *secret) {
	if len(s.text) < minKnown || !strings.ContainsAny(s.text, "0123456789") {
		return
	}
	if k.secrets == nil {
		k.secrets = map[uint64][]*secret{}
	}
	key := binary.LittleEndian.Uint64([]byte(s.text[:8]))
	k.secrets[key] = append(k.secrets[key], s)
	h := hash(key)
	k.first[h>>6] |= 1 << (h & 63)
}

func hash(key uint64) uint64 { return key * 0x9e3779b97f4a7c15 >> 48 }

// each calls found with the place of each secret in text, by place.
func (k *known) each(text []byte, found func(at int, s *secret)) {
	if len(k.secrets) == 0 {
		return
	}
	for i := range len(text) - minKnown + 1 {
		key := binary.LittleEndian.Uint64(text[i:])
		if h := hash(key); k.first[h>>6]&(1<<(h&63)) != 0 {
			for _, s := range k.secrets[key] {
				if len(text)-i >= len(s.text) && string(text[i:i+len(s.text)]) == s.text {
					found(i, s)
				}
			}
		}
	}
}
