package sessiongen

import (
	"strconv"
	"time"
)

// scenarios each bring one rule about, on the branch of the leaf.
var scenarios = []func(*gen){
	(*gen).keptPresent, (*gen).keptMissing, (*gen).keptAbsent, (*gen).keptOtherBranch, (*gen).keptNone,
	(*gen).keptLabel, (*gen).keptLater, (*gen).keptOlderCompaction, (*gen).olderInKept, (*gen).olderBeforeKept,
	(*gen).systemInKept,
	(*gen).editEditable, (*gen).editEditable, (*gen).editRoleCustom, (*gen).editUneditable, (*gen).editLastWins,
	(*gen).editUnselected, (*gen).editOtherBranch, (*gen).editCompaction, (*gen).editBeforeKept,
	(*gen).editBeforeTarget, (*gen).editUnknownTarget,
	(*gen).customMessageNull, (*gen).nullContent, (*gen).missingContent, (*gen).settingsBeforeKept,
	(*gen).labels, (*gen).labelTwice, (*gen).labelUnknown, (*gen).names, (*gen).names, (*gen).names,
	(*gen).customRole, (*gen).unknownRole,
	(*gen).newRoot, (*gen).orphan, (*gen).parentAbsent, (*gen).parentEmpty, (*gen).compactionSiblings, (*gen).siblings, (*gen).siblings,
	(*gen).oddValues, (*gen).oddValues, (*gen).oddValues, (*gen).oddValues, (*gen).invalidUTF8, (*gen).lineSeparator,
	(*gen).usageEntry, (*gen).activeToolsStep, (*gen).unknownStep, (*gen).branchSummaryStep,
}

// say adds a message of a common role.
func (g *gen) say() *node { return g.message(pick(g, "user", "assistant", "toolResult")) }

func (g *gen) keptPresent() {
	g.say()
	g.count("context/kept-present")
	g.compaction(pick(g, g.path()...).id, g.chance(0.5))
	g.say()
}

func (g *gen) keptMissing() {
	g.say()
	g.count("context/kept-missing")
	g.compaction(g.newID(), g.chance(0.5))
	g.say()
}

func (g *gen) keptAbsent() {
	g.say()
	g.compaction(absent, g.chance(0.5))
}

func (g *gen) keptOtherBranch() {
	here := g.leaf
	other := g.say()
	g.leaf = here
	g.say()
	g.count("context/kept-other-branch")
	g.compaction(other.id, g.chance(0.5))
	g.say()
}

func (g *gen) keptNone() {
	g.say()
	g.compaction("", g.chance(0.5))
	if g.chance(0.5) {
		g.say()
	}
}

func (g *gen) keptLabel() {
	target := g.say()
	label := g.label(target.id, `"kept"`)
	g.count("label/set")
	g.say()
	g.count("context/kept-label")
	g.compaction(label.id, g.chance(0.5))
}

func (g *gen) keptLater() {
	g.say()
	id := g.newID()
	g.count("context/kept-later")
	g.compaction(id, false)
	g.say().id = id
}

func (g *gen) keptOlderCompaction() {
	g.say()
	older := g.compaction("", true)
	g.say()
	g.count("context/kept-older-compaction")
	g.count("context/older-compaction-in-kept")
	g.compaction(older.id, g.chance(0.5))
	g.say()
}

func (g *gen) olderInKept() {
	kept := g.say()
	g.compaction(pick(g, kept.id, ""), g.chance(0.5))
	g.say()
	g.count("context/older-compaction-in-kept")
	g.compaction(kept.id, g.chance(0.5))
	if g.chance(0.5) {
		g.say()
	}
}

func (g *gen) olderBeforeKept() {
	g.compaction("", g.chance(0.5))
	kept := g.say()
	g.say()
	g.count("context/older-compaction-before-kept")
	g.compaction(kept.id, g.chance(0.5))
}

func (g *gen) systemInKept() {
	kept := pick(g, g.message("system"), g.say())
	g.message("system")
	g.say()
	g.count("context/system-in-kept")
	g.compaction(kept.id, g.chance(0.5))
	if g.chance(0.5) {
		g.count("context/system-after-compaction")
		g.message("system")
	}
	g.say()
}

func (g *gen) editEditable() {
	role := pick(g, "user", "assistant", "toolResult", "custom")
	var target *node
	if role == "custom" {
		target = g.customMessage(g.content())
	} else {
		target = g.message(role)
	}
	if g.chance(0.5) {
		g.filler()
	}
	g.count("context/edit-" + role)
	g.edit(target.id, g.replacement())
	g.say()
}

func (g *gen) editRoleCustom() {
	target := g.message("custom")
	g.count("context/edit-role-custom")
	g.edit(target.id, g.replacement())
}

func (g *gen) editUneditable() {
	var target *node
	switch g.rng.IntN(5) {
	case 0:
		target = g.message("system")
	case 1:
		target = g.message("bashExecution")
	case 2:
		target = g.branchSummary()
	case 3:
		target = g.custom()
	default:
		target = g.edit(g.leaf.id, "null")
		g.count("context/edit-null")
	}
	g.count("context/edit-uneditable")
	g.edit(target.id, g.replacement())
}

func (g *gen) editLastWins() {
	target := g.say()
	g.edit(target.id, g.replacement())
	g.say()
	g.edit(target.id, g.replacement())
	if g.chance(0.4) {
		g.edit(target.id, g.replacement())
	}
	g.count("context/edit-last-wins")
}

func (g *gen) editUnselected() {
	target := g.say()
	kept := g.say()
	g.compaction(pick(g, kept.id, ""), g.chance(0.5))
	g.count("context/edit-unselected-target")
	g.edit(target.id, g.replacement())
	g.say()
}

func (g *gen) editOtherBranch() {
	target := g.say()
	aside := g.leaf
	g.say()
	other := g.edit(target.id, g.replacement()) // on a branch that the next entries are not on
	g.leaf = aside
	g.say()
	g.count("context/edit-other-branch")
	g.edit(pick(g, other.parent.id, other.id), g.replacement()) // and a target that is not on this one
}

func (g *gen) editCompaction() {
	g.say()
	target := g.compaction(pick(g, g.leaf.id, ""), g.chance(0.6))
	g.say()
	g.count("context/edit-compaction")
	g.edit(target.id, g.replacement())
}

func (g *gen) editBeforeKept() {
	id := g.newID()
	g.edit(id, g.replacement())
	kept := g.say()
	kept.id = id
	g.say()
	g.count("context/edit-before-kept")
	g.compaction(kept.id, g.chance(0.5))
	g.say()
}

func (g *gen) editBeforeTarget() {
	id := g.newID()
	g.edit(id, g.replacement())
	g.count("context/edit-before-target")
	g.say().id = id
}

func (g *gen) editUnknownTarget() {
	g.count("context/edit-unknown-target")
	g.edit(g.newID(), g.replacement())
}

func (g *gen) customMessageNull() {
	g.count("context/custom-message-null")
	g.customMessage(pick(g, "null", absent))
}

func (g *gen) nullContent() {
	role := pick(g, "toolResult", "system")
	g.count("context/null-" + role)
	g.messageWith(role, pick(g, "null", absent))
}

// missingContent leaves the content out, which unlike null keeps the session in pi's listing.
func (g *gen) missingContent() {
	g.count("context/missing-content")
	g.messageWith(pick(g, "user", "assistant"), absent)
}

func (g *gen) settingsBeforeKept() {
	g.modelChange()
	g.thinkingChange()
	kept := g.message(pick(g, "user", "toolResult", "bashExecution"))
	g.count("context/settings-before-kept")
	g.compaction(pick(g, kept.id, ""), g.chance(0.5))
	g.message("user")
}

func (g *gen) labels() {
	target := g.labelled()
	g.count("label/set")
	g.label(target.id, `"first"`)
	if g.chance(0.7) {
		g.count("label/clear")
		g.label(target.id, pick(g, absent, `""`, "null"))
	}
}

// labelled is an entry to hang a label on.
func (g *gen) labelled() *node {
	if g.chance(0.3) {
		g.count("label/of-label")
		g.count("label/set")
		return g.label(g.leaf.id, `"below"`)
	}
	return pick(g, g.nodes...)
}

func (g *gen) labelTwice() {
	target := g.labelled()
	g.label(target.id, `"first"`)
	g.say()
	g.label(target.id, `"second"`)
	g.count("label/set")
	g.count("label/twice")
}

func (g *gen) labelUnknown() {
	g.count("label/unknown-target")
	g.label(g.newID(), `"nowhere"`)
}

func (g *gen) names() {
	switch g.rng.IntN(4) {
	case 0:
		g.nameSet()
	case 1:
		g.count("name/blank")
		g.add("session_info", m("name", quote(pick(g, "", " ", "\n\t", "\u00a0\ufeff"))))
	case 2:
		g.count("name/newlines")
		g.add("session_info", m("name", quote("two\n"+g.text()+"\r\n")))
	default:
		g.count("name/absent")
		if g.chance(0.5) {
			g.add("session_info")
		} else {
			g.add("session_info", m("name", "null"))
		}
	}
}

func (g *gen) customRole() { g.message("custom") }
func (g *gen) unknownRole() {
	g.message(pick(g, "notice", "branchSummary", "compactionSummary", "User"))
}

func (g *gen) hookMessage() {
	g.message("hookMessage")
	g.count("v2/hook-message")
}

func (g *gen) usageEntry() {
	g.add("usage", m("kind", `"title"`), m("provider", `"openai"`), m("model", `"gpt-5.1"`), m("usage", g.usage()), m("note", quote(g.text())))
}
func (g *gen) activeToolsStep()   { g.activeTools() }
func (g *gen) unknownStep()       { g.unknown() }
func (g *gen) branchSummaryStep() { g.branchSummary() }

func (g *gen) newRoot() {
	g.leaf = nil
	g.count("tree/several-roots")
	g.say()
}

func (g *gen) orphan() {
	g.leaf = nil
	g.say().parentJSON = quote(g.newID())
	g.count("tree/orphan")
	g.say()
}

func (g *gen) parentAbsent() {
	g.leaf = nil
	g.say().parentJSON = absent
	g.count("tree/parent-absent")
	g.say()
}

func (g *gen) parentEmpty() {
	g.leaf = nil
	g.say().parentJSON = `""`
	g.count("tree/parent-empty")
	g.say()
}

// compactionSiblings is a compaction that was tried again: only one of the two goes on.
func (g *gen) compactionSiblings() {
	kept := g.say()
	here := g.leaf
	first := g.compaction(kept.id, false)
	g.leaf = here
	second := g.compaction(kept.id, false)
	g.leaf = pick(g, first, second)
	g.count("tree/compaction-siblings")
	g.say()
}

// siblings are children of one parent whose times are in disorder.
func (g *gen) siblings() {
	parent := g.leaf
	name := pick(g, "time/siblings-equal", "time/siblings-bad", "time/siblings-reversed")
	for i := range g.between(2, 7) {
		n := g.addAt(parent, "custom", m("customType", `"sibling"`), m("data", strconv.Itoa(i)))
		switch {
		case name == "time/siblings-equal":
			n.time = quote(g.clock.Truncate(24 * time.Hour).Format(layout))
		case name == "time/siblings-reversed":
			n.time = quote(g.clock.Add(-time.Duration(i*i) * time.Hour).Format(layout))
		case g.chance(0.5):
			n.time = pick(g, `"soon"`, "", "null", `[]`)
		default:
			n.time = quote(g.clock.Add(time.Duration(g.between(-48, 48)) * time.Hour).Format(layout))
		}
	}
	g.count(name)
}

// lastLineOlder ends the file with an entry that is older than the rest and not on the newest branch.
func (g *gen) lastLineOlder() {
	g.leaf = nil
	g.say().time = quote("2020-01-01T00:00:00.000Z")
	g.count("tree/last-line-older")
}

// oddValues is a custom entry and a message with values that careless JSON readers change.
func (g *gen) oddValues() {
	var value string
	switch name := pick(g, "value/odd-numbers", "value/lone-surrogate", "value/duplicate-keys", "value/escaped-keys", "value/integer-keys", "value/proto-key"); name {
	case "value/odd-numbers":
		g.count(name)
		value = list("1e400", "-1e400", "-0", "1E+2", "1.0", "123456789012345678901234567890", "0.1e-7", "5e-324", "9007199254740993", "1e21", "1e-7")
	case "value/lone-surrogate":
		g.count(name)
		value = list(`"a\ud83d"`, `"\uDE00b"`, `"\ud83d\ud83d\ude00"`, `"\ude00\ud83d"`)
	case "value/duplicate-keys":
		g.count(name)
		value = `{"a":1,"b":2,"a":{"x":1,"x":2}}`
	case "value/escaped-keys":
		g.count(name)
		value = `{"\u0061":1,"\ud83d":2,"":3,"a b":4,"\ue000":5,"\ud83d\ude00":6}`
	case "value/integer-keys":
		g.count(name)
		value = `{"b":0,"10":1,"2":2,"01":3,"4294967295":4,"4294967294":5,"-1":6}`
	default:
		g.count(name)
		value = `{"__proto__":{"x":1},"constructor":2}`
	}
	n := g.say()
	inner := g.messageJSON(n.role, g.blocks())
	n.fields = []member{m("message", inner[:len(inner)-1]+`,"details":`+value+"}")}
	g.custom().fields = []member{m("customType", `"odd"`), m("data", value)}
}

func (g *gen) invalidUTF8() {
	g.count("line/invalid-utf8")
	bad := pick(g, "\xff", "\xc3(", "\xed\xa0\x80", "\xf0\x9f\x9a", "\xc0\xaf", "\xe2\x82\xe2\x82\xac")
	g.messageWith("user", `"bad `+bad+` bytes"`)
}

func (g *gen) lineSeparator() {
	g.count("line/u2028")
	g.messageWith("user", quote("one\u2028two\u2029three\u0085four"))
}
