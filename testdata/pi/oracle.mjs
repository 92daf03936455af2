// oracle.mjs asks the real pi what it makes of session files, for differential tests.
//
//   node oracle.mjs [PI]                 serve requests: JSON lines in, JSON lines out
//   node oracle.mjs [PI] --check DIR     compare with a conformance folder (DIR/sessions, DIR/expected)
//   node oracle.mjs [PI] --views FILE    print the views of one file (--full, --llm as in a request)
//
// PI is the folder whose node_modules holds @earendil-works/pi-coding-agent; the environment variable
// PIDB_PI stands in for it. README.md beside this file describes the protocol.
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync } from "node:fs";
import { createRequire, syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";

const scratch = mkdtempSync(join(tmpdir(), "pidb-oracle-"));
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => process.exit(1));
process.env.PI_CODING_AGENT_DIR = join(scratch, "agent"); // pi must never find the user's own sessions

const LONG = 400; // a file with more entries has its lists shortened and only some of its entries viewed
const LONG_EVERY = 97; // of those, each entry whose index is a multiple is viewed as well
const TREE_LIMIT = 200_000; // repeated ids can make pi's tree exponential; beyond this it is left out

let pi;

async function loadPi(folder) {
    const dist = join(resolve(folder), "node_modules/@earendil-works/pi-coding-agent/dist/core");
    const load = (name) => import(pathToFileURL(join(dist, name)));
    const [session, messages] = await Promise.all([load("session-manager.js"), load("messages.js")]);
    pi = { ...session, ...messages };
}

// --- views -------------------------------------------------------------------------------------

const sha = (text) => createHash("sha256").update(text).digest("hex").slice(0, 16);

const orNull = (value) => (value === undefined ? null : value);

/** canonical is JSON with object keys sorted by UTF-16 units at every depth, integer-like keys too. */
function canonical(value) {
    if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
    if (value === null || typeof value !== "object") return JSON.stringify(value);
    const members = Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
    return `{${members.join(",")}}`;
}

/** asJson is what a reader of pi's JSON sees: undefined members gone, NaN null, toJSON applied. */
const asJson = (value) => JSON.parse(JSON.stringify(value));

/** shorten stands a list in as its length and a digest. */
const shorten = (list) => ({ len: list.length, sha: sha(list.map((item) => (Array.isArray(item) ? item.join(":") : item)).join(",")) });

/** physicalLines are the lines of a file as pi's loader splits and decodes them. */
const physicalLines = (bytes) => bytes.toString("utf8").split("\n");

/** parsedLines are the 1-based numbers of the lines that pi keeps: those that parse to a truthy value. */
function parsedLines(bytes) {
    const numbers = [];
    physicalLines(bytes).forEach((line, i) => {
        if (!line.trim()) return;
        try {
            if (JSON.parse(line)) numbers.push(i + 1);
        } catch {}
    });
    return numbers;
}

/** copyAside puts a file alone into a new folder with its times kept: pi rewrites what it opens. */
function copyAside(path) {
    const folder = mkdtempSync(join(scratch, "copy-"));
    const copy = join(folder, basename(path));
    copyFileSync(path, copy);
    const { atime, mtime } = statSync(path);
    utimesSync(copy, atime, mtime);
    return { folder, copy };
}

function shownInfo(info) {
    return asJson({
        id: orNull(info.id),
        cwd: orNull(info.cwd),
        name: orNull(info.name),
        parentSessionPath: orNull(info.parentSessionPath),
        created: info.created,
        modified: info.modified,
        messageCount: info.messageCount,
        firstMessage: info.firstMessage,
        textSha: sha(info.allMessagesText),
        textLen: info.allMessagesText.length,
    });
}

async function views(request) {
    const { path, full = false, llm = false, long = LONG } = request;
    const bytes = readFileSync(path);
    if (bytes.length === 0) return { empty: true };
    const { folder, copy } = copyAside(path);
    try {
        const listed = await pi.SessionManager.listAll(folder);
        let session;
        try {
            session = pi.SessionManager.open(copy);
        } catch (error) {
            return { error: error.message.replaceAll(folder, ""), listed: listed.length };
        }
        const rewritten = !readFileSync(copy).equals(bytes);
        const answer = describe(session, parsedLines(bytes), { full, llm, long });
        return { rewritten, ...answer, info: listed.length ? shownInfo(listed[0]) : null };
    } finally {
        rmSync(folder, { recursive: true, force: true });
    }
}

/** describe gives all views of an open session; numbers[i] is the line of the i-th value pi loaded. */
function describe(session, numbers, { full, llm, long }) {
    const loaded = session.fileEntries; // header and entries, in file order
    if (loaded.length !== numbers.length) throw new Error(`line numbers: ${numbers.length} lines for ${loaded.length} values`);
    const byObject = new Map();
    loaded.forEach((entry, i) => byObject.set(entry, numbers[i])); // equal scalars: the last line stands for all
    const lineOf = (entry) => (entry === undefined ? null : byObject.get(entry));
    const entries = [];
    const lines = [];
    loaded.forEach((entry, i) => {
        if (entry.type === "session") return;
        entries.push(entry);
        lines.push(numbers[i]);
    });
    const isLong = entries.length > long;
    const list = (items) => (isLong && !full ? shorten(items) : items);

    const answer = { header: session.getHeader(), sessionId: session.getSessionId() };
    attempt(answer, "name", () => orNull(session.getSessionName()));
    answer.count = session.getEntries().length;
    answer.types = entries.map((entry) => entry.type).join(",");
    if (isLong && !full) answer.types = sha(answer.types);
    answer.leaf = entries.length ? lines[lines.length - 1] : null;
    answer.labels = {};
    for (const id of session.byId.keys()) {
        const label = session.getLabel(id);
        if (label !== undefined) answer.labels[lineOf(session.byId.get(id))] = label;
    }
    const size = treeSize(entries);
    if (size === Infinity) answer.treeCycle = true;
    else if (size > TREE_LIMIT) answer.treeTooLarge = true;
    else attempt(answer, "tree", () => list(preorder(session.getTree(), lineOf)));
    if (!isLong || full) {
        const childrenOf = childIndex(session.byId);
        answer.children = entries.map((entry) => {
            const children = isLong ? (childrenOf.get(entry.id) ?? []) : session.getChildren(entry.id);
            return children.map(lineOf);
        });
    }
    answer.views = [];
    const parents = new Set(entries.map((entry) => entry.parentId)); // of every line, the overwritten ones too
    entries.forEach((entry, i) => {
        if (session.byId.get(entry.id) !== entry || (typeof entry !== "object" && lineOf(entry) !== lines[i])) return;
        const isTip = !parents.has(entry.id);
        if (isLong && !full && !isTip && i % LONG_EVERY !== 0 && entry.type !== "compaction" && entry.type !== "context_edit") return;
        answer.views.push(view(session, entry, lines[i], { list, lineOf, isTip, isLong, full, llm }));
    });
    return asJson(answer);
}

/** attempt sets object[key], or object[key + "Error"] where pi throws. */
function attempt(object, key, ask) {
    try {
        object[key] = ask();
    } catch (error) {
        object[`${key}Error`] = error.message;
    }
}

function view(session, entry, line, { list, lineOf, isTip, isLong, full, llm }) {
    const answer = { leaf: line };
    // Where the id is "" or undefined, pi takes the last entry as the leaf of the context.
    const last = session.getEntries().at(-1);
    const starts = entry.id || entry.id === null ? [entry] : [entry, last];
    if (starts.some((start) => isCyclic(session.byId, start))) return { ...answer, cycle: true };
    try {
        const saved = session.leafId;
        session.leafId = entry.id; // branch() without its check: the id is known
        try {
            answer.branch = list(session.getBranch().map(lineOf));
            answer.context = list(session.buildContextEntries().map(lineOf));
            const { messages, thinkingLevel, model } = session.buildSessionContext();
            const shown = asJson(messages);
            answer.messageCount = messages.length;
            answer.messagesSha = sha(canonical(shown));
            if (full || (isTip && !isLong)) answer.messagesJson = shown;
            if (!isLong || full) answer.roles = messages.map((message) => message.role).join(",");
            answer.thinkingLevel = thinkingLevel;
            answer.model = model;
            if (llm) attempt(answer, "llmJson", () => asJson(pi.convertToLlm(messages)));
        } finally {
            session.leafId = saved;
        }
    } catch (error) {
        return { leaf: line, error: error.message };
    }
    return answer;
}

/** isCyclic tells whether pi's walk from an entry to its root would never return. */
function isCyclic(byId, entry) {
    const seen = new Set();
    for (let current = entry; current; current = current.parentId ? byId.get(current.parentId) : undefined) {
        if (seen.has(current)) return true;
        seen.add(current);
    }
    return false;
}

function childIndex(byId) {
    const index = new Map();
    for (const entry of byId.values()) {
        if (!index.has(entry.parentId)) index.set(entry.parentId, []);
        index.get(entry.parentId).push(entry);
    }
    return index;
}

/** treeSize is the number of nodes a walk of pi's tree meets: Infinity when a cycle hangs from a root. */
function treeSize(entries) {
    const ids = new Set(entries.map((entry) => entry.id));
    const children = new Map([...ids].map((id) => [id, []]));
    const roots = [];
    for (const { id, parentId } of entries) {
        if (parentId === null || parentId === id || !ids.has(parentId)) roots.push(id);
        else children.get(parentId).push(id);
    }
    const sizes = new Map();
    const open = new Set();
    for (const root of roots) {
        const stack = [{ id: root, next: 0, size: 1 }];
        open.add(root);
        while (stack.length) {
            const top = stack[stack.length - 1];
            const below = children.get(top.id);
            if (sizes.has(top.id) || top.next === below.length) {
                const size = sizes.get(top.id) ?? top.size;
                sizes.set(top.id, size);
                open.delete(top.id);
                stack.pop();
                if (stack.length) stack[stack.length - 1].size += size;
                continue;
            }
            const child = below[top.next++];
            if (open.has(child)) return Infinity;
            open.add(child);
            stack.push({ id: child, next: 0, size: 1 });
        }
    }
    return roots.reduce((sum, root) => sum + sizes.get(root), 0);
}

function preorder(roots, lineOf) {
    const rows = [];
    const stack = roots.map((node) => [node, 0]).reverse();
    while (stack.length) {
        const [node, depth] = stack.pop();
        rows.push([lineOf(node.entry), depth, orNull(node.label)]);
        for (let i = node.children.length - 1; i >= 0; i--) stack.push([node.children[i], depth + 1]);
    }
    return rows;
}

// --- operations that write ---------------------------------------------------------------------

const RealDate = Date;
const builtinCrypto = createRequire(import.meta.url)("node:crypto");
const realRandomUUID = builtinCrypto.randomUUID;

/** withFixed runs body with the clock at request.now (the last value stays) and ids from request.ids. */
function withFixed(request, body) {
    const times = [...(request.now ?? [])];
    const ids = [...(request.ids ?? [])];
    if (times.length) {
        let at = times[0];
        globalThis.Date = class extends RealDate {
            constructor(...args) {
                if (args.length) return super(...args);
                at = times.length ? times.shift() : at;
                super(at);
            }
            static now() {
                return at;
            }
        };
    }
    if (ids.length) {
        builtinCrypto.randomUUID = () => (ids.length ? ids.shift().padEnd(8, "0") + "-0000-4000-8000-000000000000" : realRandomUUID());
        syncBuiltinESMExports();
    }
    try {
        return body();
    } finally {
        globalThis.Date = RealDate;
        builtinCrypto.randomUUID = realRandomUUID;
        syncBuiltinESMExports();
    }
}

/** argument turns "@K" into the K-th result, "@undefined" into undefined and "@@x" into "@x", at any depth. */
function argument(value, returns) {
    if (typeof value === "string") {
        if (/^@\d+$/.test(value)) return returns[Number(value.slice(1))];
        if (value === "@undefined") return undefined;
        return value.startsWith("@@") ? value.slice(1) : value;
    }
    if (Array.isArray(value)) return value.map((item) => argument(item, returns));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, argument(item, returns)]));
}

/** act makes the calls in order; one that throws gives null in returns and its message in errors. */
function act(session, calls = []) {
    const returns = [];
    const errors = [];
    for (const [name, ...args] of calls) {
        try {
            if (typeof session[name] !== "function") throw new Error(`no method ${name}`);
            returns.push(session[name](...args.map((arg) => argument(arg, returns))));
            errors.push(null);
        } catch (error) {
            returns.push(undefined);
            errors.push(error.message);
        }
    }
    const shown = returns.map(orNull);
    return asJson({
        returns: shown,
        errors,
        path: orNull(session.getSessionFile()),
        sessionId: session.getSessionId(),
        leaf: orNull(session.getLeafId()),
    });
}

const defined = (object) => Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));

const operations = {
    views,
    append: (request) => withFixed(request, () => act(pi.SessionManager.open(request.path, request.dir), request.calls)),
    create: (request) =>
        withFixed(request, () =>
            act(
                pi.SessionManager.create(request.cwd, request.dir, defined({ id: request.id, parentSession: request.parentSession })),
                request.calls,
            ),
        ),
    fork: (request) =>
        withFixed(request, () =>
            act(pi.SessionManager.forkFrom(request.path, request.cwd, request.dir, defined({ id: request.id })), request.calls),
        ),
    extract: (request) => {
        // Lines are numbered before pi may rewrite the file.
        const numbers = request.line ? parsedLines(readFileSync(request.path)) : [];
        return withFixed(request, () => {
            const session = pi.SessionManager.open(request.path, request.dir);
            const leaf = request.line ? session.fileEntries[numbers.indexOf(request.line)].id : request.leaf;
            session.createBranchedSession(leaf);
            // pi writes no file while the path holds no conversation; what it would write is shown all the same.
            const text = session.fileEntries.map((entry) => `${JSON.stringify(entry)}\n`).join("");
            return { ...act(session, request.calls), written: existsSync(session.getSessionFile()), text };
        });
    },
    list: async ({ dir }) =>
        (await pi.SessionManager.listAll(dir)).map((info) => ({ file: basename(info.path), ...shownInfo(info) })),
    llm: ({ messages }) => asJson(pi.convertToLlm(messages)),
    date: ({ values }) => values.map((value) => orNull(asJson(new Date(value).getTime()))),
    ping: () => ({ node: process.version }),
};

// --- modes -------------------------------------------------------------------------------------

/** inputLines splits on LF alone: node's readline would also split on a CR or U+2028 inside a string. */
async function* inputLines(stream) {
    let pending = "";
    for await (const chunk of stream.setEncoding("utf8")) {
        const parts = (pending + chunk).split("\n");
        pending = parts.pop();
        yield* parts;
    }
    yield pending;
}

async function serve() {
    for await (const line of inputLines(process.stdin)) {
        if (!line.trim()) continue;
        let reply;
        let id;
        try {
            const request = JSON.parse(line);
            id = request.rid;
            const operation = operations[request.op];
            if (!operation) throw new Error(`no operation ${request.op}`);
            reply = { rid: id, result: await operation(request) };
        } catch (error) {
            reply = { rid: id, failure: error.message };
        }
        if (!process.stdout.write(`${JSON.stringify(reply)}\n`)) await new Promise((done) => process.stdout.once("drain", done));
    }
}

/** differences names the places where two JSON values differ. */
function differences(want, got, at = "", found = []) {
    if (isDeepStrictEqual(want, got)) return found;
    const both = want && got && typeof want === "object" && typeof got === "object" && Array.isArray(want) === Array.isArray(got);
    if (!both) found.push(`${at}: want ${JSON.stringify(want)?.slice(0, 200)}, got ${JSON.stringify(got)?.slice(0, 200)}`);
    else for (const key of new Set([...Object.keys(want), ...Object.keys(got)])) differences(want[key], got[key], `${at}/${key}`, found);
    return found;
}

async function check(folder) {
    let agreed = 0;
    let failed = 0;
    let compared = 0;
    for (const file of readdirSync(join(folder, "sessions")).sort()) {
        const name = file.replace(/\.jsonl$/, "");
        const path = join(folder, "sessions", file);
        const before = sha(readFileSync(path)) + statSync(path).mtimeMs;
        const want = JSON.parse(readFileSync(join(folder, "expected", `${name}.json`), "utf8"));
        const got = asJson(await views({ path }));
        // The expected files do not say why a tree is missing.
        delete got.treeCycle;
        delete got.treeTooLarge;
        const found = differences(want, got);
        if (sha(readFileSync(path)) + statSync(path).mtimeMs !== before) found.push("the file was changed");
        compared += got.views?.length ?? 0;
        if (found.length) {
            failed++;
            console.log(`${name}: ${found.length} differences`);
            for (const difference of found.slice(0, 10)) console.log(`  ${difference}`);
        } else agreed++;
    }
    console.log(`${agreed} of ${agreed + failed} cases agree, ${compared} views compared`);
    return failed === 0;
}

async function main() {
    const args = process.argv.slice(2);
    const flags = args.filter((arg) => arg.startsWith("--"));
    const checkAt = args.indexOf("--check");
    const viewsAt = args.indexOf("--views");
    const folder = args[0] && !args[0].startsWith("--") ? args[0] : process.env.PIDB_PI;
    if (!folder) throw new Error("name the folder where pi is installed, or set PIDB_PI");
    await loadPi(folder);
    if (checkAt >= 0) return check(args[checkAt + 1]);
    if (viewsAt >= 0) {
        const request = { path: args[viewsAt + 1], full: flags.includes("--full"), llm: flags.includes("--llm") };
        console.log(JSON.stringify(await views(request), null, 1));
        return true;
    }
    await serve();
    return true;
}

main().then(
    (ok) => {
        process.exitCode = ok ? 0 : 1;
    },
    (error) => {
        console.error(`oracle: ${error.message}`);
        process.exitCode = 2;
    },
);
