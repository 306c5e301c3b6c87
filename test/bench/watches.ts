// npm run bench:watches: measures the cost of watches of one kind for a real API server (KUBEBUILDER_ASSETS). ConfigMaps in 64
// namespaces change while a number of clients watch all of them; the server's CPU time and its sent bytes are counted per change.
// The last rows request less by `shardSelector` (KEP-5866), with the server's gate on: ranges of the namespaces' hashes, or all
// but some namespaces. Arguments select rows; WATCHES_CHANGES and WATCHES_ROUNDS change the load.
import { readFileSync } from "node:fs";
import { get } from "node:https";
import { cpus, loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { allBut } from "../../runtime/informer/stream/connection.ts";
import { Client } from "../target/client.ts";
import { start } from "../target/real-target.ts";
import { treeOf, usageOf } from "./process-tree.ts";

const changes = Number(process.env.WATCHES_CHANGES ?? 1500);
const rounds = Number(process.env.WATCHES_ROUNDS ?? 3);
const names = Array.from({ length: 64 }, (_, index) => `functionId-${String(index).padStart(2, "0")}`);
const words = process.argv.slice(2);
const bodyBytes = 2_000;

const print = (line: string) => process.stdout.write(`${line}\n`);
const target = await start(["ShardedListAndWatch"]);
const client = new Client(target.access);

interface Watching {
  bytes: number;
  lines: number;
  end(): void;
}

function watch(shardSelector?: string): Promise<Watching> {
  const { url, ca, token } = target.access;
  const query = new URLSearchParams({
    watch: "1",
    allowWatchBookmarks: "true",
    ...(shardSelector && { shardSelector }),
  });
  const request = get(`${url}/api/v1/configmaps?${query}`, {
    ca,
    headers: { authorization: `Bearer ${token}` },
    agent: false,
  });
  const watching: Watching = { bytes: 0, lines: 0, end: () => request.destroy() };
  request.on("error", () => {});
  return new Promise((resolve, reject) => {
    request.on("response", (answer) => {
      if (answer.statusCode !== 200)
        return answer.on("data", (text) => reject(new Error(`${answer.statusCode} ${text}`)));
      answer.on("error", () => {});
      answer.on("data", (chunk: Buffer) => {
        watching.bytes += chunk.length;
        for (const byte of chunk) if (byte === 10) watching.lines++;
      });
      resolve(watching);
    });
  });
}

const field = "object.metadata.namespace";
const hex = (hash: bigint) => `0x${hash.toString(16).padStart(16, "0")}`;
const top = 1n << 64n;
const range = (index: number, of: number) =>
  `shardRange(${field},'${hex((top * BigInt(index)) / BigInt(of))}','${hex((top * BigInt(index + 1)) / BigInt(of))}')`;
/** Changes the objects in turn, four at a time. */
async function write(count: number): Promise<void> {
  let next = 0;
  const writer = async () => {
    for (let number = next++; number < count; number = next++) {
      const path = `/api/v1/namespaces/${names[number % names.length]}/configmaps/watched`;
      await client.patch(path, { data: { count: `${Date.now()}-${number}` } });
    }
  };
  await Promise.all([writer(), writer(), writer(), writer()]);
}

const apiserver = (): number => {
  const found = treeOf(process.pid).find((pid) =>
    readFileSync(`/proc/${pid}/comm`, "utf8").startsWith("kube-apiserver"),
  );
  if (!found) throw new Error("no kube-apiserver runs");
  return found;
};

interface Figures {
  readonly micros: number;
  readonly bytes: number;
  readonly lines: number;
}

async function measure(selectors: readonly (string | undefined)[]): Promise<Figures> {
  const watching = await Promise.all(selectors.map((each) => watch(each)));
  await sleep(1_000);
  const before = watching.map(({ bytes, lines }) => ({ bytes, lines }));
  const cpuBefore = usageOf(apiserver()).ownCpuMs;
  await write(changes);
  await sleep(500);
  const micros = ((usageOf(apiserver()).ownCpuMs - cpuBefore) * 1000) / changes;
  const sum = (of: (each: { bytes: number; lines: number }, index: number) => number) =>
    watching.reduce((all, each, index) => all + of(each, index), 0) / changes;
  const bytes = sum((each, index) => each.bytes - (before[index]?.bytes ?? 0));
  const lines = sum((each, index) => each.lines - (before[index]?.lines ?? 0));
  for (const each of watching) each.end();
  await sleep(500);
  return { micros, bytes, lines };
}

const times = <T>(count: number, of: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => of(index));
const whole = (count: number) => times(count, () => undefined);
const others = (own: number, of: number) => names.filter((_name, index) => index % of !== own);
const rows: readonly (readonly [string, readonly (string | undefined)[]])[] = [
  ["0 watches", []],
  ...[1, 2, 4, 8, 32].map((count) => [`${count} watches of everything`, whole(count)] as const),
  ["8 watches, each of a range", times(8, (index) => range(index, 8))],
  ["32 watches, each of a range", times(32, (index) => range(index, 32))],
  ...[8, 32].map(
    (count) =>
      [
        `${count} watches, each of all but ${others(0, count).length} namespaces`,
        times(count, (index) => allBut(others(index, count))),
      ] as const,
  ),
  [
    "8 watches, each of all but 500 namespaces",
    times(8, (index) => allBut([...others(index, 8), ...times(500 - others(0, 8).length, (each) => `other-${each}`)])),
  ],
];

try {
  for (const name of names) {
    await client.post("/api/v1/namespaces", { metadata: { name } });
    await client.post(`/api/v1/namespaces/${name}/configmaps`, {
      metadata: { name: "watched" },
      data: { body: "x".repeat(bodyBytes) },
    });
  }
  await write(changes);
  print(
    `${changes} changes in each of ${rounds} rounds, ${cpus().length} cores, load average ${loadavg()[0]?.toFixed(1)}`,
  );
  const chosen = rows.filter(([name]) => words.length === 0 || words.some((word) => name.includes(word)));
  const results = new Map<string, Figures[]>(chosen.map(([name]) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const [name, selectors] of chosen) results.get(name)?.push(await measure(selectors));
  }
  for (const [name, figures] of results) {
    const micros = figures.map((each) => each.micros).sort((a, b) => a - b);
    const [first] = figures;
    print(
      `${name.padEnd(44)} us a change: ${micros
        .map((each) => each.toFixed(0))
        .join(" ")
        .padEnd(24)} ${first?.bytes.toFixed(0)} bytes, ${first?.lines.toFixed(2)} lines`,
    );
  }
} finally {
  await client.close();
  await target.close();
}
