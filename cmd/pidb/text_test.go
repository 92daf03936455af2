package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestWrapBreaks(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"", []string{""}},
		{"one two three", []string{"one two", "three"}},
		{"  one two three", []string{"  one two", "  three"}},
		{"onetwothree", []string{"onetwothre", "e"}},
		{"  onetwothree", []string{"  onetwoth", "  ree"}},
		{"onetwothre four", []string{"onetwothre", "four"}},
		{"a\n\nb", []string{"a", "", "b"}},
		{"修复登录修复登录", []string{"修复登录修", "复登录"}},
		{strings.Repeat("x", 5000), slices.Collect(func(yield func(string) bool) {
			for range 500 {
				if !yield(strings.Repeat("x", 10)) {
					return
				}
			}
		})},
	}
	for _, tt := range tests {
		if got := wrap(tt.text, 10); !slices.Equal(got, tt.want) {
			t.Errorf("%.40q: %.200q, want %.200q", tt.text, got, tt.want)
		}
	}
}

// TestWrapIsLinear wraps lines for which a look at all that is left, each time, takes minutes.
func TestWrapIsLinear(t *testing.T) {
	for _, text := range []string{strings.Repeat("x", 4<<20), "  " + strings.Repeat("word ", 1<<20)} {
		began := time.Now()
		wrap(text, 80)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%v for %d bytes", took, len(text))
		}
	}
}

func TestPieces(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"", []string{""}},
		{"12345678", []string{"12345678"}},
		{"1234\n5678\n9", []string{"1234", "5678\n9"}},
		{"123456789", []string{"12345678", "9"}},
		{"1234567é9", []string{"1234567", "é9"}},
		{"\xbf\xbf\xbf\xbf\xbf\xbf\xbf\xbf\xbf", []string{"\xbf\xbf\xbf\xbf", "\xbf\xbf\xbf\xbf\xbf"}},
	}
	for _, tt := range tests {
		if got := slices.Collect(pieces(tt.text, 8)); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}
