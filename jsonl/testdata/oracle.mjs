// Writes what JavaScript answers, a case a line, for the tests to compare with:
//   node oracle.mjs [COUNT [SEED]] > oracle.jsonl
// {"json": base64 of a text, "normal": JSON.stringify(JSON.parse(text)) or null where it does not parse}
// {"number": bits of a double in hex, "text": JSON.stringify of it}
// {"date": JSON text, "ms": new Date(value).getTime() in the time zone of Berlin, or null}
// {"trim": string, "text": trimmed}
process.env.TZ = "Europe/Berlin";
const count = Number(process.argv[2] ?? 150);
let seed = Number(process.argv[3] ?? 1);
const rand = (n) => {
	seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
	return Math.floor((seed / 4294967296) * n);
};
const pick = (list) => list[rand(list.length)];
const out = (o) => console.log(JSON.stringify(o));

const json = (bytes) => {
	let normal = null;
	try {
		normal = JSON.stringify(JSON.parse(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)));
	} catch {}
	out({ json: Buffer.from(bytes).toString("base64"), normal });
};
for (const text of [
	"", " ", "1", "-", "-0", "0.0", "01", "1.", ".5", "1e5", "1E+2", "1e", "1e+", "1e400", "-1e400", "5e-324", "1e-400", "+1",
	"1.7976931348623157e308", "9007199254740993", "123456789012345678901234567890", "1e21", "1e20", "123e-9", "0.000001", "0.0000001",
	"true", "tru", "truee", "null", "nul", "false", "NaN", "Infinity", "undefined", "'a'", "\"a\"", "\"a", "\"\\", "\"\\u12\"", "\"\\x\"",
	"\"\\u0000\\u001f\\u007f\\u2028\\/\\b\\f\\n\\r\\t\\\"\\\\\"", "\"\t\"", "\"\u0000\"", "\"\u007f\"", "\"\u2028\"", "[]", "[ ]", "[,]", "[1,]", "[1 2]",
	"{}", "{ }", "{,}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{\"a\":1 \"b\":2}", "[1]]", "{}{}", "\ufeff{}", "\u00a0{}", "\f1", "\v1", "1\u0085",
	" \t\r\n[ 1 , { \"a\" : [ ] } ] \r\n", "{\"b\":1,\"a\":2,\"b\":3}", "{\"10\":1,\"9\":2,\"a\":3,\"01\":4,\"-1\":5,\"1.5\":6,\"4294967294\":7,\"4294967295\":8,\"4294967296\":9,\"0\":10}",
	"{\"\\u0031\":1,\"0\":2,\"1\":3}", "{\"__proto__\":{\"a\":1},\"x\":1,\"__proto__\":2}", "{\"constructor\":1,\"\":2,\"\":3}", "{\"\\u0061\":1,\"a\":2}",
	"\"\\ud800\"", "\"\\uDC00\"", "\"\\ud83d\\ude80\"", "\"\\ud83d\\ud83d\\ude80\"", "\"\\ude80\\ud83d\"", "\"\\ud83dx\"", "\"\\ud83d\\n\"", "\"\\ud83d\u{1f680}\"",
	"{\"\\ud800\":1,\"\\ud801\":2,\"\\ud800\":3,\"\\\\ud800\":4}", "[[[[[[]]]]]]", "[1,[2,{\"3\":[4]}],\"5\"]",
]) json(new TextEncoder().encode(text));
for (const hex of ["22ff22", "22c322", "22c3a922", "22e28222", "22e282ac22", "22e2828222", "22eda08022", "22f09f9a22", "22f09f9a8022", "22f0808022", "22f48fbfbf22",
	"22f490808022", "22c08022", "22c1bf22", "22e0808022", "22e0a08022", "22f8808080808022", "22808022", "22efbbbf22", "22f09f5c6e22", "22e25c752032323822", "ff", "22ff", "efbbbf31", "31ff"]) {
	json(Buffer.from(hex, "hex"));
}
const parts = ["{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"\\u0061\"", "\"10\"", "\"2\"", "\"b\\n\"", "1", "-0", "1.50", "1e3", "true", "null", " ", "\\", "\\ud83d", "\\ude80", "é", "🚀", "\u0001"];
const value = (depth) => {
	switch (rand(depth > 4 ? 5 : 8)) {
		case 0: return pick(["1", "-0", "1e2", "0.10", "12345678901234567890", "1e-7", "null", "true", "false"]);
		case 1: return JSON.stringify(pick(["", "a", "é🚀", "a\nb", "\u2028", "\\", "\"", "</a>&"]));
		case 2: return "\"" + pick(["\\u0041", "\\/", "\\ud800", "\\udfff\\ud800", "\\u00e9", "\\u001F", "\\u2028"]) + "\"";
		case 3: return String(rand(1000) / 8);
		case 4: return "\"" + "x".repeat(rand(20)) + "\\n" + "ü".repeat(rand(9)) + "\"";
		case 5: return "[" + Array.from({ length: rand(5) }, () => value(depth + 1)).join(pick([",", " , "])) + "]";
		default: return "{" + Array.from({ length: rand(rand(8) ? 6 : 30) }, () => pick(["\"a\"", "\"b\"", "\"\\u0061\"", "\"7\"", "\"07\"", "\"\\u0037\"", "\"é\"", "\"\\u00e9\"", "\"__proto__\"", "\"" + rand(99) + "\"", "\"\\ud800\""]) + pick([":", " : "]) + value(depth + 1)).join(",") + "}";
	}
};
for (let i = 0; i < count; i++) {
	json(new TextEncoder().encode(value(0)));
	json(new TextEncoder().encode(Array.from({ length: 1 + rand(9) }, () => pick(parts)).join("")));
	const bytes = Buffer.from("\"" + "aé€🚀".repeat(1 + rand(3)) + "\"");
	for (let k = rand(4); k > 0; k--) bytes[1 + rand(bytes.length - 2)] = pick([0x80, 0xbf, 0xc3, 0xe2, 0xed, 0xf0, 0xf4, 0xff, 0xa0, 0x9f, 0x41]);
	json(bytes);
}

const number = (f) => {
	const b = Buffer.alloc(8);
	b.writeDoubleBE(f);
	out({ number: b.toString("hex"), text: JSON.stringify(f) });
};
for (const f of [0, -0, 1, -1, 0.1, 1e21, 1e20, 999999999999999900000, 1e-6, 1e-7, 1.5e-7, 123456.789, 5e-324, 1.7976931348623157e308, NaN, Infinity, -Infinity, 2 ** 53, 2 ** 53 + 2, 1e100, 1.23e-10]) number(f);
for (let i = 0; i < count; i++) {
	const b = Buffer.alloc(8);
	for (let k = 0; k < 8; k++) b[k] = rand(256);
	number(b.readDoubleBE());
	number((rand(2 ** 30) / 2 ** rand(30)) * 10 ** (rand(40) - 20));
}

const date = (text) => {
	const ms = new Date(JSON.parse(text)).getTime();
	out({ date: text, ms: Number.isNaN(ms) ? null : ms });
};
for (const text of ["null", "true", "false", "0", "-0", "1.9", "-1.9", "8.64e15", "8640000000000001", "1e400", "[]", "{}", "[\"2020-01-01\"]", "[2020,1]", "[[2020]]", "[null,1]"]) date(text);
for (const s of ["", " ", "2026-01-01T00:00:00.000Z", "2026-01-01", "2026-01", "2026", "2026-01-01T10:00", "2026-07-01T10:00:05", "2026-02-30T00:00:00.000Z", "2026-02-30", "2026-13-01T00:00:00.000Z",
	"2026-01-01T24:00:00.000Z", "2026-01-01T24:00:00.001Z", "2026-01-01T23:59:60.000Z", "2026-01-01T00:00:00Z", "2026-01-01T00:00Z", "2026-01-01T00:00:00.1Z", "2026-01-01T00:00:00.123456789Z", "2026-01-01T00:00:00.0000000001234Z",
	"2026-01-01T00:00:00.000+02:00", "2026-01-01T00:00:00.000-0230", "2026-01-01T00:00:00.000+02", "2026-01-01t00:00:00z", "2026-01-01 00:00:00", "2026-01-01 00:00:00Z", "2026-1-1", "2026/01/02", "1/2/2026", "1-2-26",
	"+002026-01-01T00:00:00.000Z", "-000001-01-01T00:00:00.000Z", "-000000-01-01T00:00:00.000Z", "+275760-09-13T00:00:00.000Z", "+275760-09-13T00:00:00.001Z", "0000-01-01T00:00:00.000Z", "0050-01-01",
	"Jan 1 2026", "1 January 2026 10:00 PM", "Tue, 27 Jan 2026 10:00:00 GMT", "Tue Jan 27 2026 10:00:00 GMT+0100 (CET)", "27 Jan 2026 10:00 EST", "27 Jan 2026 12:00 am", "27 Jan 2026 13:00 pm", "2026-03-29T02:30:00", "2026-10-25T02:30:00",
	"yesterday", "now", "1", "12", "32", "99", "1970", "13", "10:00", "2026-01-01T00:00:00.000Z ", " 2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000Z\u0000x", "x2026", "foo 2026", "2026 foo", "2026 (foo", "2026 (foo)", "2026)", "(2026) 2025",
	"1e3", "1.5", "2026.5", "10:00.5", "2026-01-01T10:00:00,5Z", "२०२६", "2026-01-01T00:00:00.000Zulu", "mayor 5 2026", "5 2026 10::30", "Jan 1 2026 10:00:00.5 UTC+1:30", "1 Jan 2026 +0100", "1 Jan 2026 UTC-5", "1 Jan 2026 Z+3", "1700000000000", "1769508000"]) date(JSON.stringify(s));
const dateParts = ["2026", "1999", "26", "5", "31", "0", "12", "60", "-", "-", "+", ":", ":", ".", ".123", " ", " ", "T", "Z", "z", "t", "Jan", "feb", "December", "am", "PM", "UTC", "GMT", "EST", "pdt", "(", ")", "(x)", "/", ",", "foo", "10:30", "10:30:15", "01", "02", "2026-05-06", "T10:20", "T10:20:30", "+01:00", "-0730", "\u00a0", "é", "000", "123456789012"];
for (let i = 0; i < 3 * count; i++) date(JSON.stringify(Array.from({ length: 1 + rand(8) }, () => pick(dateParts)).join("")));
for (let i = 0; i < count; i++) {
	let s = new Date(rand(2 ** 31) * 1000 + rand(1000)).toISOString();
	const at = rand(s.length);
	s = s.slice(0, at) + pick(["", "", pick([..."0123456789-:TZ +."])]) + s.slice(at + rand(3));
	date(JSON.stringify(s));
}

for (const c of [0x9, 0xa, 0xb, 0xc, 0xd, 0x20, 0x85, 0xa0, 0x1680, 0x180e, 0x1fff, 0x2000, 0x200a, 0x200b, 0x2028, 0x2029, 0x202f, 0x205f, 0x2060, 0x3000, 0xfeff, 0x0, 0x1f]) {
	const s = String.fromCharCode(c);
	out({ trim: s + "a" + s + "b" + s, text: (s + "a" + s + "b" + s).trim() });
}
