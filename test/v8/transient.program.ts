// Adds and removes 20 MB of entries, one at a time, in an old Map or queue. Prints how many megabytes were promoted to the old
// space.
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Fifo, type FifoItem } from "../../runtime/engine/work/lane.ts";
import { YoungMap } from "../../runtime/v8/young-map.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
const old = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === "old_space")?.space_used_size ?? 0;
const map = new YoungMap<number, readonly number[]>();

interface One extends FifoItem<One> {
  readonly entry: readonly number[];
}
const line = new Fifo<One>();

for (let time = 0; time < 3; time++) collect();
const before = old();
for (let key = 0; key < 20_000; key++) {
  const entry = new Array<number>(128).fill(key);
  if (process.argv[2] === "map") {
    map.set(key, entry);
    map.delete(key);
    continue;
  }
  line.push({ entry, list: undefined, previous: undefined, next: undefined });
  // The first is removed when the next has been added, so that the queue is never empty.
  const { first } = line;
  if (first && first.entry !== entry) line.remove(first);
}
process.stdout.write(JSON.stringify((old() - before) / 2 ** 20));
