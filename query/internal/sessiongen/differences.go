package sessiongen

// oddScenarios bring what docs/differences.md does not speak of.
var oddScenarios = []func(*gen){
	(*gen).labelNotString, (*gen).editNoContent, (*gen).emptyID, (*gen).typeNotString, (*gen).contentNotList,
	(*gen).systemMessageOdd,
}

// diffScenarios bring entries that pi and pidb take differently on purpose.
var diffScenarios = []func(*gen){
	(*gen).cycle, (*gen).cycleTail, (*gen).selfParent, (*gen).nullUser, (*gen).nullAssistant, (*gen).noID, (*gen).noMessage,
	(*gen).nameNotString, (*gen).nullBlock, (*gen).noReplacement,
}

func (g *gen) labelNotString() {
	g.count("odd/label-not-string")
	g.label(pick(g, g.nodes...).id, pick(g, "5", "true", "{}"))
}

func (g *gen) editNoContent() {
	target := g.say()
	g.count("odd/edit-no-content")
	g.edit(target.id, pick(g, "{}", `"text"`, "5", "[]", `{"content":5}`, `{"content":null}`))
}

func (g *gen) emptyID() {
	g.count("odd/empty-id")
	n := g.addAt(g.leaf, "custom", m("customType", `"empty"`))
	n.idJSON, n.apart = `""`, true
}

func (g *gen) typeNotString() {
	g.count("odd/type-not-string")
	n := g.addAt(g.leaf, "nothing")
	n.kindJSON = pick(g, "5", "null", "{}", `["message"]`)
}

func (g *gen) contentNotList() {
	g.count("odd/content-not-list")
	g.messageWith(pick(g, "toolResult", "system", "custom"), pick(g, "5", "true", `{"a":1}`))
}

func (g *gen) systemMessageOdd() {
	g.count("odd/system-message")
	n := g.compaction("", false)
	n.fields = append(n.fields, m("systemMessage", pick(g, "null", `""`, "0", "{}", `"text"`, "5")))
}

// ring adds entries each of which is the parent of the one before, and the first of the last.
func (g *gen) ring(size int) []*node {
	ring := make([]*node, size)
	for i := range ring {
		var parent *node
		if i > 0 {
			parent = ring[i-1]
		}
		ring[i] = g.addAt(parent, pick(g, "custom", "message"))
		if ring[i].kind == "message" {
			ring[i].role = "user"
			ring[i].fields = []member{m("message", g.messageJSON("user", g.content()))}
			g.count("role/user")
		}
		ring[i].apart = true
	}
	ring[0].parentJSON = quote(ring[size-1].id)
	return ring
}

func (g *gen) cycle() {
	g.count("diff/cycle")
	g.ring(g.between(2, 6))
}

func (g *gen) cycleTail() {
	ring := g.ring(g.between(2, 6))
	g.count("diff/cycle")
	g.count("diff/cycle-tail")
	tail := pick(g, ring...)
	for range g.between(1, 3) {
		tail = g.addAt(tail, "custom", m("customType", `"tail"`))
		tail.apart = true
	}
}

func (g *gen) selfParent() {
	g.count("diff/self-parent")
	n := g.ring(1)[0]
	if g.chance(0.5) {
		g.addAt(n, "custom", m("customType", `"tail"`)).apart = true
	}
}

func (g *gen) nullUser() {
	g.count("diff/null-user")
	g.messageWith("user", "null")
}

func (g *gen) nullAssistant() {
	g.count("diff/null-assistant")
	g.messageWith("assistant", "null")
}

func (g *gen) noID() {
	g.count("diff/no-id")
	n := g.addAt(g.leaf, "custom", m("customType", `"nameless"`))
	n.idJSON, n.apart = pick(g, absent, "5", "null", `["x"]`), true
}

func (g *gen) noMessage() {
	g.count("diff/no-message")
	n := g.add("message")
	if g.chance(0.5) {
		n.fields = []member{m("message", pick(g, "null", "5", `"text"`))}
	}
}

func (g *gen) nameNotString() {
	g.count("diff/name-not-string")
	g.add("session_info", m("name", pick(g, "5", "true", "{}", `["x"]`)))
}

func (g *gen) nullBlock() {
	g.count("diff/null-block")
	g.messageWith(pick(g, "user", "assistant"), list("null", textBlock(g.text())))
}

func (g *gen) noReplacement() {
	target := g.say()
	g.count("diff/no-replacement")
	g.edit(target.id, absent)
}
