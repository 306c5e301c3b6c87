// Runs worlds in which the manifest is edited, and prints the smallest story found for each broken law. Arguments: the first seed
// and the number of seeds, default 1 and 10000. --store: memory, sqlite, secrets, or jetstream on the server whose program
// NATS_SERVER names. --only: names of edits, joined by commas. --seeds: prints a line for each seed. --stories: number of stories
// per law, default 1. Exit status 1 if a law is broken.
import { parseArgs } from "node:util";
import { Nats } from "../../../runtime/journal/nats/connection.ts";
import { NatsServer } from "../../tools/nats-server.ts";
import { onJetstream } from "../jetstream-world.ts";
import { type Law, laws } from "./law-names.ts";
import { onServer, type Place, placeOf, type StoreName, storeNames } from "./places.ts";
import { planOf } from "./plan.ts";
import { shrunk } from "./shrink.ts";
import { storyOf, tableOf } from "./story.ts";
import { runPlan, wordsOf } from "./world.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    store: { type: "string", default: "memory" },
    only: { type: "string" },
    seeds: { type: "boolean", default: false },
    stories: { type: "string", default: "1" },
  },
});
const [from, count] = [Number(positionals[0] ?? 1), Number(positionals[1] ?? 10_000)];
const store = storeNames.find((name) => name === values.store);
if (store === undefined) throw new Error(`--store is one of ${storeNames.join(", ")}`);
const only = values.only?.split(",");
const places = await placesOf(store);
const seeds = new Map<Law, number[]>();
let deliveries = 0;
try {
  for (let seed = from; seed < from + count; seed++) {
    const plan = planOf(seed, only);
    const fate = await runPlan(plan, await places.open());
    deliveries += fate.deliveries;
    for (const law of new Set(fate.broken.map((breach) => breach.law))) {
      const known = seeds.get(law) ?? [];
      seeds.set(law, [...known, seed]);
      const breach = fate.broken.find((each) => each.law === law);
      if (values.seeds && breach) process.stdout.write(`SEED=${seed} ${wordsOf(breach)}\n`);
      if (known.length >= Number(values.stories)) continue;
      const smallest = await shrunk(plan, law, async (each) => runPlan(each, await places.open()));
      process.stdout.write(`SEED=${seed} ${laws[law]}\n${storyOf(smallest.plan, smallest.fate)}\n`);
    }
  }
} finally {
  await places.close();
}
if (seeds.size > 0) process.stdout.write(`${tableOf(seeds, count)}\n`);
process.stdout.write(`${count} worlds from seed ${from} on, ${deliveries} deliveries, ${seeds.size} laws broken\n`);
process.exit(seeds.size === 0 ? 0 : 1);

/** Opens the stores of the worlds' checkpoints. */
async function placesOf(name: StoreName): Promise<{ open(): Promise<Place>; close(): Promise<void> }> {
  if (name !== "jetstream") return { open: async () => placeOf(name), close: async () => {} };
  const server = await NatsServer.make();
  await server.start();
  const log = { warn: () => {}, info: () => {} };
  let slots = 0;
  const connect = () => Nats.connect({ servers: [server.url], name: `laws-${slots}`, log });
  let nats = await connect();
  return {
    async open() {
      // New streams from time to time: an opening leaves a consumer for five minutes, and their number is limited.
      if (++slots % 20 === 0) {
        await nats.close();
        nats = await connect();
      }
      return onServer(onJetstream(nats, `world-${slots}`));
    },
    async close() {
      await nats.close();
      await server.remove();
    },
  };
}
