package fulltext

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
)

// Field says what a text is of.
type Field uint8

// The fields of a document.
const (
	Talk     Field = iota // what users and models said, summaries, labels
	Tool                  // names and arguments of tools, commands, and what they gave
	Name                  // of the session
	Thinking              // what models thought
	fields
)

// Fields is a set of what a query looks at.
type Fields uint8

// The sets of fields that the index tells apart.
const (
	InTalk     Fields = 1 << iota // Talk and Name
	InTool                        // Tool
	InThinking                    // Thinking
)

// maxWord is how many bytes of a word are in the index; of a longer one the start, and
// behind it truncated.
const maxWord = 64

// truncated ends the start of a word that is longer. It is in no UTF-8.
const truncated = 0xff

// tagMark begins words that are no text but what can be asked of a document. They come
// before all others.
const tagMark = 0x01

// maxDocWords is how many different words of a document are in the index. A document
// with more has moreTag, and is a candidate for every word.
const (
	maxDocWords = 1 << 20
	moreTag     = "more words"
)

// separator stands between words. It is in none.
const separator = '\n'

// Builder gathers documents for a segment. The zero Builder is ready for use.
type Builder struct {
	tokens Tokenizer
	parts  []Part
	places []int // of the parts among the counts

	table   []uint32 // slots of words: number + 1
	words   []wordInfo
	arena   []byte   // the words, one after the other
	log     []uint32 // for each document its words
	weights []byte   // what each word of the log weighs
	nexts   []byte   // which words come behind it: see nextBit
	ends    []uint32 // for each document where its part of the log ends
	runs    runWriter

	// Of the document under way.
	counts []wordCount
	open   []uint32 // places in counts of the words that the next one follows
	lead   bool
	more   bool // it has more words than are counted
	length int
}

// wordInfo is a word of the segment in the making.
type wordInfo struct {
	start uint32 // in the arena
	size  uint32
	hash  uint32
	docs  uint32 // that have it
	doc   uint32 // the last of them, + 1
	slot  uint32 // place among the counts of that document
}

// wordCount is how often a document has a word.
type wordCount struct {
	word   uint32
	counts [fields]uint16
	next   byte
}

// nextBit returns the bit that stands for a word in what is known of the words behind
// another one.
func nextBit(word []byte) byte { return 1 << (xxhash.Sum64(word) >> 61) }

// Begin begins a document: the row seq of a session, whose nonce tells it from another
// of the same number, at a time in Unix milliseconds, 0 for none. Documents of a session
// come in the order of seq. Lead says that it is the first message of the session.
func (b *Builder) Begin(session, nonce, seq, ms int64, lead bool) {
	if b.table == nil {
		b.table = make([]uint32, 1<<12)
	}
	b.runs.add(session, nonce, seq, ms)
	b.lead = lead
}

// Tag makes a document findable by something that is not in its text.
func (b *Builder) Tag(tag string) { b.count(Talk, tagWord(tag)) }

func tagWord(tag string) []byte {
	word := append(make([]byte, 0, len(tag)+1), tagMark)
	word = append(word, tag...)
	for i, c := range word {
		if c == separator || c == truncated {
			word[i] = ' '
		}
	}
	return word
}

// Add adds a text to the document.
func (b *Builder) Add(field Field, text []byte) {
	if bytes.IndexByte(text, escape) >= 0 {
		b.addRaw(field, text)
	}
	t := &b.tokens
	t.Reset(text)
	var pair [2 * utf8.UTFMax]byte
	before := 0 // bytes of the word before in pair, if it stood apart
	b.open = b.open[:0]
	for {
		start, end, ok := t.Next()
		if !ok {
			return
		}
		b.length++
		word := t.Word
		b.parts = b.parts[:0]
		if !t.Apart && t.Symbols == 0 {
			b.parts = AppendParts(b.parts, text[start:end])
		}
		if len(b.open) > 0 {
			b.follow(word, text[end:end+t.Symbols])
		}
		b.countOpen(field, word)
		if t.Apart {
			if before > 0 {
				b.count(field, append(pair[:before], word...))
			}
			before = copy(pair[:], word)
			continue
		}
		before = 0
		if t.Symbols > 0 {
			b.countOpen(field, append(word, text[end:end+t.Symbols]...))
			continue
		}
		b.countParts(field, word)
	}
}

// countParts counts the parts of a word.
func (b *Builder) countParts(field Field, word []byte) {
	b.places = b.places[:0]
	for _, part := range b.parts {
		place := b.count(field, word[part.Start:part.End])
		b.places = append(b.places, place)
		if place >= 0 && part.End == len(word) {
			b.open = append(b.open, uint32(place))
		}
	}
	for i, place := range b.places {
		for j := i + 1; j < len(b.parts) && place >= 0; j++ {
			if next := b.parts[j]; next.Start == b.parts[i].End {
				b.counts[place].next |= nextBit(word[next.Start:next.End])
			}
		}
	}
}

// follow notes the word that comes behind the open ones: with symbols and without, and
// the parts that it begins with.
func (b *Builder) follow(word, symbols []byte) {
	bits := nextBit(word)
	if len(symbols) > 0 {
		bits |= nextBit(slices.Concat(word, symbols))
	}
	for _, part := range b.parts {
		if part.Start > 0 {
			break
		}
		bits |= nextBit(word[:part.End])
	}
	for _, place := range b.open {
		b.counts[place].next |= bits
	}
	b.open = b.open[:0]
}

// countOpen counts a word of which the next one is to be known.
func (b *Builder) countOpen(field Field, word []byte) {
	if place := b.count(field, word); place >= 0 {
		b.open = append(b.open, uint32(place))
	}
}

// count counts a word of the document and returns its place among the counts, -1 if it
// is not counted.
func (b *Builder) count(field Field, word []byte) int {
	var cut [maxWord + 1]byte
	if len(word) > maxWord {
		n := copy(cut[:], word[:maxWord])
		cut[n] = truncated
		word = cut[:n+1]
	}
	n := b.find(word)
	w := &b.words[n]
	if doc := uint32(len(b.ends)) + 1; w.doc != doc {
		if len(b.counts) >= maxDocWords && word[0] != tagMark {
			b.more = true
			return -1
		}
		w.doc, w.slot = doc, uint32(len(b.counts))
		w.docs++
		b.counts = append(b.counts, wordCount{word: n})
	}
	if times := &b.counts[w.slot].counts[field]; *times < math.MaxUint16 {
		*times++
	}
	return int(w.slot)
}

// find returns the number of a word, a new one if need be.
func (b *Builder) find(word []byte) uint32 {
	hash := uint32(xxhash.Sum64(word))
	mask := uint32(len(b.table) - 1)
	i := hash & mask
	for ; b.table[i] != 0; i = (i + 1) & mask {
		w := &b.words[b.table[i]-1]
		if w.hash == hash && int(w.size) == len(word) && bytes.Equal(b.arena[w.start:w.start+w.size], word) {
			return b.table[i] - 1
		}
	}
	b.words = append(b.words, wordInfo{start: uint32(len(b.arena)), size: uint32(len(word)), hash: hash})
	b.arena = append(b.arena, word...)
	b.table[i] = uint32(len(b.words))
	if len(b.words)*2 > len(b.table) {
		b.grow()
	}
	return uint32(len(b.words) - 1)
}

func (b *Builder) grow() {
	b.table = make([]uint32, 2*len(b.table))
	mask := uint32(len(b.table) - 1)
	for n := range b.words {
		i := b.words[n].hash & mask
		for b.table[i] != 0 {
			i = (i + 1) & mask
		}
		b.table[i] = uint32(n + 1)
	}
}

// End ends the document.
func (b *Builder) End() {
	if b.more {
		b.Tag(moreTag)
		b.more = false
	}
	for i := range b.counts {
		c := &b.counts[i]
		b.log = append(b.log, c.word)
		b.weights = append(b.weights, b.weigh(c))
		b.nexts = append(b.nexts, c.next)
	}
	b.ends = append(b.ends, uint32(len(b.log)))
	b.counts, b.length = b.counts[:0], 0
}

// A weight says in its low bits in which fields a word is, and above them how much the
// document is about it.
const weightShift = 3

// weigh returns the weight of a word in the document: its count, saturated and set beside
// the length of the document as BM25 does, times what its best field counts.
func (b *Builder) weigh(c *wordCount) byte {
	const (
		saturation = 1.2
		lengthPart = 0.5
		usual      = 150 // words
		scale      = 4.5 // so that the heaviest word comes near the 31 that have room
	)
	var in Fields
	boost := 1.0
	if c.counts[Tool] > 0 {
		in |= InTool
	}
	if c.counts[Talk] > 0 {
		in |= InTalk
		if boost = 2; b.lead {
			boost = 2.6
		}
	}
	if c.counts[Name] > 0 {
		in |= InTalk
		boost = 3
	}
	times := float64(c.counts[Talk]) + float64(c.counts[Tool]) + float64(c.counts[Name])
	if c.counts[Thinking] > 0 {
		in |= InThinking
		if times == 0 {
			times = float64(c.counts[Thinking])
		}
	}
	times *= (saturation + 1) / (times + saturation*(1-lengthPart+lengthPart*float64(b.length)/usual))
	heavy := min(max(math.Round(times*boost*scale), 1), 31)
	return byte(in) | byte(heavy)<<weightShift
}

// Docs returns how many documents were added since the last segment was built.
func (b *Builder) Docs() int { return len(b.ends) }

// Size returns about how much memory the Builder uses, in bytes.
func (b *Builder) Size() int {
	return 6*len(b.log) + len(b.arena) + 24*len(b.words) + 4*len(b.table) + 16*len(b.ends)
}

// Build returns the segment of all documents since the last one, and makes the Builder
// ready for the next.
func (b *Builder) Build() *Segment {
	// The log is in the order of documents: deal it out to the words.
	next := make([]uint32, len(b.words)+1)
	for n := range b.words {
		next[n+1] = next[n] + b.words[n].docs
	}
	docs := make([]uint32, len(b.log))
	weights := make([]byte, len(b.log))
	nexts := make([]byte, len(b.log))
	at := uint32(0)
	for doc, end := range b.ends {
		for ; at < end; at++ {
			place := &next[b.log[at]]
			docs[*place], weights[*place], nexts[*place] = uint32(doc), b.weights[at], b.nexts[at]
			*place++
		}
	}
	e := newEncoder()
	for _, n := range b.sorted() {
		w := &b.words[n]
		end := next[n]
		first := end - w.docs
		e.add(b.arena[w.start:w.start+w.size], docs[first:end], weights[first:end], nexts[first:end])
	}
	segment := e.end()
	b.runs.end(segment)
	clear(b.table)
	b.words, b.arena, b.ends = b.words[:0], b.arena[:0], b.ends[:0]
	b.log, b.weights, b.nexts = b.log[:0], b.weights[:0], b.nexts[:0]
	return segment
}

// sorted returns the numbers of all words in the order of their bytes.
func (b *Builder) sorted() []uint32 {
	type numbered struct {
		start  uint64 // the first bytes
		number uint32
	}
	list := make([]numbered, len(b.words))
	for n := range b.words {
		var start [8]byte
		w := &b.words[n]
		copy(start[:], b.arena[w.start:w.start+w.size])
		list[n] = numbered{binary.BigEndian.Uint64(start[:]), uint32(n)}
	}
	slices.SortFunc(list, func(x, y numbered) int {
		if x.start != y.start {
			return cmp.Compare(x.start, y.start)
		}
		v, w := &b.words[x.number], &b.words[y.number]
		return bytes.Compare(b.arena[v.start:v.start+v.size], b.arena[w.start:w.start+w.size])
	})
	numbers := make([]uint32, len(list))
	for i := range list {
		numbers[i] = list[i].number
	}
	return numbers
}
