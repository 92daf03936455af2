// A client of `pidb rpc` without any library: two servers on one archive, as two agents
// would have. Usage: node client.mjs PIDB ARCHIVE
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const [pidb, archive] = process.argv.slice(2);

class Client {
  #next = 1;
  #calls = new Map();

  constructor() {
    this.process = spawn(pidb, ["--db", archive, "rpc"], { stdio: ["pipe", "pipe", "inherit"] });
    createInterface({ input: this.process.stdout }).on("line", (line) => {
      const { id, result, error } = JSON.parse(line);
      const { resolve, reject } = this.#calls.get(id);
      this.#calls.delete(id);
      if (error) reject(Object.assign(new Error(error.message), { code: error.code, data: error.data }));
      else resolve(result);
    });
  }

  call(method, params) {
    const id = this.#next++;
    this.process.stdin.write(JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n");
    const answer = new Promise((resolve, reject) => this.#calls.set(id, { resolve, reject }));
    answer.id = id;
    return answer;
  }

  notify(method, params) {
    this.process.stdin.write(JSON.stringify({ jsonrpc: "2.0", method, params }) + "\n");
  }

  async end() {
    this.process.stdin.end();
    const code = await new Promise((resolve) => this.process.on("close", resolve));
    assert.equal(code, 0);
    assert.equal(this.#calls.size, 0, "every request is answered");
  }
}

const say = (role, text) => ({ role, content: [{ type: "text", text }], timestamp: Date.now() });

const one = new Client();
const two = new Client();

const version = await one.call("pidb.version");
assert.equal(version.protocol, 1);

// One creates, two opens.
const { session, id } = await one.call("create", { cwd: "/work/relay" });
assert.equal((await two.call("open", { session: id })).session, session);

// Two waits for what one appends.
let { cursor } = await two.call("wait", { session, timeout: 0 });
const late = [];
const entries = [];
for (let i = 0; i < 20; i++) {
  const waiting = two.call("wait", { session, cursor, raw: true });
  await new Promise((resolve) => setTimeout(resolve, 20));
  const appended = await one.call("append", { session, entries: [say("user", `tangerine ${i} \u{1f34a}`)] });
  const at = performance.now();
  const seen = await waiting;
  late.push(performance.now() - at);
  cursor = seen.cursor;
  assert.equal(seen.entries.length, 1);
  assert.equal(seen.entries[0].entry, appended.entries[0].entry);
  assert.equal(JSON.parse(seen.entries[0].raw).message.content[0].text, `tangerine ${i} \u{1f34a}`);
  entries.push(seen.entries[0].entry);
}
late.sort((a, b) => a - b);
assert.ok(late[15] < 100, `seen after ${late[15]} ms`);

// Both append at once from where they are: two branches, and not a line lost.
await two.call("open", { session });
const both = await Promise.all(
  [one, two].flatMap((client, who) => Array.from({ length: 50 }, (_, n) => client.call("append", { session, entries: [say("assistant", `writer ${who} number ${n}`)] }))),
);
assert.equal(new Set(both.map((result) => result.entries[0].entry)).size, 100);
const { nodes } = await one.call("tree", { session });
assert.equal(nodes.length, 120);
assert.equal(nodes.filter((node) => node.tip).length, 2);
const chain = async (client) => (await client.call("context", { session })).messages.slice(20).map((m) => m.content[0].text);
assert.deepEqual(await chain(one), Array.from({ length: 50 }, (_, n) => `writer 0 number ${n}`));
assert.deepEqual(await chain(two), Array.from({ length: 50 }, (_, n) => `writer 1 number ${n}`));

// A leaf that another has moved is no place to append to, for who insists.
await assert.rejects(one.call("append", { session, ifLeaf: entries[3], entries: [say("user", "too late")] }), (err) => err.data.name === "ErrConflict");

// Branching back, with a tool call that must not be left open.
await one.call("branch", { session, entry: entries[5] });
await one.call("append", { session, entries: [{ role: "assistant", content: [{ type: "toolCall", id: "call-1", name: "read", arguments: {} }], timestamp: Date.now() }] });
const open = (await one.call("open", { session })).leaf;
await assert.rejects(one.call("branch", { session, entry: open, answered: true }), (err) => err.data.name === "ErrUnanswered" && err.data.call === "call-1");
await one.call("branch", { session, entry: entries[2], answered: true });
assert.equal((await one.call("context", { session })).messages.length, 3);

// Both search; one appends where the other finds it.
const hits = await two.call("search", { query: "tangerine", limit: 0 });
assert.equal(hits.hits.length, 20);
assert.equal((await one.call("search", { query: '"writer 1 number 49"' })).hits[0].session, session);

// The export is the file that pi would have written, and the same from both.
const [left, right] = await Promise.all([one, two].map((client) => client.call("export", { session })));
assert.equal(left.text, right.text);
const lines = left.text.trimEnd().split("\n");
assert.equal(lines.length, 122);
for (const line of lines) assert.equal(JSON.stringify(JSON.parse(line)), line);

// A wait for the whole archive, ended by the other's work, and one that is given up.
const { cursor: change } = await two.call("wait", { timeout: 0 });
const waiting = two.call("wait", { cursor: change });
const { id: fork } = await one.call("fork", { session, upTo: entries[0], cwd: "/work/fork" });
assert.deepEqual((await waiting).sessions.map((s) => s.id), [fork]);
const given = two.call("wait", { session });
two.notify("$/cancelRequest", { id: given.id });
await assert.rejects(given, (err) => err.code === -32097);

// What is asked just before the end is answered.
const last = one.call("list", {});
const ended = one.end();
assert.equal((await last).sessions.length, 2);
await ended;
await two.end();
console.log(`seen after ${late[0].toFixed(1)} to ${late[19].toFixed(1)} ms, half within ${late[10].toFixed(1)} ms`);
