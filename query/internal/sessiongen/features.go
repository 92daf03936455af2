package sessiongen

import "strings"

// features names every trait that a session can have.
var features = strings.Fields(`
	entry/message entry/thinking_level_change entry/model_change entry/usage entry/compaction entry/context_edit
	entry/branch_summary entry/custom entry/custom_message entry/label entry/session_info entry/leaf
	entry/active_tools_change entry/unknown

	role/user role/assistant role/toolResult role/bashExecution role/system role/custom role/unknown

	label/set label/clear label/twice label/unknown-target label/of-label
	name/set name/blank name/newlines name/absent

	context/compaction-system context/compaction-plain context/compaction-empty-summary
	context/kept-present context/kept-missing context/kept-absent context/kept-other-branch context/kept-none
	context/kept-label context/kept-later context/kept-older-compaction
	context/older-compaction-in-kept context/older-compaction-before-kept
	context/system-in-kept context/system-after-compaction
	context/edit-null context/edit-string context/edit-array context/edit-user context/edit-assistant
	context/edit-toolResult context/edit-custom context/edit-uneditable context/edit-last-wins
	context/edit-unselected-target context/edit-other-branch context/edit-compaction context/edit-before-kept
	context/edit-before-target context/edit-unknown-target context/edit-role-custom
	context/branch-summary context/branch-summary-empty
	context/custom-message context/custom-message-null context/no-message
	context/null-toolResult context/null-system context/missing-content
	context/settings-before-kept context/model-change context/model-assistant context/thinking-off

	tree/branch tree/several-roots tree/orphan tree/forward-parent tree/compaction-siblings tree/parent-absent
	tree/parent-empty tree/last-line-older

	time/equal time/bad time/absent time/backwards time/offset time/number time/legacy
	time/siblings-equal time/siblings-bad time/siblings-reversed time/message-odd

	line/blank line/malformed line/crlf line/mixed-ends line/no-final-newline line/torn-end line/nul
	line/invalid-utf8 line/u2028 line/spacing line/key-order line/falsy

	value/odd-numbers value/lone-surrogate value/duplicate-keys value/escaped-keys value/integer-keys value/proto-key

	header/no-cwd header/bad-time header/later-session header/version-string header/extra

	v1/session v1/index v1/index-out-of-range v1/index-of-header v1/ids v1/hook-message
	v2/session v2/hook-message

	odd/label-not-string odd/edit-no-content odd/empty-id odd/type-not-string odd/content-not-list
	odd/system-message

	diff/cycle diff/cycle-tail diff/self-parent
	diff/duplicate-id diff/duplicate-id-descendant diff/duplicate-id-elsewhere diff/duplicate-line diff/duplicate-all
	diff/several-objects diff/torn-before-object diff/nested-in-torn
	diff/scalar-line diff/array-line
	diff/null-user diff/null-assistant
	diff/bom diff/records-before-header diff/no-header diff/header-too-late diff/header-id
	diff/version-1 diff/newer-kind diff/other-format diff/empty-file
	diff/no-id diff/no-message diff/name-not-string diff/null-block diff/no-replacement
`)

var known = func() map[string]bool {
	set := make(map[string]bool, len(features))
	for _, name := range features {
		set[name] = true
	}
	return set
}()

// Features lists the names that [Session.Features] can hold.
func Features() []string { return append([]string(nil), features...) }
