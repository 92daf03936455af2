package query_test

import (
	"bytes"
	"testing"

	"pidb/query"
)

func TestIndexText(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"empty", "", ""},
		{"ascii", "plain text, of some length.", "plain text, of some length."},
		{"accents", "naïve café", "naïve café"},
		{"ideographs", "修复登录", "修 复 登 录"},
		{"mixed", "用git修复bug。ok", "用 git 修 复 bug。ok"},
		{"spaced", "修 复 x", "修 复 x"},
		{"kana", "サーバーを", "サ ー バ ー を"},
		{"hangul", "로그인 오류", "로 그 인 오 류"},
		{"thai", "เข้า", "เ ข ้ า"},
		{"extension B", "a𠀀b", "a 𠀀 b"},
		{"emoji", "ok🎉go", "ok🎉go"},
		{"NUL", "a\x00b", "a b"},
		{"invalid", "a\xffb\xe4\xbf", "a b  "},
		{"NUL behind eight", "12345678\x00修\x00", "12345678 修 "},
		{"colour", "\x1b[1;31mred\x1b[0m\x1b[Kx", " red  x"},
		{"no sequence", "\x1b[1;31 \x1b]x", "\x1b[1;31 \x1b]x"},
		{"escape behind eight", "12345678\x1b[mx", "12345678 x"},
		{"line ends", "修\n复\tx", "修 \n 复 \tx"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := string(query.IndexText([]byte(nil), []byte(test.text)))
			if got != test.want {
				t.Errorf("IndexText(%q) = %q, want %q", test.text, got, test.want)
			}
		})
	}
}

func TestIndexTextAppends(t *testing.T) {
	if got := string(query.IndexText([]byte("a"), []byte("b"))); got != "ab" {
		t.Errorf("got %q", got)
	}
}

func FuzzIndexText(f *testing.F) {
	for _, text := range []string{"", "修复 a登b", "a\x00\xff修", "é\u0301x", "12345678修12345678", "\x1b[31mx\x1b\x1b[mx", "\x1b[\x00"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		once := query.IndexText(nil, text)
		if twice := query.IndexText(nil, once); !bytes.Equal(once, twice) {
			t.Fatalf("IndexText(%q) = %q, then %q", text, once, twice)
		}
		if bytes.IndexByte(once, 0) >= 0 {
			t.Fatalf("NUL in %q", once)
		}
	})
}

func BenchmarkIndexText(b *testing.B) {
	for name, text := range map[string]string{
		"ascii": "The quick brown fox jumps over the lazy dog. ",
		"cjk":   "修复登录错误，然后再试一次。",
	} {
		b.Run(name, func(b *testing.B) {
			src := bytes.Repeat([]byte(text), 1000)
			var dst []byte
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				dst = query.IndexText(dst[:0], src)
			}
		})
	}
}
