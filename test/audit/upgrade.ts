// npm run audit:upgrade -- FOLDER: the runtime of another checkout, with its packages installed, writes its positions under load and
// is ended or killed; then the runtime of this checkout takes them up under load. On each store, on the embedded cluster. NATS_SERVER
// names the server's program for the stores on NATS.
import { resolve } from "node:path";
import { Client } from "../target/client.ts";
import { startTarget } from "../target/target.ts";
import { natsProgram } from "../tools/assets.ts";
import { NatsServer } from "../tools/nats-server.ts";
import type { ReplicaOptions } from "../tools/replica.ts";
import { until } from "../tools/until.ts";
import { describe, isFaultless } from "./audit.ts";
import { ReplicasFixture } from "./replicas-fixture.ts";

const [folder, ...chosen] = process.argv.slice(2);
if (folder === undefined) throw new Error("the first argument is the folder of another checkout");
const program = resolve(folder, "runtime/bin/watchfire.js");
const slots = 8;
/** Operations of the writer between two ends of a runtime. */
const load = 300;
const say = (line: string) => process.stdout.write(`${line}\n`);

type Store = Pick<ReplicaOptions, "store" | "fleet" | "nats">;
const stores: Readonly<Record<string, (url: string) => Store>> = {
  "data folder": () => ({ store: "sqlite" }),
  Secrets: () => ({ store: "kubernetes" }),
  NATS: (nats) => ({ store: "nats", nats }),
  "fleet on NATS": (nats) => ({ store: "nats", fleet: { nats, slots } }),
};

/** The old runtime ends as `end` says while more is written, and the new one continues. */
async function upgraded(on: ReplicasFixture, store: Store, end: "SIGTERM" | "SIGKILL"): Promise<boolean> {
  const pod = "watchfire-0";
  const old = await on.start(store.store, { ...store, pod, program });
  await until("it is ready", 60_000, async () => (await old.read("/readyz")).ok);
  await on.load(load);
  on.write(load);
  if (end === "SIGKILL") await old.kill();
  else {
    old.signal("SIGTERM");
    await old.ended();
  }
  const current = await on.start(store.store, { ...store, pod });
  await until("it is ready", 60_000, async () => (await current.read("/readyz")).ok);
  await on.load(load);
  const verdict = await on.verdict();
  say(`  ${end}: ${describe(verdict)}`);
  await current.kill();
  return isFaultless(verdict);
}

const target = await startTarget("embedded");
const admin = new Client(target.access);
let faultless = true;
let number = 0;
for (const [name, storeOn] of Object.entries(stores)) {
  if (chosen.length > 0 && !chosen.some((word) => name.includes(word))) continue;
  if (name.includes("NATS") && natsProgram === undefined) {
    say(`${name}: left out, NATS_SERVER names no program`);
    continue;
  }
  say(name);
  for (const end of ["SIGTERM", "SIGKILL"] as const) {
    const server = await NatsServer.make();
    if (name.includes("NATS")) await server.start();
    await using on = await ReplicasFixture.set(admin, target.access, `upgrade-${number++}`, { objects: 120 });
    try {
      faultless = (await upgraded(on, storeOn(server.url), end)) && faultless;
    } finally {
      await server.remove();
    }
  }
}
await admin.close();
await target.close();
say(faultless ? "nothing missed, no duplicate without its flag" : "the promise is broken");
process.exit(faultless ? 0 : 2);
