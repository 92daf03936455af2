package fulltext_test

import (
	"bytes"
	"database/sql"
	"flag"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	_ "modernc.org/sqlite"

	"pidb/query/fulltext"
)

var update = flag.Bool("update", false, "make generated files anew")

// openFTS returns a connection with an empty full-text table t of one column and its
// vocabulary v.
func openFTS(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "fts.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	exec(t, db, `PRAGMA synchronous = OFF`)
	exec(t, db, `CREATE VIRTUAL TABLE t USING fts5(a, content = '', tokenize = "unicode61 remove_diacritics 2")`)
	exec(t, db, `CREATE VIRTUAL TABLE v USING fts5vocab(t, 'instance')`)
	return db
}

func exec(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// ftsTokens returns the tokens that the index makes of each text.
func ftsTokens(t testing.TB, db *sql.DB, texts ...string) [][]string {
	t.Helper()
	exec(t, db, `INSERT INTO t(t) VALUES('delete-all')`)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	insert, err := tx.Prepare(`INSERT INTO t (rowid, a) VALUES (?, ?)`)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		if _, err := insert.Exec(i, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	rows, err := db.QueryContext(t.Context(), `SELECT doc, term FROM v ORDER BY doc, offset`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	list := make([][]string, len(texts))
	for rows.Next() {
		var doc int
		var term string
		if err := rows.Scan(&doc, &term); err != nil {
			t.Fatal(err)
		}
		list[doc] = append(list[doc], term)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func words(text string) []string {
	var list []string
	var tokens fulltext.Tokenizer
	tokens.Reset([]byte(text))
	for {
		if _, _, ok := tokens.Next(); !ok {
			return list
		}
		list = append(list, string(tokens.Word))
	}
}

// plain returns a text in which unicode61 finds the words that a Tokenizer finds: words
// of one character stand apart, control sequences are spaces, and what the Tokenizer
// reads in another way than unicode61 is left out.
func plain(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if r == 0x1b {
			if m := fulltext.ControlSequence([]byte(text)); m > 0 {
				r, n = 0, m
			}
		}
		switch {
		case r == 0 || r == utf8.RuneError && n == 1:
			b.WriteByte(' ')
		case r >= 0x2600 && r <= 0x27bf, r >= 0x2b00 && r <= 0x2bff, r >= 0x1f000 && r <= 0x1faff, r >= 0xff10 && r <= 0xff5a:
		case unicode.Is(unicode.Mn, r), r >= 0x1100 && r <= 0x11ff:
		case r == 'ß', r == 'ẞ', r >= 0x180 && r <= 0x780, r >= 0x1e00 && r <= 0x1fff:
		case fulltext.StandsApart(r):
			b.WriteString(" " + text[:n] + " ")
		default:
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}

// TestUnicode61 proves that Go's tokens are those of the index, for every character in
// the middle of a word. With -update it makes the tables anew from what SQLite does.
func TestUnicode61(t *testing.T) {
	db := openFTS(t)
	if *update {
		updateUnicode61(t, db)
		return
	}
	const run = 0x400
	var texts []string
	for first := rune(0); first <= unicode.MaxRune; first += run {
		if first >= 0x20000 && first%0x10000 != 0 {
			continue // all alike
		}
		var text []byte
		for r := first; r < first+run; r++ {
			if utf8.ValidRune(r) && r > 0 {
				text = append(text, 'X')
				text = utf8.AppendRune(text, r)
				text = append(text, "y "...)
			}
		}
		texts = append(texts, plain(string(text)))
	}
	for i, want := range ftsTokens(t, db, texts...) {
		if got := words(texts[i]); !slices.Equal(got, want) {
			t.Errorf("tokens differ from those of SQLite in run %d of %d characters; run with -update and raise fulltext.Version", i, run)
		}
	}
}

// TestWords has what a Tokenizer reads in another way than unicode61.
func TestWords(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"修复登录", []string{"修", "复", "登", "录"}},
		{"用git修复bug。ok", []string{"用", "git", "修", "复", "bug", "ok"}},
		{"เข้า", []string{"เ", "ข", "า"}},
		{"ok🎉go 👍🏽", []string{"ok", "🎉", "go", "👍", "🏽"}},
		{"ＡＰＩ１", []string{"api1"}},
		{"\x1b[1;31mred\x1b[0m\x1b[Kx", []string{"red", "x"}},
		{"\x1b[1;31 \x1b]x", []string{"1", "31", "x"}},
		{"12345678\x1b[mx", []string{"12345678", "x"}},
		{"a\x00b a\xffb", []string{"a", "b", "a", "b"}},
		{"Straße STRASSE ẞ", []string{"strasse", "strasse", "ss"}},
		{"λόγος ΛΟΓΟΣ Ἀθήνα", []string{"λογοσ", "λογοσ", "αθηνα"}},
		{"подключён", []string{"подключен"}},
		{"مُحَمَّد שָׁלוֹם", []string{"محمد", "שלום"}},
		{"보고 \u1107\u1169\u1100\u1169 \u1100\u1161\u11a8", []string{"보", "고", "보", "고", "각"}},
		{"パ\u306f\u309aハ\u309aう\u3099", []string{"パ", "ぱ", "パ", "ゔ"}},
		{"naïve Café", []string{"naive", "cafe"}},
	}
	for _, test := range tests {
		if got := words(test.text); !slices.Equal(got, test.want) {
			t.Errorf("words of %q are %q, want %q", test.text, got, test.want)
		}
	}
}

func TestParts(t *testing.T) {
	tests := []struct{ word, want string }{
		{"parseSessionEntry", "parse parseSession Session SessionEntry Entry"},
		{"HTTPServer2", "HTTP HTTPServer Server Server2"},
		{"XMLHttpRequest", "XML XMLHttp Http HttpRequest Request"},
		{"E0308", "0308"},
		{"TS2345", "TS 2345"},
		{"sha256sum", "sha sha256 256 256sum sum"},
		{"v1", "1"},
		{"v", ""},
		{"V20", "20"},
		{"word", ""},
		{"Word", ""},
		{"WORD", ""},
		{"12345", ""},
		{"3f2a9c1b", ""},
		{"0x80070005", "0x x80070005 80070005"},
		{"naïveWord", ""},
		{"aB", ""},
		{"aBc", "Bc"},
		{"getURL", "get URL"},
		{"getURLs", "get getURL URL URLs"},
		{"URLs", "URL"},
		{"OAuth2Token", "OAuth OAuth2 Auth Auth2 Auth2Token 2Token Token"},
		{"iOS15", "iOS OS OS15 15"},
		{"aBcDeFgHi", "aBc aBcDe aBcDeFg Bc BcDe BcDeFg BcDeFgHi De DeFg DeFgHi Fg FgHi Hi"},
	}
	for _, test := range tests {
		var list []string
		for _, p := range fulltext.AppendParts(nil, []byte(test.word)) {
			list = append(list, test.word[p.Start:p.End])
		}
		if got := strings.Join(list, " "); got != test.want {
			t.Errorf("parts of %s are %q, want %q", test.word, got, test.want)
		}
	}
}

func TestTokensOfText(t *testing.T) {
	texts := []string{
		"", "a", "Ünïcode Wörds", "e\u0301a\u0301 \u0301x", "修\u0301x修", "x\xffy\x00z", "ÅÅå ſ K", "用git修复bug。",
		"เข้าสู่ระบบ", "한국어 ㄱ ｱｲｳ", "🎉a🎉", "\u0378\ufffd\uffff", "a\u200db", "𠀀𠀁", "İı ẞß", "foo_bar-baz's",
		"\x1b[1;31mred\x1b[0m\x1b[Kx\x1b\x1b[mx\x1b[31", "\x1b[1\xff\x1b",
	}
	db := openFTS(t)
	indexed := make([]string, len(texts))
	for i, text := range texts {
		indexed[i] = plain(text)
	}
	for i, want := range ftsTokens(t, db, indexed...) {
		if got := words(indexed[i]); !slices.Equal(got, want) {
			t.Errorf("tokens of %q are %q, those of SQLite %q", texts[i], got, want)
		}
	}
}

func FuzzTokens(f *testing.F) {
	for _, text := range []string{"Ünï", "e\u0301 \u0301x修\u0301x", "x\xffy\x00z", "用git修", "\x1b[31mx\x1b\x1b[mx", "\u0e40\u0e02\u0e49"} {
		f.Add([]byte(text))
	}
	db := openFTS(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		want := ftsTokens(t, db, plain(string(text)))[0]
		if got := words(plain(string(text))); !slices.Equal(got, want) {
			t.Errorf("tokens of %q are %q, those of SQLite %q", text, got, want)
		}
	})
}

// updateUnicode61 writes unicode61.go.
func updateUnicode61(t *testing.T, db *sql.DB) {
	var edges []rune
	var from, to []rune
	var accents uint64
	inside := false
	const run = 0x8000
	for first := rune(0); first <= unicode.MaxRune; first += run {
		texts := make([]string, run)
		for i := range texts {
			if r := first + rune(i); utf8.ValidRune(r) && r > 0 {
				texts[i] = "x" + string(r) + "y"
			}
		}
		for i, found := range ftsTokens(t, db, texts...) {
			r := first + rune(i)
			if len(found) == 0 { // NUL and surrogates: no text has them
				continue
			}
			isToken := false
			switch folded := []rune(found[0]); {
			case len(found) == 2:
			case len(folded) == 2:
				if r < 0x300 || r >= 0x300+64 {
					t.Fatalf("U+%04X is dropped from words: accents has no room for it", r)
				}
				accents |= 1 << (r - 0x300)
			case len(folded) == 3:
				isToken = true
				if folded[1] != r && r >= utf8.RuneSelf {
					from, to = append(from, r), append(to, folded[1])
				}
			default:
				t.Fatalf("U+%04X: tokens %q", r, found)
			}
			if isToken != inside {
				edges = append(edges, r)
				inside = isToken
			}
		}
	}
	var src bytes.Buffer
	src.WriteString("// Code generated by go test -run TestUnicode61 -update. DO NOT EDIT.\n\npackage fulltext\n\n")
	fmt.Fprintf(&src, "// accents has bit n set where U+0300+n is dropped from a word.\nconst accents uint64 = %#x\n\n", accents)
	src.WriteString("// foldFrom and foldTo pair the characters beyond ASCII that stand in a word as another one.\nconst (\n")
	for i, list := range [][]rune{from, to} {
		var parts []string
		for part := range slices.Chunk(list, 20) {
			parts = append(parts, strconv.QuoteToASCII(string(part)))
		}
		fmt.Fprintf(&src, "%s = %s\n", []string{"foldFrom", "foldTo"}[i], strings.Join(parts, " +\n"))
	}
	src.WriteString(")\n\n// tokenEdges alternate: where characters of words begin, and where they end.\nvar tokenEdges = [...]rune{\n")
	for part := range slices.Chunk(edges, 12) {
		for _, r := range part {
			fmt.Fprintf(&src, "%#x, ", r)
		}
		src.WriteString("\n")
	}
	src.WriteString("}\n")
	out, err := format.Source(src.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("unicode61.go", out, 0o644); err != nil {
		t.Fatal(err)
	}
}
