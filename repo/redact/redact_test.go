package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pidb/repo/redact"
)

const (
	digits = "0123456789"
	hex    = digits + "abcdef"
	alnum  = digits + "abcdefghijklmnopqrstuvwxyz" + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// token makes a text that looks like a secret and is none. It is made here so that no
// file has it.
func token(prefix, alphabet string, n int, seed uint64) string {
	random := rand.New(rand.NewPCG(seed, 7))
	b := []byte(prefix)
	for range n {
		b = append(b, alphabet[random.IntN(len(alphabet))])
	}
	return string(b)
}

var (
	github  = token("gh"+"p_", alnum, 36, 1)
	github2 = token("gh"+"p_", alnum, 36, 2)
	slack   = "https://hooks.slack" + ".com/services/" + token("T", alnum, 10, 3) + "/" + token("B", alnum, 10, 4) + "/" + token("", alnum, 24, 5)
	oauth   = token("sk-"+"ant-oat01-", alnum, 95, 6)
	plain   = token("", alnum, 32, 7)
	aws     = token("AK"+"IA", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16, 8)
	bot     = token("73819"+"20465:A"+"A", alnum, 33, 12)
	dashes  = "-----"
	pem     = dashes + "BEGIN RSA PRIVATE KEY" + dashes + "\n" + wrap(token("MII", alnum, 800, 9)) + dashes + "END RSA PRIVATE KEY" + dashes
	cut     = dashes + "BEGIN OPENSSH PRIVATE KEY" + dashes + "\n" + wrap(token("b3B", alnum, 200, 10))
)

func wrap(s string) string {
	var b strings.Builder
	for len(s) > 64 {
		b.WriteString(s[:64] + "\n")
		s = s[64:]
	}
	return b.String() + s + "\n"
}

func quoted(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

// escaped writes each character as \uXXXX.
func escaped(s string) string {
	var b strings.Builder
	for _, c := range s {
		fmt.Fprintf(&b, `\u%04X`, c)
	}
	return b.String()
}

// mask masks text in two passes, as an export does.
func mask(t *testing.T, text string) (string, redact.Report) {
	t.Helper()
	r, err := redact.New()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	given := []byte(text)
	var report redact.Report
	for _, w := range []*redact.Writer{r.Learn(), r.Writer(&out)} {
		if _, err := w.Write(given); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		report = w.Report()
	}
	if string(given) != text {
		t.Error("what was given has changed")
	}
	return out.String(), report
}

func TestMask(t *testing.T) {
	image := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n\x00\x00" + strings.Repeat(aws, 20)))
	tests := []struct{ name, in, want string }{
		{"text", `{"type":"message","text":"use ` + github + ` now"}`, `{"type":"message","text":"use [redacted:github-pat:1] now"}`},
		{"all escaped", `{"text":"use ` + escaped(github) + `"}`, `{"text":"use [redacted:github-pat:1]"}`},
		{"slashes escaped", `{"text":"` + strings.ReplaceAll(slack, "/", `\/`) + ` \u00e9"}`, `{"text":"[redacted:slack-webhook-url:1] \u00e9"}`},
		{"escapes beside it stay", `{"text":"\u0041\t` + github + `\n\ud83d\ude00"}`, `{"text":"\u0041\t[redacted:github-pat:1]\n\ud83d\ude00"}`},
		{"name of a member", `{"` + github + `" : 1,"b":[]}`, `{"[redacted:github-pat:1]" : 1,"b":[]}`},
		{"value by its name", `{"apiKey":"` + plain + `","id":"` + token("", hex, 8, 1) + `"}`, `{"apiKey":"[redacted:generic-api-key:1]","id":"` + token("", hex, 8, 1) + `"}`},
		{"value by its escaped name", `{"api\u004bey" : "` + plain + `"}`, `{"api\u004bey" : "[redacted:generic-api-key:1]"}`},
		{"short value by its name", `{"password":"` + "sw0rd" + "fish" + `"}`, `{"password":"[redacted:hashicorp-tf-password:1]"}`},
		{"JSON in a string", `{"text":` + quoted(`{"a":`+quoted(`{"apiKey":`+quoted(plain)+`}`)+`}`) + `}`, `{"text":` + quoted(`{"a":`+quoted(`{"apiKey":"[redacted:generic-api-key:1]"}`)+`}`) + `}`},
		{"private key", `{"text":` + quoted("cat key\n"+pem+"\n$") + `}`, `{"text":"cat key\n[redacted:private-key:1]\n$"}`},
		{"private key that is cut off", `{"text":` + quoted(cut+"[output truncated]") + `}`, `{"text":"[redacted:private-key-part:1]\n[output truncated]"}`},
		{"malformed line", `{"type":"message","text":"` + github + `\n` + slack + `"`, `{"type":"message","text":"[redacted:github-pat:1]\n[redacted:slack-webhook-url:2]"`},
		{"private key in a malformed line", `{"text":` + quoted(pem), `{"text":"[redacted:private-key:1]"`},
		{"no JSON", "export TOKEN=" + github + " # \xff\x00", "export TOKEN=[redacted:github-pat:1] # \xff\x00"},
		{"one secret, one mask", `["` + github + `","` + github2 + `"]` + "\n" + `["` + github + `"]`, `["[redacted:github-pat:1]","[redacted:github-pat:2]"]` + "\n" + `["[redacted:github-pat:1]"]`},
		{"also where no rule finds it", `["` + plain + `"]` + "\n" + `["token=` + plain + `"]` + "\r\n" + `["x` + plain + `"]`, `["[redacted:generic-api-key:1]"]` + "\n" + `["token=[redacted:generic-api-key:1]"]` + "\r\n" + `["x[redacted:generic-api-key:1]"]`},
		{"also as a name and escaped", `{"token":"` + plain + `"}` + "\n" + `{"` + plain + `":"` + escaped(plain) + `"}`, `{"token":"[redacted:generic-api-key:1]"}` + "\n" + `{"[redacted:generic-api-key:1]":"[redacted:generic-api-key:1]"}`},
		{"of pidb's own", `["` + oauth + `"]`, `["[redacted:anthropic-oauth-token:1]"]`},
		{"password in a URL", `["postgres://me:` + "t0p" + `Secret9@db.example/x"]`, `["postgres://me:[redacted:url-password:1]@db.example/x"]`},
		{"behind a colour", `["\u001b[32m` + aws + `\u001b[0m"]`, `["\u001b[32m[redacted:aws-access-token:1]\u001b[0m"]`},
		{"behind other sequences", `["\u001b[01;31m\u001b[K` + aws + `\u001b[m\u001b(B","\u001b(B` + github + `","\u009b1m` + github2 + `"]`, `["\u001b[01;31m\u001b[K[redacted:aws-access-token:1]\u001b[m\u001b(B","\u001b(B[redacted:github-pat:2]","\u009b1m[redacted:github-pat:3]"]`},
		{"behind what is left of a colour", `["[1;32m` + aws + `[0m","\\033[32m` + github + `\\033[0m"]`, `["[1;32m[redacted:aws-access-token:1][0m","\\033[32m[redacted:github-pat:2]\\033[0m"]`},
		{"in colours", `["x \u001b[31m` + github[:9] + `\u001b[0m` + github[9:] + `\u001b[0m y"]`, `["x \u001b[31m[redacted:github-pat:1]\u001b[0m y"]`},
		{"colours and no JSON", "\x1b[31m" + aws + "\x1b[0m", "\x1b[31m[redacted:aws-access-token:1]\x1b[0m"},
		{"colour between name and value", `["token=\u001b[1;38;5;33m` + plain + `\u001b[0m"]`, `["token=\u001b[1;38;5;33m[redacted:generic-api-key:1]\u001b[0m"]`},
		{"colour in the value of a member", `{"apiKey":"\u001b[1;38;5;33m` + plain + `\u001b[0m"}`, `{"apiKey":"\u001b[1;38;5;33m[redacted:generic-api-key:1]\u001b[0m"}`},
		{"header", `["Authorization: Bearer ` + plain + `\r\nHost: x"]`, `["Authorization: Bearer [redacted:authorization-bearer:1]\r\nHost: x"]`},
		{"header as JSON", `{"authorization":"Bearer ` + plain + `","text":"headers: {'Authorization': 'Bearer ` + plain + `'}"}`, `{"authorization":"Bearer [redacted:authorization-bearer:1]","text":"headers: {'Authorization': 'Bearer [redacted:authorization-bearer:1]'}"}`},
		{"header in a program", `["h.Set(\"Authorization\", \"Bearer ` + plain + `\"); authorization: Bearer $TOKEN"]`, `["h.Set(\"Authorization\", \"Bearer [redacted:authorization-bearer:1]\"); authorization: Bearer $TOKEN"]`},
		{"Telegram bot", `["https://api.telegram.org/bot` + bot + `/getMe"]`, `["https://api.telegram.org/bot[redacted:telegram-bot-token:1]/getMe"]`},
		{"byte order mark", "\ufeff" + `{"a":"` + escaped(github) + `"}` + "\r\n", "\ufeff" + `{"a":"[redacted:github-pat:1]"}` + "\r\n"},
		{"example of the documentation of AWS", `["AK` + `IAIOSFODNN7EXAMPLE"]`, `["AK` + `IAIOSFODNN7EXAMPLE"]`},
		{"image", `{"type":"image","data":"` + image + `","mimeType":"image/png"}`, `{"type":"image","data":"` + image + `","mimeType":"image/png"}`},
		{"nothing", "\n \r\n{\"a\" : \"\\u0041\", \"a\":1e400}\n\n[\"\\ud800\"]\nnull", "\n \r\n{\"a\" : \"\\u0041\", \"a\":1e400}\n\n[\"\\ud800\"]\nnull"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := mask(t, tt.in)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again, report := mask(t, got); again != got || report.Masks != 0 {
				t.Errorf("masked again: %s", again)
			}
		})
	}
}

// TestCut cuts lines with secrets at each place.
func TestCut(t *testing.T) {
	r, err := redact.New()
	if err != nil {
		t.Fatal(err)
	}
	line := `{"apiKey":"` + plain + `","b":"` + escaped(github) + ` ` + strings.ReplaceAll(slack, "/", `\/`) + `\"","c":` + quoted(pem[:200]) + `}`
	for i := range len(line) {
		var out bytes.Buffer
		w := r.Writer(&out)
		for _, part := range []string{line[:i], "\n", line[i:]} {
			if _, err := w.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "\n"); n != 1 {
			t.Fatalf("cut at %d: %d line feeds", i, n)
		}
	}
}

func TestReport(t *testing.T) {
	_, report := mask(t, strings.Repeat(`["`+github+`","`+github2+`"]`+"\n", 3)+`["`+slack+`"]`)
	want := []redact.RuleCount{{Rule: "github-pat", Secrets: 2, Masks: 6}, {Rule: "slack-webhook-url", Secrets: 1, Masks: 1}}
	if diff := cmp.Diff(want, report.Rules); diff != "" || report.Secrets != 3 || report.Masks != 7 {
		t.Errorf("%d secrets, %d masks (-want +got):\n%s", report.Secrets, report.Masks, diff)
	}
	var sum redact.Report
	sum.Add(report)
	sum.Add(report)
	if sum.Secrets != 3 || sum.Masks != 14 {
		t.Errorf("twice: %+v", sum)
	}
}

// TestManySecrets masks a thousand secrets, all of which begin alike, each of which stands in every
// line once more without what shows it to be one.
func TestManySecrets(t *testing.T) {
	var in, want strings.Builder
	for i := range 1000 {
		secret := token("zq9x-vb7k-", digits+"bcdfgz", 30, uint64(i))
		n := strconv.Itoa(i + 1)
		fmt.Fprintf(&in, "[\"token=%s\",\"x %s y\"]\n", secret, secret)
		fmt.Fprintf(&want, "[\"token=[redacted:generic-api-key:%s]\",\"x [redacted:generic-api-key:%s] y\"]\n", n, n)
	}
	if got, _ := mask(t, in.String()); got != want.String() {
		t.Errorf("got %.300s", got)
	}
}

// FuzzMask checks what holds for every text: lines stay lines, JSON stays JSON, and a line
// without a mask stays as it is.
func FuzzMask(f *testing.F) {
	for _, s := range []string{`{"apiKey":"` + plain + `"}`, `["` + escaped(github) + `"]`, quoted(quoted("key=" + plain)), `"\\\"` + github + `\/"`, pem, "curl -u a:" + plain, "\ufeff{}", `["\u001b[32m` + aws + `\u001b[0m\u001b[K"]`, "Authorization: Bearer " + plain} {
		f.Add(s)
	}
	r, err := redact.New()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var out bytes.Buffer
		w := r.Writer(&out)
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		before, after := strings.Split(text, "\n"), strings.Split(out.String(), "\n")
		if w.Report().Masks == 0 && out.String() != text {
			t.Fatalf("changed without a mask: %q", out.String())
		}
		for i, line := range before {
			if json.Valid([]byte(line)) && len(before) == len(after) && !json.Valid([]byte(after[i])) {
				t.Fatalf("%q is no JSON, %q was", after[i], line)
			}
			if json.Valid([]byte(line)) && len(before) != len(after) {
				t.Fatalf("%d lines, %d before", len(after), len(before))
			}
		}
	})
}
