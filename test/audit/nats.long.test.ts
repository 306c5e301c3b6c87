import { expect, test } from "vitest";
import { Nats } from "../../runtime/journal/nats/connection.ts";
import { natsProgram } from "../tools/assets.ts";
import { startNats } from "../tools/nats.ts";
import { until } from "../tools/until.ts";
import { audit } from "./audit.ts";

/** A run makes a hundred commits or more; each contains everything since the previous one. */
const commitsBetween = 30;

const noFault = { missed: [], unflagged: [], disordered: [], invented: [], unwanted: [] };

test.skipIf(!natsProgram)(
  "on NATS nothing is missed and no duplicate goes unflagged when runtime and server are killed and history is compacted",
  async () => {
    const server = await startNats();
    const lines: string[] = [];
    const say = (line: string) => lines.push(line);
    let ended = false;
    let killed = 0;
    const kills = (async () => {
      const log = { warn: () => {}, info: () => {} };
      const nats = await Nats.connect({ servers: [server.url], name: "default_watchfire", log });
      const commits = async () => (await nats.jsm.streams.info(nats.logStream)).state.last_seq;
      while (!ended) {
        const before = await until("the server is back", 20_000, commits);
        await until("it commits", 120_000, async () => ended || (await commits()) > before + commitsBetween);
        await server.kill();
        await server.start();
        killed++;
      }
      await nats.close();
    })();
    const options = ["--store", "nats", "--nats", server.url, "--namespace", "default"];
    try {
      const plan = { objects: 150, operations: 450, kills: 2, seed: 20261122, options, say };
      const { whole, compacted } = await audit(plan);
      expect(whole, lines.join("\n")).toMatchObject(noFault);
      expect(compacted, lines.join("\n")).toMatchObject(noFault);
      expect(compacted.synthetic, "no gap was bridged").toBeGreaterThan(0);
      expect(killed, "the server was not killed").toBeGreaterThan(0);
    } finally {
      ended = true;
      await kills;
    }
  },
  400_000,
);
