package redact

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// A FileRule is a rule as its file has it, and as a Redactor uses it.
type FileRule struct {
	ID       string
	Tree     *syntax.Regexp
	Regexp   *regexp.Regexp
	Anchored bool
	Keywords []string
	rule     *rule
}

// AllRules returns all rules.
func AllRules() ([]FileRule, error) {
	var list []FileRule
	for _, text := range [][]byte{gitleaksRules, ownRules} {
		var file ruleFile
		if err := toml.Unmarshal(text, &file); err != nil {
			return nil, err
		}
		for _, t := range file.Rules {
			if t.Regex == "" {
				continue
			}
			r, err := t.rule()
			if err != nil {
				return nil, err
			}
			tree, err := syntax.Parse(t.Regex, syntax.Perl)
			if err != nil {
				return nil, err
			}
			list = append(list, FileRule{t.ID, tree, regexp.MustCompile(t.Regex), len(r.heads) > 0, t.Keywords, r})
		}
	}
	return list, nil
}

// Find returns where a Redactor with this rule alone finds matches, without entropy and allowlists.
func (t FileRule) Find(text []byte) [][]int {
	r := *t.rule
	r.entropy, r.allow = 0, nil
	set := &ruleSet{}
	set.add(&r)
	s := newSearcher(set)
	var places [][]int
	for _, f := range s.find(text, nil) {
		places = append(places, []int{f.start, f.end})
	}
	return places
}

// Want returns the same from the rule as its file has it.
func (t FileRule) Want(text []byte) [][]int {
	var places [][]int
	has := func(word string) bool { return strings.Contains(strings.ToLower(string(text)), strings.ToLower(word)) }
	if !t.Anchored && !slices.ContainsFunc(t.Keywords, has) {
		return nil
	}
	for _, groups := range t.Regexp.FindAllSubmatchIndex(text, -1) {
		start, end := t.rule.secret(groups)
		if s := text[start:end]; len(s) > 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
			start, end = start+1, end-1
		}
		places = append(places, []int{start, end})
	}
	return places
}
