package repo

import (
	"fmt"
	"unicode/utf8"

	"pidb/jsonl"
)

// EntryError is returned by an append for the first entry that it cannot take.
type EntryError struct {
	Index int // of the entry among those of the append, from 0
	Err   error
}

func (e *EntryError) Error() string { return fmt.Sprintf("entry %d: %v", e.Index+1, e.Err) }

// Unwrap returns what is wrong with the entry.
func (e *EntryError) Unwrap() error { return e.Err }

// invalid is an error that wraps ErrInvalidEntry.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalidEntry, fmt.Errorf(format, args...))
}

// checkEntry returns an error that wraps [ErrInvalidEntry] for an entry on which pi throws.
func checkEntry(entry jsonl.Value) error {
	switch typ, _ := entry.Get("type").Text(); typ {
	case "message":
		message := entry.Get("message")
		if !message.Exists() && entry.Get("role").Exists() {
			return invalid("message is missing: role and content stand within it")
		}
		return checkMessage("message", message)
	case "custom_message":
		return checkContent("content", entry.Get("content"))
	case "session_info":
		return checkKind("name", entry.Get("name"), true, jsonl.KindString)
	case "usage":
		return checkKind("usage", entry.Get("usage"), false, jsonl.KindObject)
	case "label":
		if err := checkKind("targetId", entry.Get("targetId"), false, jsonl.KindString); err != nil {
			return err
		}
		return checkKind("label", entry.Get("label"), true, jsonl.KindString)
	case "context_edit":
		if err := checkKind("targetId", entry.Get("targetId"), false, jsonl.KindString); err != nil {
			return err
		}
		replacement := entry.Get("replacement")
		if replacement.Kind() == jsonl.KindNull {
			return nil
		}
		if err := checkKind("replacement", replacement, false, jsonl.KindObject); err != nil {
			return err
		}
		if content := replacement.Get("content"); !content.Exists() || content.Kind() == jsonl.KindNull {
			return invalid("replacement.content is missing")
		}
		return checkContent("replacement.content", replacement.Get("content"))
	case "compaction":
		if message := entry.Get("systemMessage"); message.Exists() && message.Kind() != jsonl.KindNull {
			return checkMessage("systemMessage", message)
		}
	}
	return nil
}

// checkMessage checks a message that is a member of an entry.
func checkMessage(name string, message jsonl.Value) error {
	if err := checkKind(name, message, false, jsonl.KindObject); err != nil {
		return err
	}
	if err := checkKind(name+".role", message.Get("role"), false, jsonl.KindString); err != nil {
		return err
	}
	switch role, _ := message.Get("role").Text(); role {
	case "system":
		if err := checkKind(name+".sections", message.Get("sections"), true, jsonl.KindObject); err != nil {
			return err
		}
		for _, list := range []string{"toolsAdded", "toolsRemoved"} {
			if err := checkObjects(name+"."+list, message.Get(list)); err != nil {
				return err
			}
		}
	case "user", "assistant", "toolResult", "custom":
	default:
		return nil
	}
	return checkContent(name+".content", message.Get("content"))
}

// checkContent checks content: a string, an array of blocks, or nothing.
func checkContent(name string, content jsonl.Value) error {
	if content.Kind() == jsonl.KindString {
		return nil
	}
	return checkObjects(name, content)
}

// checkObjects checks an array of objects that may be missing.
func checkObjects(name string, list jsonl.Value) error {
	if err := checkKind(name, list, true, jsonl.KindArray); err != nil {
		return err
	}
	i := 0
	for element := range list.Elements() {
		if err := checkKind(fmt.Sprintf("%s[%d]", name, i), element, false, jsonl.KindObject); err != nil {
			return err
		}
		i++
	}
	return nil
}

// checkKind checks that a member is of a kind, or, where it is optional, missing or null.
func checkKind(name string, v jsonl.Value, optional bool, kind jsonl.Kind) error {
	switch {
	case optional && (!v.Exists() || v.Kind() == jsonl.KindNull), v.Exists() && v.Kind() == kind:
		return nil
	case !v.Exists():
		return invalid("%s is missing", name)
	}
	return invalid("%s is no %s", name, kindNames[kind])
}

var kindNames = map[jsonl.Kind]string{jsonl.KindString: "string", jsonl.KindArray: "array", jsonl.KindObject: "object"}

// checkText returns an error that wraps [ErrInvalidEntry] for text that is not UTF-8.
func checkText(text string) error {
	if utf8.ValidString(text) {
		return nil
	}
	for at, r := range text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[at:]); size == 1 {
				return fmt.Errorf("invalid UTF-8 at byte %d", at)
			}
		}
	}
	return nil
}
