package sessiongen

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A member is one key of a JSON object with its value, both as JSON.
type member struct{ key, value string }

// m is the member of a plain key.
func m(key, value string) member { return member{quote(key), value} }

// object writes members as compact JSON.
func object(members ...member) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, member := range members {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(member.key + ":" + member.value)
	}
	b.WriteByte('}')
	return b.String()
}

// list writes items as a JSON array.
func list(items ...string) string { return "[" + strings.Join(items, ",") + "]" }

// quote writes a string as JavaScript would.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r < 0x20:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// A node is an entry to be.
type node struct {
	id         string
	idJSON     string // stands for the id when not ""
	parent     *node
	parentJSON string // stands for the parent's id when not ""; absent leaves the member out
	kind       string
	kindJSON   string // stands for the kind when not ""
	role       string // of a message
	time       string // JSON; "" leaves the member out
	fields     []member
	apart      bool // belongs to a cycle or has no usable id: nothing else hangs from it
}

// absent leaves a member out.
const absent = "absent"

// members are the node's members in the order pi writes them.
func (n *node) members(version int) []member {
	kind, id, parent := quote(n.kind), quote(n.id), "null"
	if n.parent != nil {
		parent = quote(n.parent.id)
	}
	if n.kindJSON != "" {
		kind = n.kindJSON
	}
	if n.idJSON != "" {
		id = n.idJSON
	}
	if n.parentJSON != "" {
		parent = n.parentJSON
	}
	var envelope []member
	if version > 1 {
		if id != absent {
			envelope = append(envelope, m("id", id))
		}
		if parent != absent {
			envelope = append(envelope, m("parentId", parent))
		}
	}
	if n.time != "" {
		envelope = append(envelope, m("timestamp", n.time))
	}
	all := []member{m("type", kind)}
	if n.kind == "custom" || n.kind == "custom_message" {
		return append(append(all, n.fields...), envelope...)
	}
	return append(append(all, envelope...), n.fields...)
}

const layout = "2006-01-02T15:04:05.000Z"

// stamp moves the clock and gives an entry's timestamp as JSON.
func (g *gen) stamp() string {
	g.clock = g.clock.Add(time.Duration(g.between(1, 90_000)) * time.Millisecond)
	if len(g.odd) == 0 || !g.chance(0.15) {
		return quote(g.clock.Format(layout))
	}
	name := pick(g, g.odd...)
	g.count(name)
	switch name {
	case "time/equal":
		g.clock = g.clock.Truncate(time.Hour)
		return quote(g.clock.Format(layout))
	case "time/bad":
		return pick(g, `"yesterday"`, `""`, `"2026-13-45T00:00:00.000Z"`, `"2026-04-29T25:00:00.000Z"`, `{}`, `"NaN"`)
	case "time/absent":
		return ""
	case "time/backwards":
		return quote(g.clock.Add(-time.Duration(g.between(1, 72)) * time.Hour).Format(layout))
	case "time/offset":
		return quote(g.clock.Format(pick(g, "2006-01-02T15:04:05Z", "2006-01-02T15:04:05.000+02:00", "2006-01-02T15:04-05:30", "2006-01-02", "2006-01-02T15:04:05.123456789Z")))
	case "time/number":
		return pick(g, strconv.FormatInt(g.clock.UnixMilli(), 10), strconv.FormatInt(g.clock.Unix(), 10), "null", "true", "0")
	default: // what JavaScript's Date reads beyond ISO 8601
		return quote(g.clock.Format(pick(g, time.RFC1123, "Jan 2, 2006 15:04:05 GMT", "2006/01/02 15:04:05 +0000", "2 January 2006 UTC")))
	}
}

// add puts an entry under the leaf and makes it the leaf.
func (g *gen) add(kind string, fields ...member) *node {
	n := g.addAt(g.leaf, kind, fields...)
	g.leaf = n
	return n
}

// addAt puts an entry under a parent, the leaf staying where it is.
func (g *gen) addAt(parent *node, kind string, fields ...member) *node {
	n := &node{id: g.newID(), parent: parent, kind: kind, time: g.stamp(), fields: fields}
	g.nodes = append(g.nodes, n)
	if known["entry/"+kind] {
		g.count("entry/" + kind)
	} else {
		g.count("entry/unknown")
	}
	return n
}

// path is the branch of the leaf, root first.
func (g *gen) path() []*node {
	var path []*node
	for n := g.leaf; n != nil; n = n.parent {
		path = append([]*node{n}, path...)
	}
	return path
}

var words = strings.Fields(`retry backoff index vacuum cursor panic goroutine merge rebase cache leaf branch fooBar foo_bar
	--flag 0xdeadbeef std::vector a*b don't v1.2.3 C++ 100% naïve größe поиск 検索 超时 한국어 emoji🚀 user@example.test null`)

// text is a few words.
func (g *gen) text() string {
	var b strings.Builder
	for i := range g.between(1, 8) {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(pick(g, words...))
	}
	return b.String()
}

func textBlock(text string) string { return object(m("type", `"text"`), m("text", quote(text))) }

// content is a message's content: a string or blocks.
func (g *gen) content() string {
	if g.chance(0.4) {
		return quote(g.text())
	}
	return g.blocks()
}

func (g *gen) blocks() string {
	blocks := []string{textBlock(g.text())}
	if g.chance(0.3) {
		blocks = append(blocks, object(m("type", `"image"`), m("data", `"iVBORw0KGgo="`), m("mimeType", `"image/png"`)))
	}
	if g.chance(0.3) {
		blocks = append(blocks, textBlock(pick(g, g.text(), "", "tab\tnul\x00end", "<b>&amp;</b>")))
	}
	return list(blocks...)
}

func (g *gen) usage() string {
	in, out, read, write := g.between(0, 9000), g.between(0, 3000), g.between(0, 90000), g.between(0, 4000)
	cost := func(n int, rate float64) string { return strconv.FormatFloat(float64(n)*rate, 'f', -1, 64) }
	members := []member{
		m("input", strconv.Itoa(in)), m("output", strconv.Itoa(out)), m("cacheRead", strconv.Itoa(read)), m("cacheWrite", strconv.Itoa(write)),
		m("totalTokens", strconv.Itoa(in+out+read+write)),
	}
	if g.chance(0.9) {
		members = append(members, m("cost", object(
			m("input", cost(in, 3e-6)), m("output", cost(out, 15e-6)), m("cacheRead", cost(read, 3e-7)), m("cacheWrite", cost(write, 3.75e-6)),
			m("total", cost(in+out, 1e-5)))))
	}
	return object(members...)
}

// message adds a message of a role.
func (g *gen) message(role string) *node {
	content := g.content()
	if role != "user" && role != "custom" {
		content = g.blocks()
	}
	if role == "system" {
		content = quote(pick(g, "", g.text()))
	}
	return g.messageWith(role, content)
}

// messageWith adds a message with this content; absent leaves it out.
func (g *gen) messageWith(role, content string) *node {
	n := g.add("message")
	n.role = role
	n.fields = []member{m("message", g.messageJSON(role, content))}
	if known["role/"+role] {
		g.count("role/" + role)
	} else {
		g.count("role/unknown")
	}
	if role == "assistant" {
		g.count("context/model-assistant")
	}
	return n
}

func (g *gen) messageJSON(role, content string) string {
	members := []member{m("role", quote(role))}
	body := func() {
		if content != absent {
			members = append(members, m("content", content))
		}
	}
	switch role {
	case "assistant":
		if strings.HasPrefix(content, "[{") && g.chance(0.4) {
			thinking := object(m("type", `"thinking"`), m("thinking", quote(g.text())), m("thinkingSignature", `"c2ln"`))
			call := object(m("type", `"toolCall"`), m("id", quote("call_"+g.newID())), m("name", `"bash"`), m("arguments", object(m("command", quote(g.text())))))
			content = list(thinking, content[1:len(content)-1], call)
		}
		body()
		provider := pick(g, [2]string{"anthropic", "claude-sonnet-4-5"}, [2]string{"openai", "gpt-5.1"}, [2]string{"local", "qwen3:32b"})
		members = append(members, m("api", `"messages"`), m("provider", quote(provider[0])), m("model", quote(provider[1])))
		if g.chance(0.9) {
			members = append(members, m("usage", g.usage()))
		}
		members = append(members, m("stopReason", quote(pick(g, "stop", "toolUse", "aborted", "error"))))
	case "toolResult":
		members = append(members, m("toolCallId", quote("call_"+g.newID())), m("toolName", quote(pick(g, "bash", "read", "edit"))))
		body()
		members = append(members, m("isError", pick(g, "true", "false")))
		if g.chance(0.3) {
			members = append(members, m("usage", g.usage()), m("details", object(m("diff", quote(g.text())))))
		}
	case "bashExecution":
		members = append(members, m("command", quote("ls "+g.text())), m("output", quote(pick(g, g.text(), ""))))
		if g.chance(0.7) {
			members = append(members, m("exitCode", pick(g, "0", "1", "127", "null")))
		}
		members = append(members, m("cancelled", pick(g, "false", "false", "true")))
		if g.chance(0.3) {
			members = append(members, m("truncated", "true"), m("fullOutputPath", `"/tmp/out.log"`))
		} else {
			members = append(members, m("truncated", "false"))
		}
		if g.chance(0.3) {
			members = append(members, m("excludeFromContext", "true"))
		}
	case "system":
		body()
		members = append(members, m("sections", object(m("preamble", quote(g.text())), m("cwd", `"/p"`), m("skills", "null"))))
		if g.chance(0.6) {
			members = append(members, m("toolsAdded", list(object(m("name", `"read"`), m("description", quote(g.text())), m("parameters", "{}")))))
		}
	case "custom", "hookMessage":
		members = append(members, m("customType", `"ext"`))
		body()
		members = append(members, m("display", pick(g, "true", "false")))
	default:
		body()
	}
	if stamp := g.messageStamp(); stamp != "" {
		members = append(members, m("timestamp", stamp))
	}
	return object(members...)
}

// messageStamp is the time inside a message: milliseconds, but for some.
func (g *gen) messageStamp() string {
	if g.chance(0.04) {
		g.count("time/message-odd")
		return pick(g, "", "0", "-5", "1.5", "1777557508226.75", quote(g.clock.Format(layout)), "null", "1777557508")
	}
	return strconv.FormatInt(g.clock.UnixMilli()-int64(g.between(0, 500)), 10)
}

func (g *gen) modelChange() *node {
	g.count("context/model-change")
	model := pick(g, [2]string{"anthropic", "claude-sonnet-4-5"}, [2]string{"google", "gemini-3-pro"})
	return g.add("model_change", m("provider", quote(model[0])), m("modelId", quote(model[1])))
}

func (g *gen) thinkingChange() *node {
	level := pick(g, "off", "low", "high", "xhigh")
	if level == "off" {
		g.count("context/thinking-off")
	}
	return g.add("thinking_level_change", m("thinkingLevel", quote(level)))
}

func (g *gen) customMessage(content string) *node {
	g.count("context/custom-message")
	fields := []member{m("customType", `"ext"`)}
	if content != absent {
		fields = append(fields, m("content", content))
	}
	fields = append(fields, m("display", pick(g, "true", "false")))
	if g.chance(0.5) {
		fields = append(fields, m("details", object(m("a", "1"))))
	}
	return g.add("custom_message", fields...)
}

func (g *gen) custom() *node {
	g.count("context/no-message")
	return g.add("custom", m("customType", `"state"`), m("data", object(m("x", list("1", "null", quote(g.text()))))))
}

func (g *gen) unknown() *node {
	g.count("context/no-message")
	g.count("diff/newer-kind")
	kind := pick(g, "leaf", "leaf", "lane", "bookmark", "future_entry")
	if kind == "leaf" {
		return g.add(kind, m("targetId", quote(pick(g, g.nodes...).id)))
	}
	return g.add(kind, m("payload", object(m("deep", object(m("x", list(quote(g.text()))))))))
}

func (g *gen) activeTools() *node {
	return g.add("active_tools_change", m("activeTools", list(`"bash"`, `"read"`)))
}

// branchSummary adds the summary of an abandoned branch.
func (g *gen) branchSummary() *node {
	fields := []member{m("fromId", quote(pick(g, "root", pick(g, g.nodes...).id)))}
	switch {
	case g.chance(0.3):
		g.count("context/branch-summary-empty")
		fields = append(fields, m("summary", pick(g, `""`, `""`, "null")))
	default:
		g.count("context/branch-summary")
		fields = append(fields, m("summary", quote(g.text())))
		if g.chance(0.4) {
			fields = append(fields, m("usage", g.usage()))
		}
	}
	return g.add("branch_summary", fields...)
}

// compaction adds a compaction that keeps from an id; absent leaves the member out.
func (g *gen) compaction(kept string, system bool) *node {
	n := g.add("compaction")
	summary := g.text()
	if g.chance(0.1) {
		g.count("context/compaction-empty-summary")
		summary = ""
	}
	n.fields = []member{m("summary", quote(summary))}
	switch kept {
	case absent:
		g.count("context/kept-absent")
		if g.chance(0.5) {
			n.fields = append(n.fields, m("firstKeptEntryId", "null"))
		}
	case "":
		g.count("context/kept-none")
		n.fields = append(n.fields, m("firstKeptEntryId", quote(n.id)))
	default:
		n.fields = append(n.fields, m("firstKeptEntryId", quote(kept)))
	}
	n.fields = append(n.fields, m("tokensBefore", strconv.Itoa(g.between(100, 90000))))
	if g.chance(0.4) {
		n.fields = append(n.fields, m("details", object(m("readFiles", list(`"a.go"`)), m("modifiedFiles", "[]"))))
	}
	if g.chance(0.3) {
		n.fields = append(n.fields, m("usage", g.usage()))
	}
	if system {
		g.count("context/compaction-system")
		n.fields = append(n.fields, m("systemMessage", g.messageJSON("system", quote(pick(g, "", g.text())))))
	} else {
		g.count("context/compaction-plain")
	}
	return n
}

// edit adds a context edit; replacement is JSON, absent leaves it out.
func (g *gen) edit(target, replacement string) *node {
	fields := []member{m("targetId", quote(target))}
	if replacement != absent {
		fields = append(fields, m("replacement", replacement))
	}
	return g.add("context_edit", fields...)
}

// replacement is a random one.
func (g *gen) replacement() string {
	switch g.rng.IntN(3) {
	case 0:
		g.count("context/edit-null")
		return "null"
	case 1:
		g.count("context/edit-string")
		return object(m("content", quote(pick(g, "", g.text()))))
	default:
		g.count("context/edit-array")
		return object(m("content", pick(g, "[]", g.blocks())))
	}
}

func (g *gen) label(target, label string) *node {
	fields := []member{m("targetId", quote(target))}
	if label != absent {
		fields = append(fields, m("label", label))
	}
	return g.add("label", fields...)
}

func (g *gen) labelSet() *node {
	g.count("label/set")
	return g.label(pick(g, g.nodes...).id, quote(pick(g, "ok", "v1", "checkpoint", "ラベル", " ")))
}

func (g *gen) nameSet() *node {
	g.count("name/set")
	return g.add("session_info", m("name", quote(pick(g, "padded  ", "検索", g.text()))))
}
