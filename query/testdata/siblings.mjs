// siblings.mjs prints siblings.json: arrays of times as getTime gives them, null for NaN,
// and the order in which Array.prototype.sort puts them with a comparator that subtracts.
let state = 1;
const random = (n) => (state = (state * 48271) % 2147483647) % n;
const cases = [];
for (let i = 0; i < 300; i++) {
    const length = i < 200 ? 2 + random(6) : 2 + random(62);
    const holes = 2 + random(6);
    const times = Array.from({ length }, () => (random(holes) === 0 ? NaN : random(2 * length)));
    if (i % 5 === 0) times.sort((a, b) => b - a);
    const order = times.map((_, at) => at).sort((a, b) => times[a] - times[b]);
    cases.push({ times, order });
}
console.log(`[\n${cases.map((c) => JSON.stringify(c)).join(",\n")}\n]`);
