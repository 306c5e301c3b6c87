import { execFile } from "node:child_process";
import { createReadStream } from "node:fs";
import { mkdir, mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { type Delivery, namespaces, readFacts, revision } from "../audit/ledger.ts";
import { judge } from "../audit/verdict.ts";
import { Writer } from "../audit/writer-process.ts";
import { until } from "../tools/until.ts";
import { ClusterProcess, RuntimeProcess } from "../tools/watchfire-process.ts";

const bin = join(import.meta.dirname, "../../runtime/bin/watchfire.js");

/** Events per second during the whole test. */
const rate = 500;
/** Versions that are deployed during the load, each after the previous version has had a second's events. */
const newVersions = [2, 3];

const manifest = `
apiVersion: watchfire.dev/v1alpha1
kind: Function
metadata: { name: recorder }
spec:
  handler: ./handler.ts
  triggers:
    - watch:
        apiVersion: v1
        kind: ConfigMap
        namespaceSelector: { matchNames: [${namespaces.objects}] }
        fieldSelector: metadata.name!=kube-root-ca.crt
  delivery: { concurrency: 16 }
`;

/**
 * Works for a moment, so that a change of code meets running attempts, and logs the event before it ends. One line reports all
 * waiting events, because at most 200 lines a second of a function's log are written and this test must not lose a line.
 */
const handler = (version: number) => `
const untold = [];
export default async (event, ctx) => {
  const { uid, name } = event.object.metadata;
  const { id, type, resourceVersion, attempt, redelivered, synthetic = false } = event;
  untold.push({ id, uid, name, type, resourceVersion, attempt, redelivered, synthetic });
  await new Promise((resolve) => setTimeout(resolve, 10));
  if (untold.length > 0) ctx.log.info("seen", { version: ${version}, events: untold.splice(0) });
};
`;

/** A delivery, with the version of the code that received it, and its time. */
interface Seen extends Delivery {
  readonly version: number;
  readonly at: number;
}

/** The events that the handlers logged, in order. */
async function readSeen(logFile: string): Promise<Seen[]> {
  const seen: Seen[] = [];
  for await (const line of createInterface({ input: createReadStream(logFile) })) {
    if (!line.includes('"msg":"seen"')) continue;
    const { fields, time } = JSON.parse(line);
    const at = Date.parse(time);
    for (const { redelivered, attempt, resourceVersion, ...rest } of fields.events) {
      const flagged = redelivered || attempt > 1;
      const { version } = fields;
      seen.push({ ...rest, version, resourceVersion: Number(resourceVersion), flagged, writtenAt: seen.length, at });
    }
  }
  return seen;
}

/** The version of the code that handled the newest event; `undefined` before the first event. */
async function newestVersion(logFile: string): Promise<number | undefined> {
  const end = Buffer.alloc(16_384);
  const file = await open(logFile);
  try {
    const { size } = await file.stat();
    const { bytesRead } = await file.read(end, 0, end.length, Math.max(0, size - end.length));
    const [version] = end
      .toString("utf8", 0, bytesRead)
      .matchAll(/"version":(\d+)/g)
      .toArray()
      .slice(-1);
    return version && Number(version[1]);
  } finally {
    await file.close();
  }
}

test("new code that is deployed at 500 events/s loses none, repeats none unflagged, and takes over within seconds", {
  timeout: 180_000,
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), "watchfire-deploy-"));
  const functions = join(folder, "functions");
  const cluster = await ClusterProcess.start(folder);
  const runtime = new RuntimeProcess(folder, cluster.kubeconfig, join(folder, "none"), ["--deployed"]);
  const writer = new Writer(cluster.kubeconfig, 200, 7);
  const write = async (version: number) => {
    await mkdir(join(functions, "recorder"), { recursive: true });
    await writeFile(join(functions, "recorder", "function.yaml"), manifest);
    await writeFile(join(functions, "recorder", "handler.ts"), handler(version));
  };
  const deploy = async (version: number) => {
    await write(version);
    const began = Date.now();
    const args = ["deploy", "--functions", functions, "--kubeconfig", cluster.kubeconfig, "--namespace", "default"];
    await promisify(execFile)(process.execPath, [bin, ...args]);
    return { began, done: Date.now() };
  };
  try {
    const { client } = cluster;
    await mkdir(join(folder, "none"));
    await client.post("/api/v1/namespaces", { metadata: { name: namespaces.objects } });
    await deploy(1);
    await runtime.start();
    const from = await revision(client);

    const began = performance.now();
    let allowed = 0;
    // Computes the writes that are due by now. The backlog of a busy machine is limited to half a second.
    const pace = setInterval(() => {
      const due = Math.min(Math.floor(((performance.now() - began) / 1000) * rate), writer.done + rate / 2);
      if (due <= allowed) return;
      writer.allow(due - allowed);
      allowed = due;
    }, 20);
    const hasASecondOf = async (version: number) => {
      await until(`version ${version} runs`, 20_000, async () => (await newestVersion(runtime.logFile)) === version);
      const before = writer.done;
      await until("a second of events is written", 20_000, async () => writer.done >= before + rate);
    };
    const times: { began: number; done: number }[] = [];
    try {
      await hasASecondOf(1);
      for (const version of newVersions) {
        times.push(await deploy(version));
        await hasASecondOf(version);
      }
    } finally {
      clearInterval(pace);
    }
    await writer.left(0);
    const wroteFor = (performance.now() - began) / 1000;
    const facts = await readFacts(client, from);
    await until("everything was handled", 60_000, async () => {
      const { functions: reports } = (await (await runtime.read("/status")).json()) as {
        functions: { queued: number; inFlight: number; spilled: number }[];
      };
      const idle = reports.every(({ queued, inFlight, spilled }) => queued + inFlight + spilled === 0);
      return idle && (await readSeen(runtime.logFile)).length >= facts.length;
    });

    const seen = await readSeen(runtime.logFile);
    const { missed, unflagged, disordered, invented, flagged } = judge(facts, seen);
    expect({ missed, unflagged, disordered, invented }).toEqual({
      missed: [],
      unflagged: [],
      disordered: [],
      invented: [],
    });
    // A version starts only when no attempt of the previous version runs any more.
    expect(seen.map(({ version }) => version)).toEqual(seen.map(({ version }) => version).toSorted((a, b) => a - b));
    const switches = times.map((time, index) => {
      const first = seen.findIndex(({ version }) => version === index + 2);
      const [last, next] = [seen[first - 1]?.at ?? 0, seen[first]?.at ?? Number.POSITIVE_INFINITY];
      return { afterMs: next - time.began, deployMs: time.done - time.began, pauseMs: next - last };
    });
    for (const { afterMs } of switches) expect(afterMs).toBeLessThan(20_000);
    const lines = switches.map(
      ({ afterMs, deployMs, pauseMs }) =>
        `new code ran ${afterMs} ms after \`watchfire deploy\` began (it took ${deployMs} ms); ${pauseMs} ms without an attempt`,
    );
    process.stdout.write(
      [`${facts.length} events at ${Math.round(facts.length / wroteFor)}/s, ${flagged} flagged`, ...lines, ""].join(
        "\n",
      ),
    );
  } finally {
    writer.stop();
    await runtime.kill();
    await cluster.stop();
    await rm(folder, { recursive: true, force: true });
  }
});
