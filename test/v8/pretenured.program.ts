// Receives events: at first many of them wait, then each is released at once. Prints by how many megabytes the old space grew
// meanwhile. With the argument `bounded`, V8 first gets the runtime's limits.
import { getHeapSpaceStatistics } from "node:v8";
import { setGarbageFlags } from "../../runtime/v8/garbage.ts";

if (process.argv[2] === "bounded") setGarbageFlags();

const old = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === "old_space")?.space_used_size ?? 0;

interface Event {
  readonly at: number;
  readonly id: string;
  attempts: number;
}

const eventOf = (at: number): Event => ({ at, id: "some", attempts: 0 });

const waiting: Event[] = [];
let attempts = 0;

function receive(at: number, waits: boolean): void {
  const event = eventOf(at);
  if (waits) waiting[at % 20_000] = event;
  event.attempts++;
  attempts += event.attempts;
}

for (let at = 0; at < 1_000_000; at++) receive(at, true);
waiting.length = 0;
const before = old();
let most = before;
for (let at = 0; at < 1_000_000; at++) {
  receive(at, false);
  if (at % 1_000 === 0) most = Math.max(most, old());
}
process.stdout.write(`${attempts > 0 ? ((most - before) / 1e6).toFixed(1) : ""}\n`);
process.exit();
