package repo_test

import (
	"errors"
	"strings"
	"testing"

	"pidb/repo"
)

// What pi throws at is refused, and the error says which entry it is and why.
func TestAppendRefuses(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	for text, want := range map[string]string{
		`{"type":""}`:        "no type",
		`{"type":"message"}`: "message is missing",
		`{"type":"message","role":"user","content":"x"}`:                              "message is missing: role and content stand within it",
		`{"type":"message","message":null}`:                                           "message is no object",
		`{"type":"message","message":"text"}`:                                         "message is no object",
		`{"type":"message","message":{"content":"x"}}`:                                "message.role is missing",
		`{"type":"message","message":{"role":1}}`:                                     "message.role is no string",
		`{"type":"message","message":{"role":"user","content":7}}`:                    "message.content is no array",
		`{"type":"message","message":{"role":"user","content":[{},null]}}`:            "message.content[1] is no object",
		`{"type":"message","message":{"role":"system","sections":[]}}`:                "message.sections is no object",
		`{"type":"message","message":{"role":"system","toolsAdded":[null]}}`:          "message.toolsAdded[0] is no object",
		`{"type":"message","message":{"role":"system","toolsRemoved":1}}`:             "message.toolsRemoved is no array",
		`{"type":"custom_message","customType":"x","content":1}`:                      "content is no array",
		`{"type":"session_info","name":1}`:                                            "name is no string",
		`{"type":"usage","kind":"x"}`:                                                 "usage is missing",
		`{"type":"label","label":"x"}`:                                                "targetId is missing",
		`{"type":"label","targetId":"x","label":1}`:                                   "label is no string",
		`{"type":"context_edit","targetId":"x"}`:                                      "replacement is missing",
		`{"type":"context_edit","targetId":"x","replacement":{}}`:                     "replacement.content is missing",
		`{"type":"context_edit","replacement":null}`:                                  "targetId is missing",
		`{"type":"compaction","summary":"s","systemMessage":{"role":1}}`:              "systemMessage.role is no string",
		"{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"\xff\"}}": "invalid UTF-8 at byte 54",
	} {
		_, err := s.Append(t.Context(), userMessage("fine"), repo.Raw(raw(text)))
		fault, ok := errors.AsType[*repo.EntryError](err)
		if !ok || fault.Index != 1 || !errors.Is(err, repo.ErrInvalidEntry) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{
		`{"type":"message","message":{"role":"user"}}`, `{"type":"message","message":{"role":"new","content":7}}`,
		`{"type":"session_info"}`, `{"type":"session_info","name":null}`, `{"type":"custom"}`, `{"type":"compaction","systemMessage":null}`,
	} {
		appendTo(t, s, repo.Raw(raw(text)))
	}
}
