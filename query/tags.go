package query

import (
	"iter"
	"slices"
	"strings"

	"pidb/jsonl"
	"pidb/query/fulltext"
)

// What can be asked of an entry beside its words, as the search index has it.

// ErrorTag marks an entry that tells of an error: the result of a tool that failed, a
// command with another exit code than 0, an answer that was cut off by one.
const ErrorTag = "error"

// TypeTag marks entries of a type.
func TypeTag(entryType string) string { return "type " + entryType }

// RoleTag marks messages of a role.
func RoleTag(role string) string { return "role " + role }

// ToolTag marks calls and results of a tool, whatever the case of its name.
func ToolTag(tool string) string { return "tool " + strings.ToLower(tool) }

// Tags returns the tags of an entry but for those of its tools: every segment of its text
// that names a tool adds the [ToolTag] of that.
func Tags(entryType, role string, failed bool) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield(TypeTag(entryType)) || entryType == "message" && !yield(RoleTag(role)) {
			return
		}
		if failed {
			yield(ErrorTag)
		}
	}
}

// IsError reports whether an entry has [ErrorTag].
func IsError(entry jsonl.Object) bool {
	m := entry.Message()
	switch entry.Role() {
	case "toolResult":
		return string(m.Get("isError").Raw()) == "true"
	case "assistant":
		return m.Get("stopReason").IsString("error")
	case "bashExecution":
		code := m.Get("exitCode")
		return code.Kind() == jsonl.KindNumber && string(code.Raw()) != "0"
	}
	return false
}

// FieldOf returns the field of the search index in which a segment is found.
func FieldOf(kind jsonl.SegmentKind) fulltext.Field {
	switch kind {
	case jsonl.SegUser, jsonl.SegAssistant, jsonl.SegError, jsonl.SegSummary, jsonl.SegCustom, jsonl.SegLabel, jsonl.SegSystem:
		return fulltext.Talk
	case jsonl.SegName:
		return fulltext.Name
	case jsonl.SegThinking:
		return fulltext.Thinking
	}
	return fulltext.Tool
}

// roleTags returns the tags of which an entry of a role has one, by the name that the
// role has in a search.
func roleTags(role string) []string {
	switch role {
	case "tool":
		return []string{RoleTag("toolResult"), RoleTag("assistant")}
	case "bash":
		return []string{RoleTag("bashExecution")}
	case "custom":
		return []string{RoleTag("custom"), TypeTag("custom_message")}
	case "summary":
		return []string{TypeTag("compaction"), TypeTag("branch_summary"), RoleTag("compactionSummary"), RoleTag("branchSummary")}
	case "label":
		return []string{TypeTag("label")}
	case "name":
		return []string{TypeTag("session_info")}
	}
	return []string{RoleTag(role)}
}

// knownRoles are the names by which a query can ask for a role.
var knownRoles = []string{
	"user", "assistant", "tool", "bash", "system", "custom", "summary", "label", "name",
	"toolResult", "bashExecution", "branchSummary", "compactionSummary",
}

// knownTypes are the types of entries that a query can ask for.
var knownTypes = []string{"message", "compaction", "branch_summary", "custom_message", "label", "session_info"}

// oneOf returns the name of a list that is text but for case.
func oneOf(list []string, text string) (string, bool) {
	i := slices.IndexFunc(list, func(name string) bool { return strings.EqualFold(name, text) })
	if i < 0 {
		return "", false
	}
	return list[i], true
}
