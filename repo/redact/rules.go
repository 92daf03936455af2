package redact

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
)

//go:embed rules/gitleaks.toml
var gitleaksRules []byte

//go:embed rules/pidb.toml
var ownRules []byte

// ruleFile is a file of rules, in the form of gitleaks.
type ruleFile struct {
	Title      string      `toml:"title"`
	MinVersion string      `toml:"minVersion"`
	Allowlist  allowTable  `toml:"allowlist"`
	Rules      []ruleTable `toml:"rules"`
}

type ruleTable struct {
	ID          string       `toml:"id"`
	Description string       `toml:"description"`
	Regex       string       `toml:"regex"`
	Path        string       `toml:"path"` // of files; text has none, so that the rule holds everywhere
	Entropy     float64      `toml:"entropy"`
	SecretGroup int          `toml:"secretGroup"`
	Keywords    []string     `toml:"keywords"`
	Allowlists  []allowTable `toml:"allowlists"`
}

type allowTable struct {
	Description string   `toml:"description"`
	Condition   string   `toml:"condition"`
	Paths       []string `toml:"paths"`
	RegexTarget string   `toml:"regexTarget"`
	Regexes     []string `toml:"regexes"`
	StopWords   []string `toml:"stopwords"`
}

// A rule finds one kind of secret.
type rule struct {
	id      string
	entropy float64 // of a secret is above this, in bits a byte; 0: any
	group   int     // of the expression that is the secret; 0: the first that is not empty, else all
	generic bool    // gives way to other rules
	allow   []allowlist

	// Every match begins with one of heads, in lower case, and source then holds for the
	// text from there on. Without heads source is searched for in a text that has a keyword.
	heads    []string
	boundary bool // a head begins at the boundary of a word
	named    bool // up to maxName characters of a name may stand before a head
	keywords []string
	source   string
	expr     func() *regexp.Regexp // source, compiled when it is needed first
}

// An allowlist says which findings are none.
type allowlist struct {
	target string                // what expr is matched with: match, line, or empty for the secret
	expr   func() *regexp.Regexp // nil: none
	words  *finder               // in the secret; nil: none
}

// loadRules returns the rules of a file, and those that its allowlist of all rules makes.
func loadRules(text []byte) (rules []*rule, allow []allowlist, err error) {
	var file ruleFile
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&file); err != nil {
		return nil, nil, err
	}
	if allow, err = appendAllow(nil, file.Allowlist); err != nil {
		return nil, nil, err
	}
	for _, t := range file.Rules {
		if t.Regex == "" { // of names of files only
			continue
		}
		r, err := t.rule()
		if err != nil {
			return nil, nil, fmt.Errorf("rule %s: %w", t.ID, err)
		}
		rules = append(rules, r)
	}
	return rules, allow, nil
}

func (t *ruleTable) rule() (*rule, error) {
	r := &rule{id: t.ID, entropy: t.Entropy, group: t.SecretGroup, generic: strings.Contains(t.ID, "generic"), source: t.Regex}
	tree, err := syntax.Parse(t.Regex, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if r.group > tree.MaxCap() {
		return nil, fmt.Errorf("there is no group %d", r.group)
	}
	for _, table := range t.Allowlists {
		if r.allow, err = appendAllow(r.allow, table); err != nil {
			return nil, err
		}
	}
	anchored := r.anchor(tree)
	r.expr = compile(r.source)
	if anchored {
		return r, nil
	}
	for _, word := range t.Keywords {
		if len(word) < minHead {
			return nil, fmt.Errorf("keyword %q is too short", word)
		}
		r.keywords = append(r.keywords, strings.ToLower(word))
	}
	if len(r.keywords) == 0 {
		return nil, fmt.Errorf("no keywords")
	}
	return r, nil
}

func appendAllow(list []allowlist, t allowTable) ([]allowlist, error) {
	switch t.Condition {
	case "", "OR":
	case "AND":
		if len(t.Paths) > 0 { // never so: text has no path
			return list, nil
		}
		return nil, fmt.Errorf("allowlist with condition AND")
	default:
		return nil, fmt.Errorf("allowlist with condition %q", t.Condition)
	}
	a := allowlist{target: t.RegexTarget}
	if t.RegexTarget != "" && t.RegexTarget != "match" && t.RegexTarget != "line" {
		return nil, fmt.Errorf("allowlist with target %q", t.RegexTarget)
	}
	if len(t.Regexes) > 0 {
		source := "(?:" + strings.Join(t.Regexes, ")|(?:") + ")"
		if _, err := syntax.Parse(source, syntax.Perl); err != nil {
			return nil, err
		}
		a.expr = compile(source)
	}
	if len(t.StopWords) > 0 {
		a.words = &finder{}
		for _, word := range t.StopWords {
			if len(word) < minHead {
				return nil, fmt.Errorf("stop word %q is too short", word)
			}
			a.words.add(strings.ToLower(word), 0)
		}
	}
	if a.expr == nil && a.words == nil { // of paths only
		return list, nil
	}
	return append(list, a), nil
}

const (
	maxName  = 50
	maxHeads = 64
)

// anchor finds out which heads the matches of a rule have, and makes source begin with
// them. It reports whether there are such.
func (r *rule) anchor(tree *syntax.Regexp) bool {
	parts := []*syntax.Regexp{tree}
	if tree.Op == syntax.OpConcat {
		parts = tree.Sub
	}
	var boundary, named bool
	switch first := parts[0]; {
	case first.Op == syntax.OpWordBoundary:
		boundary = true
	case isName(first):
		named = true
	}
	if boundary || named {
		parts = parts[1:]
	}
	if len(parts) == 0 {
		return false
	}
	rest := &syntax.Regexp{Op: syntax.OpConcat, Flags: tree.Flags, Sub: parts}
	heads, _ := headsOf(rest)
	if len(heads) == 0 || slices.ContainsFunc(heads, func(h string) bool { return len(h) < minHead }) {
		return false
	}
	slices.Sort(heads)
	r.heads, r.boundary, r.named = slices.Compact(heads), boundary, named
	r.source = `\A(?:` + rest.String() + `)`
	return true
}

// isName reports whether an expression is [\w.-]{0,50}?.
func isName(re *syntax.Regexp) bool {
	if re.Op != syntax.OpRepeat || re.Min != 0 || re.Max != maxName || re.Flags&syntax.NonGreedy == 0 || re.Sub[0].Op != syntax.OpCharClass {
		return false
	}
	class := re.Sub[0].Rune
	for c := range rune(utf8.RuneSelf) {
		in := false
		for i := 0; i < len(class); i += 2 {
			in = in || class[i] <= c && c <= class[i+1]
		}
		if in != isNameByte(byte(c)) {
			return false
		}
	}
	return true
}

func isNameByte(c byte) bool { return isWordByte(c) || c == '.' || c == '-' }

func isWordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// headsOf returns texts, in lower case, with one of which every match of an expression
// begins, and whether they are all that it matches. None stand for any text.
func headsOf(re *syntax.Regexp) (heads []string, whole bool) {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return []string{""}, true
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}, true
	case syntax.OpCapture:
		return headsOf(re.Sub[0])
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			if re.Rune[i+1]-re.Rune[i] >= maxHeads || len(heads) >= maxHeads {
				return nil, false
			}
			for c := re.Rune[i]; c <= re.Rune[i+1]; c++ {
				heads = append(heads, strings.ToLower(string(c)))
			}
		}
		slices.Sort(heads)
		return slices.Compact(heads), true
	case syntax.OpQuest:
		heads, whole = headsOf(re.Sub[0])
		if !whole {
			return nil, false
		}
		return append(heads, ""), true
	case syntax.OpAlternate:
		whole = true
		for _, sub := range re.Sub {
			h, w := headsOf(sub)
			if len(h) == 0 || len(heads)+len(h) > maxHeads {
				return nil, false
			}
			heads, whole = append(heads, h...), whole && w
		}
		return heads, whole
	case syntax.OpConcat:
		heads, whole = []string{""}, true
		for _, sub := range re.Sub {
			h, w := headsOf(sub)
			if len(h) == 0 || len(heads)*len(h) > maxHeads || longEnough(heads) {
				return heads, false
			}
			var longer []string
			for _, a := range heads {
				for _, b := range h {
					longer = append(longer, a+b)
				}
			}
			heads = longer
			if !w {
				return heads, false
			}
		}
		return heads, true
	}
	return nil, false
}

// longEnough reports whether heads are so long that longer ones find nothing better.
func longEnough(heads []string) bool {
	return !slices.ContainsFunc(heads, func(h string) bool { return len(h) < 8 })
}

// compile returns a function that compiles an expression once.
func compile(source string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(source) })
}

// allows reports whether an allowlist says that a finding is none.
func (a *allowlist) allows(text []byte, f match) bool {
	if a.words != nil && a.words.any(text[f.start:f.end]) {
		return true
	}
	if a.expr == nil {
		return false
	}
	switch a.target {
	case "match":
		return a.expr().Match(text[f.from:f.to])
	case "line":
		return a.expr().Match(lineAround(text, f.from, f.to))
	}
	return a.expr().Match(text[f.start:f.end])
}

// lineAround returns the lines of text that from and to are in, but not more than some
// thousand bytes to each side.
func lineAround(text []byte, from, to int) []byte {
	const limit = 4096
	before := text[max(0, from-limit):from]
	after := text[to:min(len(text), to+limit)]
	if i := bytes.LastIndexByte(before, '\n'); i >= 0 {
		before = before[i+1:]
	}
	if i := bytes.IndexByte(after, '\n'); i >= 0 {
		after = after[:i]
	}
	return text[from-len(before) : to+len(after)]
}

// entropy returns Shannon's entropy of a text in bits a byte, as gitleaks counts it.
func entropy(text []byte) float64 {
	counts := map[rune]int{}
	for _, c := range string(text) {
		counts[c]++
	}
	sum := 0.0
	for _, n := range counts {
		p := float64(n) / float64(len(text))
		sum -= p * math.Log2(p)
	}
	return sum
}
