package main

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/mattn/go-runewidth"

	"pidb/query"
	"pidb/repo"
)

// flat returns text on one line, safe to print: white space of any length is a space.
func flat(text string) string {
	return strings.Join(strings.FieldsFunc(query.Printable(text), unicode.IsSpace), " ")
}

// head returns the beginning of text, flat, and at most so many columns wide. Of a long
// text only the beginning is looked at.
func head(text string, columns int) string {
	const perColumn = 16 // bytes
	if limit := columns*perColumn + 64; len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return cut(flat(text), columns)
}

// cut shortens printable text to so many columns.
func cut(text string, columns int) string {
	if columns < 1 {
		return ""
	}
	if ahead := text[:min(len(text), columns)]; isASCII(ahead) {
		// Most titles: a byte is a column.
		if len(ahead) == len(text) {
			return text
		}
		if columns > 1 && isASCII(text[columns:]) {
			return ahead[:columns-1] + "…"
		}
	}
	if runewidth.StringWidth(text) <= columns {
		return text
	}
	return strings.TrimRight(runewidth.Truncate(text, columns, "…"), " ")
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// cutLeft shortens printable text to so many columns and keeps its end.
func cutLeft(text string, columns int) string {
	width := runewidth.StringWidth(text)
	if width <= columns {
		return text
	}
	for len(text) > 0 && width > columns-1 {
		r, n := utf8.DecodeRuneInString(text)
		width -= runewidth.RuneWidth(r)
		text = text[n:]
	}
	return "…" + text
}

// pad fills text with spaces to so many columns.
func pad(text string, columns int) string {
	return text + strings.Repeat(" ", max(columns-runewidth.StringWidth(text), 0))
}

// longLine is how many bytes a line has that is surely broken in two.
const longLine = 4 << 10

// pieces yields a text in parts of bounded size that end where a line ends, or else
// between two characters.
func pieces(text string, size int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(text) > size {
			n := strings.LastIndexByte(text[:size], '\n')
			next := n + 1
			if n < 0 {
				for n = size; n > size-utf8.UTFMax && !utf8.RuneStart(text[n]); n-- {
				}
				next = n
			}
			if !yield(text[:n]) {
				return
			}
			text = text[next:]
		}
		yield(text)
	}
}

// wrap breaks printable text into lines of at most so many columns, at spaces where
// that can be. A line that goes on stands under the beginning of its text.
func wrap(text string, columns int) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\t", "    "), "\n") {
		line = strings.TrimRight(line, " ")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if indent > columns/2 {
			indent = 0
		}
		lead, rest := line[:indent], line[indent:]
		// Of a long rest only the beginning is looked at, each time.
		for len(rest) > longLine || indent+runewidth.StringWidth(rest) > columns {
			at, width, space := 0, indent, -1
			for i, r := range rest {
				w := runewidth.RuneWidth(r)
				if width+w > columns {
					break
				}
				if r == ' ' {
					space = i
				}
				width += w
				at = i + utf8.RuneLen(r)
			}
			if at == len(rest) {
				break
			}
			if rest[at] == ' ' {
				space = at
			}
			if at == 0 {
				_, at = utf8.DecodeRuneInString(rest)
			}
			if space > 0 {
				at = space
			}
			lines = append(lines, lead+strings.TrimRight(rest[:at], " "))
			rest = strings.TrimLeft(rest[at:], " ")
		}
		lines = append(lines, lead+rest)
	}
	return lines
}

// count returns a number with its noun.
func count[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return humanize.Comma(int64(n)) + " " + many
}

func bytesText(bytes int64) string { return humanize.Bytes(uint64(max(bytes, 0))) }

func money(dollars float64) string {
	if dollars == 0 {
		return "-"
	}
	return fmt.Sprintf("$%.2f", dollars)
}

// tokens returns a number of tokens in few columns.
func tokens(n int64) string {
	if n == 0 {
		return "-"
	}
	return humanize.Comma(n)
}

// shellQuote returns text as one word of a shell.
func shellQuote(text string) string {
	if text != "" && strings.IndexFunc(text, func(r rune) bool {
		return r >= utf8.RuneSelf || !(unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("/._-+:=@%", r))
	}) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// problemText says in words what an import has to say of a file or a line.
func problemText(p *repo.Problem) string {
	what := map[repo.ProblemCode]string{
		repo.CodeNotFound:          "does not exist",
		repo.CodeUnreadable:        "cannot be read",
		repo.CodeEmpty:             "empty: nothing to list",
		repo.CodeNotASession:       "no session",
		repo.CodeUnsupportedFormat: "sessions of another format",
		repo.CodeTooLarge:          "too large",
		repo.CodeNoHeader:          "no header, taken in under the name of the file",
		repo.CodeMalformedLine:     "damaged line, kept as it is",
	}[p.Code]
	if what == "" {
		what = string(p.Code)
	}
	if p.Detail != "" && p.Code != repo.CodeNotFound {
		what += ": " + p.Detail
	}
	return what
}

// roleWords are the roles that search knows by words of its own.
var roleWords = []string{"user", "assistant", "tool", "bash", "system", "custom", "summary", "label", "name"}

// roleWord names who speaks in an entry by the word that search --role takes, any other
// entry by its type.
func roleWord(kind, role string) string {
	switch role {
	case "toolResult":
		return "tool"
	case "bashExecution":
		return "bash"
	case "compactionSummary", "branchSummary":
		return "summary"
	case "":
	default:
		return role
	}
	switch kind {
	case "compaction", "branch_summary":
		return "summary"
	case "custom_message":
		return "custom"
	case "session_info":
		return "name"
	}
	return kind
}

// lineText returns a line number as ENTRY names it, without the colon.
func lineText(n query.LineNumber) string {
	if n.Part > 0 {
		return fmt.Sprintf("%d.%d", n.Line, n.Part)
	}
	return strconv.FormatInt(n.Line, 10)
}

// entryName returns what names an entry on the command line, in few columns: its id, or
// its line where the id is long or odd.
func entryName(e *query.Entry) string { return nameOf(e.ID, e.Line) }

func nameOf(id string, line query.LineNumber) string {
	if id == "" || len(id) > 8 || strings.HasPrefix(id, ":") || strings.HasPrefix(id, "-") || shellQuote(id) != id {
		return ":" + lineText(line)
	}
	return id
}
