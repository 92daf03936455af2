package sessiongen

import (
	"slices"
	"strconv"
	"strings"
)

// header is the session record of a shape.
func (g *gen) header(shape shape) string {
	members := []member{m("type", `"session"`)}
	switch shape {
	case shapeV1:
		if version := pick(g, absent, absent, "1", "null", `"1"`); version != absent {
			members = append(members, m("version", version))
		}
	case shapeV2:
		members = append(members, m("version", pick(g, "2", "2", `"2"`)))
	default:
		version := "3"
		if g.chance(0.2) {
			g.count("header/version-string")
			version = `"3"`
		}
		members = append(members, m("version", version))
	}
	members = append(members, m("id", quote(pick(g, "run.", "5364b4af-ca2c-7a98-a195-")+g.newID())))
	switch {
	case g.chance(0.15):
		g.count("header/bad-time")
		if stamp := pick(g, `"yesterday"`, absent, "1777557508226", "null"); stamp != absent {
			members = append(members, m("timestamp", stamp))
		}
	default:
		members = append(members, m("timestamp", g.stampPlain()))
	}
	switch {
	case g.chance(0.15):
		g.count("header/no-cwd")
		if cwd := pick(g, absent, "null", "5", `""`); cwd != absent {
			members = append(members, m("cwd", cwd))
		}
	default:
		members = append(members, m("cwd", quote(pick(g, "/home/dev/api", "/srv/größe", `C:\Users\dev\proj`))))
	}
	if g.chance(0.2) {
		g.count("header/extra")
		members = append(members, m("parentSession", `"/tmp/parent.jsonl"`), m("branchedFrom", `"older"`), m("10", "1"))
	}
	return object(members...)
}

// stampPlain is an ordinary timestamp.
func (g *gen) stampPlain() string {
	odd := g.odd
	g.odd = nil
	defer func() { g.odd = odd }()
	return g.stamp()
}

// otherFormat is a session of a store that is not pi's.
func (g *gen) otherFormat() []byte {
	g.count("diff/other-format")
	lines := []string{object(m("kind", `"header"`), m("version", "4"), m("id", quote(g.newID())), m("createdAt", g.stampPlain()))}
	for range g.between(0, 5) {
		lines = append(lines, object(m("kind", `"message"`), m("id", quote(g.newID())), m("body", g.content())))
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}

// growV1 adds the entries of a version 1 session: one line, no ids, kept entries by index.
func (g *gen) growV1(entries int) {
	g.count("v1/session")
	g.count("diff/version-1")
	g.modelChange()
	g.message("user")
	for range entries {
		g.message(pick(g, "user", "assistant", "toolResult", "bashExecution"))
	}
	g.message("hookMessage")
	g.count("v1/hook-message")
	for _, step := range g.rng.Perm(3) {
		g.say()
		n := g.compaction(absent, false)
		n.fields = slices.DeleteFunc(n.fields, func(m member) bool { return m.key == `"firstKeptEntryId"` })
		here := len(g.nodes) // the index among header and entries
		switch step {
		case 0:
			g.count("v1/index")
			n.fields = append(n.fields, m("firstKeptEntryIndex", strconv.Itoa(g.between(1, here))))
		case 1:
			g.count("v1/index-out-of-range")
			n.fields = append(n.fields, m("firstKeptEntryIndex", pick(g, "100000", "-1", "2.5", `"2"`, "null", "1e400")))
		default:
			g.count("v1/index-of-header")
			n.fields = append(n.fields, m("firstKeptEntryIndex", "0"))
		}
	}
	n := g.say()
	g.count("v1/ids")
	n.fields = append(n.fields, m("id", quote(n.id)), m("parentId", pick(g, "null", quote(n.id), quote(g.newID()))))
	g.label(n.id, `"by its old id"`)
	for range g.between(0, 4) {
		g.say()
	}
}

// compose turns entries into lines, the header among them.
func (g *gen) compose(shape shape) []string {
	nodes := slices.Clone(g.nodes)
	version := 3
	switch shape {
	case shapeV1:
		version = 1
	case shapeV2:
		version = 2
		g.count("v2/session")
	}
	if version > 1 {
		if g.chance(0.3) {
			nodes = g.moveParent(nodes)
		}
		g.repeatIDs(nodes)
	}
	spacing, order := g.chance(0.2), g.chance(0.2)
	var lines []string
	for _, n := range nodes {
		members := n.members(version)
		if order && g.chance(0.3) {
			g.count("line/key-order")
			g.rng.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		}
		text := object(members...)
		if spacing && g.chance(0.3) {
			g.count("line/spacing")
			text = g.space(members)
		}
		lines = append(lines, text)
	}
	return g.placeHeader(lines, shape)
}

// space writes an object with blanks where JSON allows them.
func (g *gen) space(members []member) string {
	var b strings.Builder
	blank := func() { b.WriteString(pick(g, "", " ", "\t", "  ")) }
	blank()
	b.WriteByte('{')
	for i, member := range members {
		if i > 0 {
			b.WriteByte(',')
		}
		blank()
		b.WriteString(member.key)
		blank()
		b.WriteByte(':')
		blank()
		b.WriteString(member.value)
		blank()
	}
	b.WriteByte('}')
	blank()
	return b.String()
}

// moveParent puts some entry behind a child of its own.
func (g *gen) moveParent(nodes []*node) []*node {
	for range 10 {
		child := g.rng.IntN(len(nodes))
		parent := slices.Index(nodes, nodes[child].parent)
		if parent < 0 || parent > child || nodes[child].apart {
			continue
		}
		moved := nodes[parent]
		nodes = slices.Insert(nodes, child+1, moved)
		g.count("tree/forward-parent")
		return slices.Delete(nodes, parent, parent+1)
	}
	return nodes
}

// repeatIDs gives entries the ids of others.
func (g *gen) repeatIDs(nodes []*node) {
	above := func(a, b *node) bool {
		for n := b.parent; n != nil; n = n.parent {
			if n == a {
				return true
			}
		}
		return false
	}
	repeat := func(name string, fits func(a, b *node) bool) {
		for range 50 {
			a, b := pick(g, nodes...), pick(g, nodes...)
			if a != b && !a.apart && !b.apart && a.id != b.id && fits(a, b) {
				b.id = a.id
				g.count("diff/duplicate-id")
				g.count(name)
				return
			}
		}
	}
	if g.wild(0.24) {
		repeat("diff/duplicate-id-descendant", above)
	}
	if g.wild(0.24) {
		repeat("diff/duplicate-id-elsewhere", func(a, b *node) bool { return !above(a, b) && !above(b, a) })
	}
}

// placeHeader puts the header where the shape has it.
func (g *gen) placeHeader(lines []string, shape shape) []string {
	header := g.header(shape)
	record := func() string {
		return pick(g,
			`{"type":"title","v":1,"title":"","pad":"          "}`,
			`{"x":1}`,
			object(m("type", `"meta"`), m("name", quote(g.text()))),
		)
	}
	badID := object(m("type", `"session"`), m("version", "3"), m("id", pick(g, "5", "null", "{}")), m("timestamp", g.stampPlain()), m("cwd", `"/tmp"`))
	switch shape {
	case shapeNoHeader:
		g.count("diff/no-header")
		return lines
	case shapeLateHeader:
		g.count("diff/header-too-late")
		before := []string{}
		if g.chance(0.8) {
			g.count("diff/header-id")
			before = append(before, badID)
		}
		entries := g.rng.IntN(len(lines) + 1)
		for len(before)+entries < 10 {
			before = append(before, record())
		}
		before = append(before, lines[:entries]...)
		return slices.Concat(before, []string{header}, lines[entries:])
	case shapeRecordsFirst:
		g.count("diff/records-before-header")
		var before []string
		for range g.between(1, 4) {
			before = append(before, record())
		}
		entries := g.rng.IntN(min(len(lines), 5) + 1)
		return slices.Concat(before, lines[:entries], []string{header}, lines[entries:])
	case shapeV3, shapeV2:
		if g.wild(0.12) {
			g.count("diff/header-id")
			header = badID
		}
	}
	return append([]string{header}, lines...)
}

// disturb adds what other programs and crashes leave behind.
func (g *gen) disturb(lines []string, shape shape) []string {
	first := 1 // where lines may be put: behind the header
	if shape == shapeNoHeader {
		first = 0
	}
	insert := func(text string) {
		lines = slices.Insert(lines, g.between(first, len(lines)), text)
	}
	some := func(name string, p float64, texts ...string) {
		if !g.chance(p) {
			return
		}
		for range g.between(1, 3) {
			g.count(name)
			insert(pick(g, texts...))
		}
	}
	some("line/blank", 0.2, "", " ", "\t \t", "\u00a0", "\ufeff", "\u2028")
	some("line/malformed", 0.2, "not json", "{", `{"type":"message"`, `{"a":1,}`, `{'a':1}`, `{"type":"message","id":"zz","parentId":null,"timestamp":"2026-04-29T10:00:00.000Z","message":{"role":"user","content":"\***"}}`, "NaN", `{"type":"custom","id":"zy","parentId":null,"timestamp":"2026-04-29T10:00:00.000Z","data":"`+"tab\there"+`"}`)
	some("line/nul", 0.2, "\x00\x00\x00", `{"type":"custom","id":"nul","parentId":null,"timestamp":"2026-04-29T10:00:00.000Z","data":"`+"\x00"+`"}`)
	some("line/falsy", 0.2, "null", "false", "0", `""`, "-0")
	some("header/later-session", 0.2, g.header(shapeV3), `{"type":"session","version":3,"id":"later"}`, `{"type":"session"}`)
	if g.scope == ScopeAll && !g.calm {
		some("diff/scalar-line", 0.24, "5", "true", `"text"`, "-1.5e3")
		some("diff/array-line", 0.24, "[]", "[1,2]", `[{"type":"message","id":"inarray","parentId":null,"timestamp":"2026-04-29T10:00:00.000Z"}]`)
		lines = g.joinLines(lines, first)
		if shape != shapeLateHeader && g.wild(0.24) {
			g.count("diff/duplicate-all")
			lines = append(lines, lines...)
		}
	}
	if shape != shapeV1 && g.wild(0.24) {
		g.count("diff/duplicate-line")
		insert(lines[g.rng.IntN(len(lines)-first)+first])
	}
	return lines
}

// joinLines lets several objects, or a torn one and a whole one, share a physical line.
func (g *gen) joinLines(lines []string, first int) []string {
	whole := func() int { // a line that holds an object
		for {
			i := g.between(first, len(lines)-1)
			if strings.HasPrefix(lines[i], "{") && strings.HasSuffix(lines[i], "}") {
				return i
			}
		}
	}
	fresh := func() string {
		return object(m("type", `"message"`), m("id", quote(g.newID())), m("parentId", "null"), m("timestamp", g.stampPlain()),
			m("message", g.messageJSON("user", quote(g.text()))))
	}
	if g.chance(0.24) {
		g.count("diff/several-objects")
		switch i := whole(); g.rng.IntN(3) {
		case 0:
			lines[i] += pick(g, "", " ", "\t") + fresh()
		case 1:
			lines[i] = fresh() + pick(g, "", " ", ",") + lines[i]
		default:
			lines[i] += fresh() + fresh()
		}
	}
	if g.chance(0.24) {
		g.count("diff/torn-before-object")
		torn := fresh()
		i := whole()
		lines[i] = torn[:g.between(1, len(torn)-1)] + lines[i]
	}
	if g.chance(0.24) {
		g.count("diff/nested-in-torn")
		torn := object(m("type", `"custom"`), m("id", quote(g.newID())), m("parentId", "null"), m("timestamp", g.stampPlain()), m("data", fresh()))
		torn = torn[:len(torn)-1] + pick(g, "", ",", `,"more":"te`)
		if g.chance(0.5) {
			torn += fresh()
		}
		lines = slices.Insert(lines, g.between(first, len(lines)), torn)
	}
	return lines
}

// join ends the lines and puts them together.
func (g *gen) join(lines []string, shape shape) []byte {
	var b strings.Builder
	bom := 0.04
	if shape == shapeNoHeader || shape == shapeRecordsFirst {
		bom = 0.5
	}
	if g.scope == ScopeAll && g.chance(bom) {
		g.count("diff/bom")
		b.WriteString("\ufeff")
	}
	ends := []string{"\n"}
	switch {
	case g.chance(0.15):
		g.count("line/crlf")
		ends = []string{"\r\n"}
	case g.chance(0.18):
		g.count("line/mixed-ends")
		ends = []string{"\n", "\r\n"}
	}
	for i, line := range lines {
		b.WriteString(line)
		if i < len(lines)-1 {
			b.WriteString(ends[(i*7/3)%len(ends)])
		}
	}
	switch {
	case g.chance(0.15):
		g.count("line/torn-end")
		torn := object(m("type", `"message"`), m("id", quote(g.newID())), m("timestamp", g.stampPlain()), m("message", g.messageJSON("user", g.content())))
		b.WriteString(ends[0] + torn[:g.between(1, len(torn)-1)])
	case g.chance(0.2):
		g.count("line/no-final-newline")
	default:
		b.WriteString(ends[0])
	}
	return []byte(b.String())
}
