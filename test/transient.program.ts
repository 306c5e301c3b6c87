// Lets 20 MB of entries come and go, one at a time, in a Map or Set that is old. Prints how many megabytes became old.
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { TransientMap, TransientSet } from "../runtime/transient.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
const old = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === "old_space")?.space_used_size ?? 0;
const map = new TransientMap<number, readonly number[]>();
const set = new TransientSet<readonly number[]>();
for (let time = 0; time < 3; time++) collect();
const before = old();
for (let key = 0; key < 20_000; key++) {
  const entry = new Array<number>(128).fill(key);
  if (process.argv[2] === "map") map.set(key, entry);
  else set.add(entry);
  map.delete(key);
  set.delete(entry);
}
process.stdout.write(JSON.stringify((old() - before) / 2 ** 20));
