// Creates garbage, some of which survives, and is then idle. Prints the megabytes of the young space before and after the
// following collection.
import { getHeapSpaceStatistics } from "node:v8";
import { IdleCollector } from "../../runtime/v8/idle-collector.ts";

const young = () =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space")?.physical_space_size ?? 0;
const megabytes = () => Math.round(young() / 1e6);

let kept: object[] = [];
for (let made = 0; made < 300_000; made++) {
  kept.push({ some: new Array(50).fill(made) });
  if (kept.length > 4_000) kept = kept.slice(2_000);
}
kept = [];

const before = megabytes();
const collection = new IdleCollector();
const look = () => collection.look(0, { young: young(), used: 0 });
look();
look();
const limit = performance.now() + 10_000;
const looking = setInterval(() => {
  if (megabytes() * 4 > before && performance.now() < limit) return;
  clearInterval(looking);
  collection.end();
  process.stdout.write(`${before} ${megabytes()}\n`);
}, 10);
