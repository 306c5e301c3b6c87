// npm run audit:fleet: replicas that share 64 slots, with a cluster of three nats-servers. In the first part, replicas are added
// and removed under load, and all manifests are edited. In the second part, replicas and servers are killed, stopped and reset,
// and manifests are edited. NATS_SERVER names the server's program. Runs on the embedded cluster, or on a real kube-apiserver if
// KUBEBUILDER_ASSETS names one. AUDIT_FUNCTIONS, AUDIT_RATE (changes per second) and AUDIT_REPLICAS (a list of counts) change the
// load; AUDIT_SERVERS=1 uses one nats-server for planned moves. Arguments select a part, and a fault.
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { Client } from "../target/client.ts";
import { startTarget } from "../target/target.ts";
import { assetsFolder } from "../tools/assets.ts";
import { NatsServer } from "../tools/nats-server.ts";
import type { Replica } from "../tools/replica.ts";
import { until } from "../tools/until.ts";
import { describe, isFaultless } from "./audit.ts";
import { fleetEdits } from "./edits.ts";
import { movesIn, takeoverIn } from "./moves.ts";
import { ReplicasFixture } from "./replicas-fixture.ts";

const { AUDIT_FUNCTIONS = "50", AUDIT_RATE = "50", AUDIT_REPLICAS = "1,2,4,8,3", AUDIT_SERVERS } = process.env;
const functions = Number(AUDIT_FUNCTIONS);
const perSecond = Number(AUDIT_RATE);
const counts = AUDIT_REPLICAS.split(",").map(Number);
const slots = 64;
/** Interval in which replicas' status is read, in milliseconds. An answer costs a replica one or two milliseconds. */
const pollMs = 100;
/** The maximum backlog of a slow writer, in seconds of the load. */
const owedS = 1;
/** Duration of the load with each number of replicas, in milliseconds. */
const steadyMs = 10_000;
/** How long a stopped process stays stopped, in milliseconds: three times as long as a dead replica keeps its slots. */
const stopMs = 30_000;
const say = (line: string) => process.stdout.write(`${line}\n`);
const running = async (replica: Replica) =>
  ((await replica.status()).fleet?.slots ?? []).filter(({ state }) => state === "running").length;

/** A fleet under continuous load, with the servers that store its checkpoints. */
class Fleet {
  readonly on: ReplicasFixture;
  readonly servers: readonly NatsServer[];
  readonly replicas: Replica[] = [];
  /** Replicas that ended or were killed. Their logs count, too. */
  readonly gone: Replica[] = [];
  private writing: NodeJS.Timeout | undefined;

  constructor(on: ReplicasFixture, servers: readonly NatsServer[]) {
    this.on = on;
    this.servers = servers;
  }

  get urls(): string[] {
    return this.servers.map(({ url }) => url);
  }

  async join(): Promise<void> {
    const nats = this.urls.join(",");
    this.replicas.push(await this.on.start("nats", { fleet: { nats, slots } }));
  }

  /** Restarts replicas that ended by themselves, as a kubelet does. */
  private async restart(): Promise<void> {
    for (const each of this.replicas.filter(({ exitStatus }) => exitStatus !== null)) {
      const last = (await each.log()).trimEnd().split("\n").at(-1);
      say(`  ${each.name} ended with status ${each.exitStatus}, and is started again; its last words: ${last}`);
      this.gone.push(...this.replicas.splice(this.replicas.indexOf(each), 1));
      await this.join();
    }
  }

  /** Writes more, until handlers have recorded some of it. */
  async goesOn(): Promise<void> {
    const before = await this.on.written();
    this.on.write(perSecond);
    await until(
      "handlers record",
      120_000,
      async () => {
        await this.restart();
        return (await this.on.written()) > before + perSecond / 2;
      },
      pollMs,
    );
  }

  /** Milliseconds until all slots run, evenly distributed, and all replicas are ready. */
  async balanced(): Promise<number> {
    const from = performance.now();
    await until(
      "the slots are balanced",
      180_000,
      async () => {
        await this.restart();
        const found = await Promise.all(this.replicas.map(running));
        return found.reduce((a, b) => a + b) === slots && Math.max(...found) - Math.min(...found) <= 1;
      },
      pollMs,
    );
    for (const each of this.replicas)
      await until("it is ready", 60_000, async () => (await each.read("/readyz")).ok, pollMs);
    return Math.round(performance.now() - from);
  }

  /** Starts or stops replicas until there are this many. */
  async resize(count: number): Promise<number> {
    const from = performance.now();
    while (this.replicas.length < count) await this.join();
    const leaving = this.replicas.splice(count);
    for (const each of leaving) each.signal("SIGTERM");
    for (const each of leaving) await each.ended();
    this.gone.push(...leaving);
    await this.balanced();
    return Math.round(performance.now() - from);
  }

  /** Takes a replica out of the list, whatever its state. */
  take(): Replica {
    const [first] = this.replicas.splice(0, 1);
    if (!first) throw new Error("there is no replica");
    this.gone.push(first);
    return first;
  }

  /**
   * Edits all functions' manifests during writing, one edit after another. For each edit, all replicas end and as many start.
   */
  async edit(end: (replica: Replica) => Promise<unknown>): Promise<void> {
    for (const shape of fleetEdits) {
      this.end();
      await this.on.edit(shape, async () => {
        this.begin();
        await this.goesOn();
        const all = this.replicas.splice(0);
        await Promise.all(all.map(end));
        this.gone.push(...all);
        for (const _ of all) await this.join();
        await this.balanced();
      });
      await this.goesOn();
    }
  }

  begin(): void {
    const stepMs = 50;
    this.writing = setInterval(() => {
      if (this.on.behind < owedS * perSecond) this.on.write(Math.round((perSecond * stepMs) / 1000));
    }, stepMs);
  }

  /** Stops writing. */
  end(): void {
    clearInterval(this.writing);
  }

  /** Stops writing. Returns whether the auditor finds no fault, and prints its findings. */
  async judged(what: string, mayRepeat: boolean): Promise<boolean> {
    this.end();
    await this.on.allWritten();
    const from = performance.now();
    const verdict = await this.on.verdict();
    const tookMs = Math.round(performance.now() - from);
    say(`  ${what}: ${describe(verdict)}; judged ${tookMs} ms after the last change`);
    return isFaultless(verdict) && (mayRepeat || verdict.flagged === 0);
  }

  async logs(): Promise<string[]> {
    return Promise.all([...this.replicas, ...this.gone].map((each) => each.log()));
  }
}

/** Adds and removes replicas as planned: nothing may be repeated. */
async function planned(fleet: Fleet): Promise<boolean> {
  const [first = 1, ...others] = counts;
  await fleet.resize(first);
  await fleet.goesOn();
  fleet.begin();
  const told = [String(first)];
  for (const count of others) {
    const tookMs = await fleet.resize(count);
    const [done, from] = [fleet.on.done, performance.now()];
    await new Promise((resolve) => setTimeout(resolve, steadyMs));
    const rate = ((fleet.on.done - done) / (performance.now() - from)) * 1_000;
    told.push(`${count} in ${tookMs} ms (${Math.round(rate)} changes/s)`);
  }
  say(`  replicas: ${told.join(", ")}`);
  const pauses = movesIn(await fleet.logs()).toSorted((a, b) => a - b);
  const at = (share: number) => pauses[Math.min(pauses.length - 1, Math.floor(pauses.length * share))];
  say(`  slots moved: ${pauses.length}; pause of a move: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms`);
  const moved = await fleet.judged("planned moves", false);
  await fleet.edit(async (replica) => {
    replica.signal("SIGTERM");
    await replica.ended();
  });
  return (await fleet.judged("edits of all manifests, planned", false)) && moved;
}

/** Causes one fault after another, each with a separate verdict. */
async function faults(fleet: Fleet): Promise<boolean> {
  const { servers } = fleet;
  const restart = async (chosen: readonly NatsServer[]) => {
    await Promise.all(chosen.map((server) => server.kill()));
    await Promise.all(chosen.map((server) => server.start()));
  };
  await fleet.resize(3);
  await fleet.goesOn();
  const leader = async (): Promise<NatsServer[]> => {
    const connection = await connect({ servers: fleet.urls });
    const manager = await jetstreamManager(connection);
    const name = await until("there is a leader", 30_000, async () => {
      const streams = await manager.streams.list().next();
      return streams.find(({ config }) => config.name.endsWith("-log"))?.cluster?.leader;
    });
    await connection.close();
    return servers.filter((_, index) => name === `n${index}`);
  };
  const scenarios: Record<string, () => Promise<void>> = {
    "a replica killed": async () => {
      const at = Date.now();
      await fleet.take().kill();
      say(`  a replica killed: balanced after ${await fleet.balanced()} ms; ${takeoverIn(await fleet.logs(), at)}`);
      await fleet.join();
    },
    "a replica stopped for 30 s": async () => {
      const stopped = fleet.take();
      stopped.signal("SIGSTOP");
      const from = performance.now();
      say(`  a replica stopped: balanced after ${await fleet.balanced()} ms`);
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, stopMs - (performance.now() - from))));
      stopped.signal("SIGCONT");
      say(`  the stopped replica ended with status ${await stopped.ended()}`);
      await fleet.join();
    },
    "all replicas killed, and all manifests edited": () => fleet.edit((replica) => replica.kill()),
    "the leader of NATS killed": async () => restart(await leader()),
    "two of three servers killed": () => restart(servers.slice(1)),
    "all servers killed": () => restart(servers),
    "an older copy of all servers' files": async () => {
      await Promise.all(servers.map((server) => server.kill()));
      const copies = servers.map((server) => server.copy());
      await Promise.all(servers.map((server) => server.start()));
      await fleet.balanced();
      await fleet.goesOn();
      await Promise.all(servers.map((server) => server.kill()));
      for (const [index, server] of servers.entries()) server.restore(copies[index] ?? "");
      await Promise.all(servers.map((server) => server.start()));
    },
  };
  let faultless = true;
  for (const [what, fault] of Object.entries(scenarios)) {
    if (!what.includes(chosenFault)) continue;
    fleet.begin();
    await fleet.goesOn();
    await fault();
    await fleet.goesOn();
    await fleet.balanced();
    faultless = (await fleet.judged(what, true)) && faultless;
  }
  return faultless;
}

const parts = { planned, faults };
const [chosenPart, chosenFault = ""] = process.argv.slice(2);
const target = await startTarget(assetsFolder() === undefined ? "embedded" : "real");
const admin = new Client(target.access);
let faultless = true;
for (const [name, part] of Object.entries(parts)) {
  if (chosenPart !== undefined && chosenPart !== name) continue;
  say(`${name}: ${functions} functions, ${slots} slots, ${perSecond} changes a second at most`);
  const servers =
    AUDIT_SERVERS === "1" && name === "planned" ? [await NatsServer.make()] : await NatsServer.makeCluster();
  await Promise.all(servers.map((server) => server.start()));
  const load = { shares: functions, objects: 4 * functions, apart: name === "planned" };
  const on = await ReplicasFixture.set(admin, target.access, `fleet-${name}`, load);
  const fleet = new Fleet(on, servers);
  try {
    faultless = (await part(fleet)) && faultless;
  } finally {
    fleet.end();
    await on[Symbol.asyncDispose]();
    for (const server of servers) await server.remove();
  }
}
await admin.close();
await target.close();
say(faultless ? "nothing missed, no duplicate without its flag" : "the promise is broken");
process.exit(faultless ? 0 : 2);
