package jsonl

import (
	"fmt"
	"math"
	"time"
)

const (
	dayMS   = 24 * 60 * 60 * 1000
	maxTime = 8.64e15 // the last millisecond a JavaScript Date can hold
)

// ParseTime returns the milliseconds since 1970 that JavaScript's new Date(v) holds; false where that is no date.
// A string without a time zone is local time where JavaScript takes it so.
func ParseTime(v Value) (ms int64, ok bool) {
	switch v.Kind() {
	case KindAbsent:
		return 0, false
	case KindString:
		raw := v.Raw()
		if ms, ok := parseISO(raw[1 : len(raw)-1]); ok {
			return ms, true
		}
		return parseDate(string(v.appendString(nil)))
	case KindArray, KindObject:
		return parseDate(string(v.appendString(nil)))
	default:
		return timeClip(v.number())
	}
}

// FormatTime writes ms as JavaScript's toISOString does.
func FormatTime(ms int64) string {
	t := time.UnixMilli(ms).UTC()
	if y := t.Year(); y < 0 || y > 9999 {
		return fmt.Sprintf("%+07d", y) + t.Format("-01-02T15:04:05.000Z")
	}
	return t.Format("2006-01-02T15:04:05.000Z")
}

func timeClip(f float64) (int64, bool) {
	if math.IsNaN(f) || math.Abs(f) > maxTime {
		return 0, false
	}
	return int64(f), true
}

// parseISO reads the one form that session files are full of, 2006-01-02T15:04:05.000Z.
func parseISO(s []byte) (ms int64, ok bool) {
	if len(s) != 24 || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' || s[19] != '.' || s[23] != 'Z' {
		return 0, false
	}
	num := func(i, j int) int {
		n := 0
		for ; i < j; i++ {
			if s[i]-'0' > 9 {
				n = -1 << 20
			}
			n = n*10 + int(s[i]-'0')
		}
		return n
	}
	y, mo, d := num(0, 4), num(5, 7), num(8, 10)
	h, mi, sec, milli := num(11, 13), num(14, 16), num(17, 19), num(20, 23)
	if y < 0 || mo < 1 || mo > 12 || d < 1 || d > 31 || h < 0 || h > 23 || mi < 0 || mi > 59 || sec < 0 || sec > 59 || milli < 0 {
		return 0, false
	}
	return days(y, mo-1, d)*dayMS + int64(h)*3600000 + int64(mi)*60000 + int64(sec)*1000 + int64(milli), true
}

// days returns the days from 1970 to a day of the Gregorian calendar; the month, from 0, is in range, the day need not
// be.
func days(y, month, day int) int64 {
	return time.Date(y, time.Month(month+1), day, 0, 0, 0, 0, time.UTC).Unix() / (24 * 60 * 60)
}
