package fulltext

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// rawMark begins words of the index that hold a part of a control sequence of a terminal:
// no word asked for finds them, only a literal that may be such a part.
const rawMark = 0x02

// addRaw counts what a text has as words when control sequences are read as text, where
// that differs.
func (b *Builder) addRaw(field Field, text []byte) {
	for at := 0; at < len(text); {
		i := slices.Index(text[at:], escape)
		if i < 0 {
			return
		}
		at += i
		n := ControlSequence(text[at:])
		if n == 0 {
			at++
			continue
		}
		var t Tokenizer
		t.Reset(text[at+1:])
		t.raw = true
		for {
			start, _, ok := t.Next()
			if !ok || start >= n-1 {
				break
			}
			b.count(field, append([]byte{rawMark}, t.Word...))
		}
		at += n
	}
}

func composed(text string) rune {
	r, _ := compose([]byte(text))
	return r
}

// Literal returns what the words of each text meet that holds a literal, byte by byte but
// for case and accents; nil for nothing that could narrow a search. The literal is valid
// UTF-8. Of a word that may go on at either end at least least bytes must be there.
func Literal(text string, least int) Choice {
	var list Choice
	add := func(m Match) {
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	var t Tokenizer
	t.Reset([]byte(text))
	t.raw = true
	before, alone := "", false // the word before, if it stood apart, and whether it does from the one before it
	for {
		start, end, ok := t.Next()
		if before != "" && alone && !(ok && t.Apart) {
			add(Match{Word: before})
		}
		if !ok {
			return list
		}
		word := string(t.Word)
		if first, _ := utf8.DecodeRuneInString(text[start:end]); t.Apart && (start == 0 && changes(first) || end == len(text) && mayChange(composed(text[start:end]))) {
			// What stands next to it in the text may make another character of it.
			if before != "" && alone {
				add(Match{Word: before})
			}
			before, alone = "", false
			continue
		}
		if t.Apart {
			if before != "" {
				add(Match{Word: before + word})
			}
			before, alone = word, before == ""
			continue
		}
		// In the text a word could begin before an accent with which the literal begins.
		openStart := strings.TrimLeftFunc(text[:start], IsAccent) == ""
		openEnd := end == len(text)
		before = ""
		m := Match{Word: word, Raw: true}
		switch {
		case openStart && openEnd:
			m.Kind = Inside
		case openStart:
			m.Kind = Suffix
		case openEnd:
			m.Kind = Prefix
		}
		if len(word) >= least || !openStart {
			add(m)
		}
	}
}
