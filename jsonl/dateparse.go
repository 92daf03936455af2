package jsonl

import (
	"math"
	"strings"
	"time"
)

// parseDate is V8's Date.parse: the form ECMAScript prescribes and, failing that, a reader that makes a date of almost
// anything with numbers in it.
func parseDate(s string) (ms int64, ok bool) {
	s, _, _ = strings.Cut(s, "\x00") // a NUL ends the text for V8
	p := dateParser{s: []rune(s)}
	p.named = unset
	p.hourOffset = unset
	p.sign, p.zoneHour, p.zoneMinute = unset, unset, unset
	p.advance()
	t, ok := p.iso()
	if !ok || !p.legacy(t) {
		return 0, false
	}
	return p.result()
}

const unset = math.MaxInt32

type tokenKind uint8

const (
	tokEnd tokenKind = iota
	tokNumber
	tokSymbol
	tokSpace
	tokWord
	tokUnknown
)

type wordKind uint8

const (
	wordOther wordKind = iota
	wordMonth
	wordHalf // am, pm
	wordZone
	wordTime // T
)

type dateToken struct {
	kind   tokenKind
	length int
	value  int // of a number or word, or the symbol
	word   wordKind
}

func (t dateToken) symbol(c rune) bool     { return t.kind == tokSymbol && t.value == int(c) }
func (t dateToken) sign() bool             { return t.symbol('+') || t.symbol('-') }
func (t dateToken) fixed(n int) bool       { return t.kind == tokNumber && t.length == n }
func (t dateToken) isWord(k wordKind) bool { return t.kind == tokWord && t.word == k }
func (t dateToken) zulu() bool             { return t.isWord(wordZone) && t.length == 1 }

type dateParser struct {
	s    []rune
	pos  int
	peek dateToken // the token that next returns

	day   [3]int
	nDay  int
	named int // month by name
	isISO bool
	time  [4]int
	nTime int

	hourOffset                 int
	sign, zoneHour, zoneMinute int
}

func (p *dateParser) char() rune {
	if p.pos < len(p.s) {
		return p.s[p.pos]
	}
	return 0
}

func (p *dateParser) next() dateToken {
	t := p.peek
	p.advance()
	return t
}

func (p *dateParser) skip(c rune) bool {
	if p.peek.symbol(c) {
		p.advance()
		return true
	}
	return false
}

func isDigit(c rune) bool    { return '0' <= c && c <= '9' }
func isWordChar(c rune) bool { return c >= 'A' && !isTrimmed(c) }

func (p *dateParser) advance() {
	p.peek = p.scan()
}

func (p *dateParser) scan() dateToken {
	start := p.pos
	if start >= len(p.s) {
		return dateToken{}
	}
	switch c := p.char(); {
	case isDigit(c):
		n := p.numeral()
		return dateToken{kind: tokNumber, value: n, length: p.pos - start}
	case c == ':' || c == '-' || c == '+' || c == '.' || c == ')':
		p.pos++
		return dateToken{kind: tokSymbol, value: int(c)}
	case isWordChar(c):
		return p.scanWord()
	case isTrimmed(c):
		p.pos++
		return dateToken{kind: tokSpace}
	case c == '(':
		p.parentheses()
		return dateToken{kind: tokUnknown}
	}
	p.pos++
	return dateToken{kind: tokUnknown}
}

// numeral reads digits, of which the first nine behind leading zeros count.
func (p *dateParser) numeral() int {
	for p.char() == '0' {
		p.pos++
	}
	n := 0
	for i := 0; isDigit(p.char()); i++ {
		if i < 9 {
			n = n*10 + int(p.char()-'0')
		}
		p.pos++
	}
	return n
}

func (p *dateParser) parentheses() {
	balance := 0
	for {
		switch p.char() {
		case ')':
			balance--
		case '(':
			balance++
		}
		p.pos++
		if balance <= 0 || p.char() == 0 {
			return
		}
	}
}

var dateWords = []struct {
	prefix string
	kind   wordKind
	value  int
}{
	{"jan", wordMonth, 1},
	{"feb", wordMonth, 2},
	{"mar", wordMonth, 3},
	{"apr", wordMonth, 4},
	{"may", wordMonth, 5},
	{"jun", wordMonth, 6},
	{"jul", wordMonth, 7},
	{"aug", wordMonth, 8},
	{"sep", wordMonth, 9},
	{"oct", wordMonth, 10},
	{"nov", wordMonth, 11},
	{"dec", wordMonth, 12},
	{"am\x00", wordHalf, 0},
	{"pm\x00", wordHalf, 12},
	{"ut\x00", wordZone, 0},
	{"utc", wordZone, 0},
	{"z\x00\x00", wordZone, 0},
	{"gmt", wordZone, 0},
	{"cdt", wordZone, -5},
	{"cst", wordZone, -6},
	{"edt", wordZone, -4},
	{"est", wordZone, -5},
	{"mdt", wordZone, -6},
	{"mst", wordZone, -7},
	{"pdt", wordZone, -7},
	{"pst", wordZone, -8},
	{"t\x00\x00", wordTime, 0},
}

func (p *dateParser) scanWord() dateToken {
	var prefix [3]rune
	n := 0
	for ; isWordChar(p.char()); n++ {
		if n < len(prefix) {
			prefix[n] = p.char() | 0x20
		}
		p.pos++
	}
	t := dateToken{kind: tokWord, length: n}
	for _, w := range dateWords {
		if string(prefix[:]) == w.prefix && (n <= len(prefix) || w.kind == wordMonth) {
			t.word, t.value = w.kind, w.value
			break
		}
	}
	return t
}

func (p *dateParser) addDay(n int) bool {
	if p.nDay == len(p.day) {
		return false
	}
	p.day[p.nDay] = n
	p.nDay++
	return true
}

func (p *dateParser) addTime(n int) bool {
	if p.nTime == len(p.time) {
		return false
	}
	p.time[p.nTime] = n
	p.nTime++
	return true
}

func (p *dateParser) finalTime(n int) {
	p.addTime(n)
	p.nTime = len(p.time)
}

func (p *dateParser) expectsTime(n int) bool {
	return p.nTime == 1 && n < 60 || p.nTime == 2 && n < 60 || p.nTime == 3 && n < 1000
}

func (p *dateParser) setZone(hours int) {
	p.sign, p.zoneHour, p.zoneMinute = 1, hours, 0
	if hours < 0 {
		p.sign, p.zoneHour = -1, -hours
	}
}

func (p *dateParser) setSign(t dateToken) {
	p.sign = 1
	if t.symbol('-') {
		p.sign = -1
	}
}

func (p *dateParser) utc() bool { return p.zoneHour == 0 && p.zoneMinute == 0 }

// milliseconds reads the digits behind the point of a second.
func milliseconds(t dateToken) int {
	n, length := t.value, min(t.length, 9)
	switch {
	case length == 1:
		n *= 100
	case length == 2:
		n *= 10
	}
	for ; length > 3; length-- {
		n /= 10
	}
	return n
}

// iso reads a date-time string of ECMAScript. Where the text is none it returns the token at which the other reader goes
// on with what was read so far; false when the text cannot be a date any more.
func (p *dateParser) iso() (dateToken, bool) {
	switch {
	case p.peek.sign():
		sign := p.next()
		if !p.peek.fixed(6) {
			return sign, true
		}
		year := p.next().value
		if sign.symbol('-') {
			if year == 0 {
				return sign, true
			}
			year = -year
		}
		p.addDay(year)
	case p.peek.fixed(4):
		p.addDay(p.next().value)
	default:
		return p.next(), true
	}
	for _, limit := range []int{12, 31} {
		if !p.skip('-') {
			break
		}
		if !p.peek.fixed(2) || p.peek.value < 1 || p.peek.value > limit {
			return p.next(), true
		}
		p.addDay(p.next().value)
	}
	if p.peek.isWord(wordTime) {
		if !p.isoTime() {
			return dateToken{}, false
		}
	} else if p.peek.kind != tokEnd {
		return p.next(), true
	}
	if p.sign == unset && p.zoneHour == unset && p.nTime == 0 {
		p.setZone(0)
	}
	p.isISO = true
	return dateToken{kind: tokEnd}, true
}

func (p *dateParser) isoTime() bool {
	p.next()
	two := func(limit int) (int, bool) {
		if !p.peek.fixed(2) || p.peek.value > limit {
			return 0, false
		}
		return p.next().value, true
	}
	hour, ok := two(24)
	if !ok || !p.skip(':') {
		return false
	}
	limit := 59
	if hour == 24 {
		limit = 0
	}
	p.addTime(hour)
	minute, ok := two(limit)
	if !ok {
		return false
	}
	p.addTime(minute)
	if p.skip(':') {
		second, ok := two(limit)
		if !ok {
			return false
		}
		p.addTime(second)
		if p.skip('.') {
			if p.peek.kind != tokNumber || hour == 24 && p.peek.value > 0 {
				return false
			}
			p.addTime(milliseconds(p.next()))
		}
	}
	switch {
	case p.peek.zulu():
		p.next()
		p.setZone(0)
	case p.peek.sign():
		p.setSign(p.next())
		if p.peek.fixed(4) {
			n := p.next().value
			p.zoneHour, p.zoneMinute = n/100, n%100
		} else {
			if p.zoneHour, ok = two(23); !ok || !p.skip(':') {
				return false
			}
			if p.zoneMinute, ok = two(59); !ok {
				return false
			}
		}
		if p.zoneHour > 23 || p.zoneMinute > 59 {
			return false
		}
	}
	return p.peek.kind == tokEnd
}

// legacy reads the rest, from token t on, word by word.
func (p *dateParser) legacy(t dateToken) bool {
	hasNumber := p.nDay > 0
	for ; t.kind != tokEnd; t = p.next() {
		switch {
		case t.kind == tokNumber:
			hasNumber = true
			if !p.legacyNumber(t.value) {
				return false
			}
		case t.kind == tokWord:
			switch {
			case t.word == wordHalf && p.nTime > 0:
				p.hourOffset = t.value
			case t.word == wordMonth:
				p.named = t.value
				p.skip('-')
			case t.word == wordZone && hasNumber:
				p.setZone(t.value)
			default:
				// Other words may stand before the first number only, and not right before it.
				if hasNumber || p.peek.kind == tokNumber {
					return false
				}
			}
		case t.sign() && (p.utc() || p.nTime > 0):
			hasNumber = true
			if !p.legacyZone(t) {
				return false
			}
		case (t.sign() || t.symbol(')')) && hasNumber:
			return false
		}
	}
	return true
}

func (p *dateParser) legacyNumber(n int) bool {
	switch {
	case p.skip(':'):
		if p.skip(':') {
			if p.nTime > 0 {
				return false
			}
			p.addTime(n)
			p.addTime(0)
			return true
		}
		if !p.addTime(n) {
			return false
		}
		p.skip('.')
		return true
	case p.skip('.') && p.expectsTime(n):
		p.addTime(n)
		if p.peek.kind != tokNumber {
			return false
		}
		p.finalTime(milliseconds(p.next()))
		return true
	case p.zoneHour != unset && p.zoneMinute == unset && n < 60:
		p.zoneMinute = n
		return true
	case p.expectsTime(n):
		p.finalTime(n)
		return p.peek.kind == tokEnd || p.peek.kind == tokSpace || p.peek.zulu() || p.peek.sign()
	default:
		if !p.addDay(n) {
			return false
		}
		p.skip('-')
		return true
	}
}

func (p *dateParser) legacyZone(sign dateToken) bool {
	p.setSign(sign)
	n, length := 0, 0
	if p.peek.kind == tokNumber {
		t := p.next()
		n, length = t.value, t.length
	}
	switch {
	case p.peek.symbol(':'):
		p.zoneHour, p.zoneMinute = n, unset
	case length == 1 || length == 2:
		p.zoneHour, p.zoneMinute = n, 0
	case length == 3 || length == 4:
		p.zoneHour, p.zoneMinute = n/100, n%100
	default:
		return false
	}
	return true
}

func (p *dateParser) result() (int64, bool) {
	day, ok := p.dayMS()
	if !ok {
		return 0, false
	}
	clock, ok := p.timeMS()
	if !ok {
		return 0, false
	}
	ms := day + clock
	if p.sign == unset {
		ms = localToUTC(ms)
	} else {
		if p.zoneHour == unset {
			p.zoneHour = 0
		}
		if p.zoneMinute == unset {
			p.zoneMinute = 0
		}
		seconds := uint32(p.zoneHour)*3600 + uint32(p.zoneMinute)*60
		if seconds > math.MaxInt32 {
			return 0, false
		}
		ms -= int64(p.sign) * int64(seconds) * 1000
	}
	return timeClip(float64(ms))
}

func (p *dateParser) dayMS() (int64, bool) {
	if p.nDay < 1 {
		return 0, false
	}
	for ; p.nDay < len(p.day); p.nDay++ {
		p.day[p.nDay] = 1
	}
	isDay := func(n int) bool { return 1 <= n && n <= 31 }
	c := p.day
	var year, month, day int
	switch {
	case p.named == unset && (p.isISO || !isDay(c[0])):
		year, month, day = c[0], c[1], c[2]
	case p.named == unset:
		month, day, year = c[0], c[1], c[2]
	case !isDay(c[0]):
		year, month, day = c[0], p.named, c[1]
	default:
		day, month, year = c[0], p.named, c[1]
	}
	if !p.isISO {
		switch {
		case 0 <= year && year < 50:
			year += 2000
		case 50 <= year && year < 100:
			year += 1900
		}
	}
	if month < 1 || month > 12 || !isDay(day) || year < -400000 || year > 400000 {
		return 0, false
	}
	return days(year, month-1, day) * dayMS, true
}

func (p *dateParser) timeMS() (int64, bool) {
	for ; p.nTime < len(p.time); p.nTime++ {
		p.time[p.nTime] = 0
	}
	hour, minute, second, milli := p.time[0], p.time[1], p.time[2], p.time[3]
	if p.hourOffset != unset {
		if hour > 12 {
			return 0, false
		}
		hour = hour%12 + p.hourOffset
	}
	if (hour > 23 || minute > 59 || second > 59 || milli > 999) && (hour != 24 || minute != 0 || second != 0 || milli != 0) {
		return 0, false
	}
	return ((int64(hour)*60+int64(minute))*60+int64(second))*1000 + int64(milli), true
}

// localToUTC takes a local time skipped by a change of the clock by the offset before it, and of two equal ones the first.
func localToUTC(ms int64) int64 {
	offset := func(utc int64) int64 {
		_, seconds := time.UnixMilli(utc).In(time.Local).Zone()
		return int64(seconds) * 1000
	}
	before, behind := offset(ms-dayMS), offset(ms+dayMS)
	if before != behind && offset(ms-before) != before && offset(ms-behind) == behind {
		return ms - behind
	}
	return ms - before
}
