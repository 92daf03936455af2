package jsonl

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// AppendNumber appends f as JavaScript writes a number, and null for what JSON cannot hold.
func AppendNumber(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return append(dst, "null"...)
	case f == 0:
		return append(dst, '0')
	}
	if a := math.Abs(f); a >= 1e-6 && a < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// Go writes at least two digits of the exponent, JavaScript as few as there are.
	if n := len(dst); n-start >= 4 && dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// isTrimmed reports whether String.prototype.trim takes r away.
func isTrimmed(r rune) bool {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', ' ', 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff:
		return true
	}
	return 0x2000 <= r && r <= 0x200a
}

// TrimSpace returns s without what JavaScript's trim takes away: U+FEFF counts as white space, U+0085 does not.
func TrimSpace(s string) string { return strings.TrimFunc(s, isTrimmed) }

// IsBlank reports whether JavaScript's trim leaves nothing of b.
func IsBlank(b []byte) bool {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if !isTrimmed(r) {
			return false
		}
		b = b[n:]
	}
	return true
}

// appendString appends what JavaScript's String(v) gives: for an array its elements joined by commas, nothing for
// those absent and null.
func (v Value) appendString(dst []byte) []byte {
	switch v.Kind() {
	case KindAbsent:
		return append(dst, "undefined"...)
	case KindNull:
		return append(dst, "null"...)
	}
	d := v.d
	var ends []uint32 // of the arrays open at node i, innermost last
	end := d.after(v.i)
	for i := v.i; ; {
		for len(ends) > 0 && i == ends[len(ends)-1] {
			ends = ends[:len(ends)-1]
		}
		if i == end {
			return dst
		}
		if len(ends) > 0 && d.separated(i) {
			dst = append(dst, ',')
		}
		e := Value{d, i}
		switch e.Kind() {
		case KindArray:
			ends = append(ends, d.nodes[i].aux)
			i++
			continue
		case KindObject:
			dst = append(dst, "[object Object]"...)
		case KindString:
			dst, _ = e.AppendText(dst)
		case KindNumber:
			f, _ := e.Float()
			dst = appendNumberString(dst, f)
		case KindBool:
			dst = append(dst, e.Raw()...)
		}
		i = d.after(i)
	}
}

// separated reports whether a comma stands before the value at i.
func (d *Doc) separated(i uint32) bool {
	p := int(d.nodes[i].start) - 1
	for p >= 0 && isSpace(d.b[p]) {
		p--
	}
	return p >= 0 && d.b[p] == ','
}

// appendNumberString appends what String(f) gives, which unlike JSON knows the infinities.
func appendNumberString(dst []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	}
	return AppendNumber(dst, f)
}

// number returns what JavaScript's Number(v) gives, NaN where the value is no number.
func (v Value) number() float64 {
	switch v.Kind() {
	case KindNull:
		return 0
	case KindBool:
		if v.Truthy() {
			return 1
		}
		return 0
	case KindNumber:
		f, _ := v.Float()
		return f
	case KindString, KindArray:
		return stringNumber(string(v.appendString(nil)))
	default:
		return math.NaN()
	}
}

// stringNumber returns what JavaScript's Number(s) gives.
func stringNumber(s string) float64 {
	s = TrimSpace(s)
	if s == "" {
		return 0
	}
	if len(s) > 2 && s[0] == '0' {
		if base := strings.IndexByte("xob", s[1]|0x20); base >= 0 {
			f := 0.0
			b := []float64{16, 8, 2}[base]
			for i := 2; i < len(s); i++ {
				d := float64(hexDigit(s[i]))
				if d < 0 || d >= b {
					return math.NaN()
				}
				f = f*b + d
			}
			return f
		}
	}
	rest := strings.TrimLeft(s, "+-")
	if len(s)-len(rest) > 1 {
		return math.NaN()
	}
	if rest == "Infinity" {
		return math.Inf(1 - 2*strings.Count(s, "-"))
	}
	if strings.Trim(rest, "0123456789.eE+-") != "" {
		return math.NaN()
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return math.NaN()
	}
	return f
}
