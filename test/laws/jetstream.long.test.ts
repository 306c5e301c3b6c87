import { describe, expect, it } from "vitest";
import { Nats } from "../../runtime/journal/nats/connection.ts";
import { natsProgram } from "../tools/assets.ts";
import { startNats } from "../tools/nats.ts";
import { onJetstream } from "./jetstream-world.ts";
import { runWorld } from "./world.ts";

// SEED=7 runs one world again; SEEDS=10000 runs that many.
const { SEED, SEEDS = "50" } = process.env;
const first = SEED === undefined ? 1 : Number(SEED);
const count = SEED === undefined ? Number(SEEDS) : 1;

describe.skipIf(!natsProgram)(
  "the laws of delivery, with positions on NATS (NATS_SERVER names the server's program)",
  () => {
    it(`hold in worlds with faults, kills and reloads for seeds ${first} to ${first + count - 1}`, {
      timeout: 60_000 + count * 5_000,
    }, async () => {
      const server = await startNats();
      const log = { warn: () => {}, info: () => {} };
      const connect = (seed: number) => Nats.connect({ servers: [server.url], name: `laws-${seed}`, log });
      let nats = await connect(first);
      const failures: string[] = [];
      let deliveries = 0;
      for (let seed = first; seed < first + count; seed++) {
        // New streams from time to time, because a start lists what all slots have in the object store.
        if (seed % 100 === 0) {
          await nats.close();
          nats = await connect(seed);
        }
        const place = onJetstream(nats, `seed-${seed}`);
        const world = await runWorld(seed, place);
        await place.close();
        deliveries += world.deliveries;
        for (const law of world.broken.slice(0, 3)) failures.push(`SEED=${seed} ${law}`);
      }
      await nats.close();
      expect(failures.slice(0, 20)).toEqual([]);
      expect(deliveries).toBeGreaterThan(count * 5);
    });
  },
);
