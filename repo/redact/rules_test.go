package redact_test

import (
	"math/rand/v2"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pidb/repo/redact"
)

// TestRules makes texts that each rule matches, with others around them, and compares what
// is found with what the rule finds as its file has it.
func TestRules(t *testing.T) {
	rules, err := redact.AllRules()
	if err != nil {
		t.Fatal(err)
	}
	if len(rules) < 200 {
		t.Errorf("%d rules", len(rules))
	}
	anchored := 0
	for _, rule := range rules {
		if rule.Anchored {
			anchored++
		}
		random := rand.New(rand.NewPCG(1, uint64(len(rule.ID))))
		for range 30 {
			var b strings.Builder
			for range 1 + random.IntN(3) {
				b.WriteString(filler[random.IntN(len(filler))])
				generate(&b, rule.Tree, random)
				b.WriteString(filler[random.IntN(len(filler))])
			}
			text := []byte(b.String())
			if diff := cmp.Diff(rule.Want(text), rule.Find(text)); diff != "" {
				t.Errorf("%s in %q (-want +got):\n%s", rule.ID, text, diff)
				break
			}
		}
	}
	if anchored < len(rules)*9/10 {
		t.Errorf("only %d of %d rules are searched for from where they begin", anchored, len(rules))
	}
}

var filler = []string{"", " ", "\n", `"`, "x", "-", "my_", "token=", "a.b-key", "curl ", " and more text; ", "é", "\xff", "KEY: ", strings.Repeat("n", 60)}

// generate writes a text that an expression matches, but for its assertions.
func generate(b *strings.Builder, re *syntax.Regexp, random *rand.Rand) {
	times := func(least, most int) {
		if most < 0 || most > least+8 {
			most = least + 8
		}
		for range least + random.IntN(most-least+1) {
			generate(b, re.Sub[0], random)
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		text := string(re.Rune)
		if re.Flags&syntax.FoldCase != 0 && random.IntN(2) == 0 {
			text = strings.ToUpper(text)
		}
		b.WriteString(text)
	case syntax.OpCharClass:
		for range 100 {
			i := random.IntN(len(re.Rune)/2) * 2
			c := re.Rune[i] + rune(random.IntN(int(min(re.Rune[i+1]-re.Rune[i], 127)+1)))
			if c < 0x80 {
				b.WriteRune(c)
				return
			}
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte("az09 ./"[random.IntN(7)])
	case syntax.OpCapture:
		generate(b, re.Sub[0], random)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			generate(b, sub, random)
		}
	case syntax.OpAlternate:
		generate(b, re.Sub[random.IntN(len(re.Sub))], random)
	case syntax.OpStar:
		times(0, -1)
	case syntax.OpPlus:
		times(1, -1)
	case syntax.OpQuest:
		times(0, 1)
	case syntax.OpRepeat:
		times(re.Min, re.Max)
	}
}
