// A process that creates, changes, deletes and recreates objects, as many as the audit allows.
import { Client } from "../target/client.ts";
import { accessOf } from "../target/kubeconfig.ts";
import { labelsOf } from "./edits.ts";

/** Message from the audit to the writer: the maximum number of operations in all. */
export interface ToWriter {
  readonly allow: number;
}
/** Message from the writer to the audit: the number of operations done. */
export interface FromWriter {
  readonly done: number;
}

const [kubeconfig = "", objects, seed, namespace, shares] = process.argv.slice(2);
const client = new Client(await accessOf(kubeconfig));
const collection = `/api/v1/namespaces/${namespace}/configmaps`;
const random = randomFrom(Number(seed));

/** Number of concurrent requests. Each is for another object, so that the changes of one object are in order. */
const parallel = 16;
let allowed = 0;
let done = 0;
let wake = () => {};

process.on("message", (message: ToWriter) => {
  allowed = message.allow;
  wake();
});
process.on("disconnect", () => process.exit());

const exists = new Set<number>();
const busy = new Set<number>();
async function work(): Promise<void> {
  for (;;) {
    while (started() >= allowed) await allowedMore();
    const object = pick();
    busy.add(object);
    await operate(object);
    busy.delete(object);
    done++;
    process.send?.({ done } satisfies FromWriter);
  }
}

const started = () => done + busy.size;

/** All lanes wait for the same message. */
let more: Promise<void> | undefined;

function allowedMore(): Promise<void> {
  more ??= new Promise((resolve) => {
    wake = () => {
      more = undefined;
      resolve();
    };
  });
  return more;
}

/** The first round creates each object in turn; after that they are chosen at random. */
function pick(): number {
  if (done + busy.size < Number(objects)) return done + busy.size;
  for (;;) {
    const object = Math.floor(random() * Number(objects));
    if (!busy.has(object)) return object;
  }
}

/** Creates an absent object. Changes an existing object seven times in ten, else deletes it. */
async function operate(object: number): Promise<void> {
  const name = `item-${object}`;
  if (!exists.has(object)) {
    const metadata = { name, labels: { share: String(object % Number(shares)), ...labelsOf(object) } };
    await client.post(collection, { apiVersion: "v1", kind: "ConfigMap", metadata, data: { turn: "0" } });
    exists.add(object);
  } else if (random() < 0.7) {
    await client.patch(`${collection}/${name}`, { data: { turn: String(done), noise: String(random()) } });
  } else {
    await client.delete(`${collection}/${name}`);
    exists.delete(object);
  }
}

/** mulberry32: a seeded generator, so that a run can be repeated. */
function randomFrom(start: number): () => number {
  let state = start >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

await Promise.all(Array.from({ length: parallel }, work));
