package repo_test

import (
	"fmt"
	"strings"
)

// entry returns a line of a user message.
func entry(id, parent, text string) string {
	parentID := "null"
	if parent != "" {
		parentID = `"` + parent + `"`
	}
	return fmt.Sprintf(`{"type":"message","id":"%s","parentId":%s,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"%s"}}`+"\n",
		id, parentID, text)
}

// fieldCases are files as they are met in the field: of each kind of fault one.
func fieldCases() map[string]string {
	long := func(n int) string { return entry("big", "a1", strings.Repeat("x", n)) }
	cases := map[string]string{
		"plain":                      header + user1 + reply1 + user2,
		"torn piece, then complete":  header + user1 + `{"type":"message","id":"zz","parentId":"a1","timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"half a sen` + reply1,
		"cut line, then retry":       header + user1 + reply1[:80] + "\n" + reply1,
		"half a line at the end":     header + user1 + reply1[:80],
		"three broken lines":         header + "{broken\n" + user1 + "nonsense\n" + reply1 + "]\n",
		"open tool call":             header + user1 + `{"type":"message","id":"t","parentId":"a1","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"bash","arguments":{"command":"ls"}}],"stopReason":null}}` + "\n",
		"no header":                  user1 + reply1,
		"empty":                      "",
		"broken first line":          header[:40] + "\n" + user1 + reply1,
		"title before header":        `{"type":"title","v":1,"title":"","pad":"        "}` + "\n" + header + user1,
		"header twice":               header + user1 + reply1 + header + user1 + reply1 + user2,
		"cr line ends":               strings.ReplaceAll(header+user1+reply1, "\n", "\r"),
		"bom":                        "\xef\xbb\xbf" + header + user1,
		"crlf":                       strings.ReplaceAll(header+user1+reply1, "\n", "\r\n"),
		"no final newline":           strings.TrimSuffix(header+user1+reply1, "\n"),
		"cr before the end":          header + user1 + "\r",
		"repeated id and cycle":      header + entry("x", "", "one") + entry("y", "x", "two") + entry("x", "y", "three"),
		"cycle of two":               header + entry("a", "", "root") + entry("b", "c", "b") + entry("c", "b", "c"),
		"cycle with a tail":          header + entry("b", "c", "b") + entry("c", "b", "c") + entry("d", "c", "tail") + entry("e", "d", "tail"),
		"own parent":                 header + entry("a", "a", "self") + entry("b", "a", "child"),
		"forward parents":            header + entry("b", "c", "b") + entry("c", "d", "c") + entry("d", "", "d") + entry("e", "b", "e"),
		"orphans":                    header + entry("b", "gone", "b") + entry("c", "b", "c"),
		"several roots":              header + entry("a", "", "a") + entry("b", "", "b"),
		"the same line twice":        header + user1 + user1,
		"line separators in text":    header + entry("a", "", "one\u2028two\u2029three\u0085four"),
		"lone surrogate":             header + entry("a", "", `cut \ud83d here`) + entry(`\udc88`, "a", "x") + entry(`\udc89`, `\udc88`, "y"),
		"escaped nul":                header + `{"type":"session_info","id":"n","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","name":"a\u0000b"}` + "\n",
		"raw nul":                    header + user1 + "\x00\x00\n" + reply1,
		"invalid utf-8":              header + entry("a", "", "bad \xff\xfe bytes \xe4\xbd") + entry("i\xff", "a", "x"),
		"bad escape":                 header + entry("a", "", `user\***@***.***`) + entry("b", "a", "child"),
		"cut inside a rune":          header + entry("a", "", "half \xe4\xbd"),
		"null content":               header + `{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":null}}` + "\n",
		"message without message":    header + `{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z"}` + "\n" + user2,
		"custom message, no content": header + `{"type":"custom_message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","customType":"x"}` + "\n",
		"scalars":                    header + "42\ntrue\nnull\n\"text\"\n[1,2]\n{}\n" + user1,
		"blank lines":                header + "\n  \n\t\n\u00a0\n" + user1 + "\n\n",
		"odd numbers":                header + `{"type":"custom","customType":"n","data":[9007199254740993,1e400,-0,1.0,1e+2],"id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z"}` + "\n",
		"repeated keys":              header + `{"type":"message","type":"custom","id":"a","id":"b","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z"}` + "\n",
		"version 1":                  `{"type":"session","id":"v1","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/w"}` + "\n" + `{"type":"message","timestamp":"2025-01-01T00:00:01.000Z","message":{"role":"user","content":"old"}}` + "\n" + `{"type":"compaction","timestamp":"2025-01-01T00:00:02.000Z","summary":"s","firstKeptEntryIndex":1,"tokensBefore":3}` + "\n",
		"version 2":                  `{"type":"session","version":2,"id":"v2","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/w"}` + "\n" + `{"type":"message","id":"a","parentId":null,"timestamp":"2025-01-01T00:00:01.000Z","message":{"role":"hookMessage","content":"old"}}` + "\n",
		"bad times":                  header + strings.ReplaceAll(user1, "2026-01-01T00:00:01.000Z", "yesterday") + strings.ReplaceAll(reply1, `"2026-01-01T00:00:02.000Z"`, "1767225602"),
		"bad header time":            strings.Replace(header, "2026-01-01T00:00:00.000Z", "soon", 1) + user1,
		"no cwd":                     strings.Replace(header, `,"cwd":"/work"`, "", 1) + user1,
		"windows cwd":                strings.Replace(header, "/work", `D:\\a\\b`, 1) + user1,
		"hostile id":                 strings.Replace(header, "s-1", "../../../etc/passwd", 1) + user1,
		"id of control characters":   strings.Replace(header, "s-1", `a\nb\u001b]0;x\u0007`, 1) + user1,
		"dangling parent session":    strings.Replace(header, `"cwd"`, `"parentSession":"/gone.jsonl","cwd"`, 1) + user1,
		"name of the wrong type":     header + `{"type":"session_info","id":"n","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","name":5}` + "\n",
		"unknown types":              header + `{"type":"future","id":"f","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","anything":{"deep":[1]}}` + "\n" + `{"type":"leaf","id":"l","parentId":"f","timestamp":"2026-01-01T00:00:01.000Z","targetId":"f"}` + "\n",
		"deep nesting":               header + `{"type":"custom","customType":"d","data":` + strings.Repeat("[", 100000) + strings.Repeat("]", 100000) + `,"id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z"}` + "\n",
		"many custom entries":        header + strings.Repeat(`{"type":"custom","customType":"state","data":{"snapshot":[1,2,3]},"id":"c","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z"}`+"\n", 2000),
		"only a newline":             header + "\n",
		"header alone":               header,
		"header alone, no newline":   strings.TrimSuffix(header, "\n"),
	}
	for _, size := range []int{64 << 10, 1 << 20, 16 << 20} {
		for _, off := range []int{-1, 0, 1} {
			cases[fmt.Sprintf("line of %d bytes", size+off)] = header + user1 + long(size+off) + entry("after", "big", "z")
		}
	}
	return cases
}
