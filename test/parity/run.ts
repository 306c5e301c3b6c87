// npm run parity: sends generated objects and definitions to the embedded cluster and to a real API server (KUBEBUILDER_ASSETS) in
// dry runs, and compares the answers. Prints a table by kind, and each difference. OBJECTS: number of objects of built-in kinds,
// default 1,000. DEFINITIONS: number of definitions, default 300, each with three objects. SEED: default 1. FIELDS: a kind, or `all`,
// of which each field of the schema is set to usual wrong values as well. Default: no kind. Exit status 1 if fewer than 99 % of the
// verdicts are equal, or if the embedded cluster accepts, without a warning, an object that the real one refuses.
import { Dice } from "../laws/random.ts";
import { Client, type Reply } from "../target/client.ts";
import { startTarget } from "../target/target.ts";
import { until } from "../tools/until.ts";
import { definition, objectOf } from "./definitions.ts";
import { fieldCases } from "./fields.ts";
import { type Json, kinds, mutated } from "./objects.ts";

const { OBJECTS = "1000", DEFINITIONS = "300", SEED = "1", FIELDS } = process.env;
const dice = new Dice(Number(SEED));
const least = 0.99;

const [embedded, real] = await Promise.all([startTarget("embedded"), startTarget("real")]);
const clients = [new Client(embedded.access), new Client(real.access)] as const;

interface Tally {
  sent: number;
  same: number;
  warned: number;
  silent: number;
  stored: number;
}
const rows = new Map<string, Tally>();

try {
  for (const client of clients) await client.post("/api/v1/namespaces", { metadata: { name: "parity" } });
  for (let number = 0; number < Number(OBJECTS); number++) {
    const kind = kinds[number % kinds.length];
    if (!kind) continue;
    const { apiVersion, plural } = kind;
    const base = { apiVersion, kind: kind.kind, metadata: { name: "a", labels: { a: "b" } }, ...dice.pick(kind.bases) };
    const { object, change } = number < kinds.length ? { object: base, change: "as it is" } : mutated(dice, base);
    await compare(kind.kind, `${rootOf(apiVersion)}/namespaces/parity/${plural}`, object, change);
  }
  for (let number = 0; number < Number(DEFINITIONS); number++) await compareDefinition(number);
  for (const kind of kinds) if (FIELDS === "all" || FIELDS === kind.kind) await compareFields(kind);
  process.exitCode = report() ? 0 : 1;
} finally {
  await Promise.all(clients.map((client) => client.close()));
  await Promise.all([embedded.close(), real.close()]);
}

/** Compares the verdicts on each field of a kind, sixteen at a time. */
async function compareFields({ apiVersion, kind, plural, bases }: (typeof kinds)[number]): Promise<void> {
  const where = `${rootOf(apiVersion)}/namespaces/parity/${plural}`;
  // A pod with few fields, because one that is set already hides what another needs.
  const base = kind === "Pod" ? { spec: { containers: [{ name: "c", image: "i" }] } } : bases[0];
  const whole = { apiVersion, kind, metadata: { name: "a", labels: { a: "b" } }, ...base };
  const batch: Promise<boolean>[] = [];
  for (const { object, change } of fieldCases(apiVersion, kind, whole)) {
    // The pods of a template have the rules of a Pod.
    if (/emplate\.spec\.(?!restartPolicy)/.test(change.split(" ")[0] ?? "") && kind !== "Pod") continue;
    batch.push(compare(`${kind}, by field`, where, object, change));
    if (batch.length === 16) await Promise.all(batch.splice(0));
  }
  await Promise.all(batch);
}

/** Compares the verdict on a definition. If both accept it, creates it, and compares objects of it as well. */
async function compareDefinition(number: number): Promise<void> {
  const made = definition(dice, number);
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const isAccepted = await compare("CustomResourceDefinition", path, made, JSON.stringify(made.spec));
  const objects = [1, 2, 3].map(() => objectOf(dice, made));
  const { group, scope, names, versions } = made.spec as {
    group: string;
    scope: string;
    names: { plural: string };
    versions: { name: string; served: boolean }[];
  };
  if (!isAccepted || versions[0]?.served !== true) return;
  const where = `/apis/${group}/${versions[0].name}${scope === "Cluster" ? "" : "/namespaces/parity"}/${names.plural}`;
  for (const client of clients) {
    await client.reply("POST", path, { body: made });
    await until("the kind is served", 5_000, async () => (await client.reply("GET", where)).status === 200);
  }
  const [version] = versions;
  for (const object of objects)
    await compare("its objects", where, object, `${JSON.stringify(object.spec)} of ${JSON.stringify(version)}`);
  for (const client of clients) await client.reply("DELETE", `${path}/${names.plural}.${group}`);
}

/** Sends an object to both as a dry run, and counts the answers. Returns whether both accept it. */
async function compare(kind: string, path: string, body: Json, change: string): Promise<boolean> {
  const send = (client: Client) =>
    client.reply("POST", path, { query: { dryRun: "All", fieldValidation: "Strict" }, body });
  const [ours, theirs] = await Promise.all([send(clients[0]), send(clients[1])]);
  const row = rows.get(kind) ?? { sent: 0, same: 0, warned: 0, silent: 0, stored: 0 };
  rows.set(kind, row);
  row.sent++;
  const [isOurs, isTheirs] = [ours.status < 300, theirs.status < 300];
  if (isOurs === isTheirs) {
    row.same++;
    if (!isOurs) return false;
    const difference = differenceOf(storedOf(ours), storedOf(theirs));
    if (difference === undefined) return true;
    row.stored++;
    print("STORED", kind, change, difference);
    return true;
  }
  const isWarned = ours.headers.warning !== undefined;
  if (isOurs && isWarned) row.warned++;
  else if (isOurs) row.silent++;
  const what = isOurs ? (isWarned ? "WARNED" : "SILENT YES") : "FALSE NO";
  print(what, kind, change, isOurs ? messageOf(theirs) : messageOf(ours));
  return false;
}

function print(what: string, kind: string, change: string, message: string): void {
  process.stdout.write(`${what} ${kind}: ${change}: ${message}\n`);
}

function messageOf({ status, body, text }: Reply): string {
  return `${status} ${String(body.message ?? text).slice(0, 300)}`;
}

function rootOf(apiVersion: string): string {
  return apiVersion === "v1" ? "/api/v1" : `/apis/${apiVersion}`;
}

/** An answer's object without fields that differ from server to server. */
function storedOf({ body }: Reply): unknown {
  const copy = structuredClone(body) as Json;
  const {
    uid: _,
    resourceVersion: __,
    creationTimestamp: ___,
    managedFields: ____,
    ...metadata
  } = body.metadata as unknown as Json;
  copy.metadata = metadata;
  delete copy.status;
  const spec = copy.spec as Json | undefined;
  for (const field of ["clusterIP", "clusterIPs"]) if (spec?.[field] !== "None") delete spec?.[field];
  for (const port of (spec?.ports as Json[] | undefined) ?? []) delete port.nodePort;
  const text = JSON.stringify(copy).replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "UID");
  return JSON.parse(text.replaceAll(/kube-api-access-\w{5}/g, "kube-api-access-x"));
}

/** The first place at which two values differ, with both; `undefined` if they are equal. */
function differenceOf(ours: unknown, theirs: unknown, at = ""): string | undefined {
  if (JSON.stringify(ours) === JSON.stringify(theirs)) return undefined;
  const isBoth = [ours, theirs].every((each) => typeof each === "object" && each !== null);
  if (!isBoth)
    return `${at}: ${JSON.stringify(ours)?.slice(0, 100)} where the real one has ${JSON.stringify(theirs)?.slice(0, 100)}`;
  const [a, b] = [ours as Json, theirs as Json];
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const found = differenceOf(a[key], b[key], `${at}.${key}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Prints the table. Returns whether the goal is met. */
function report(): boolean {
  const all = [...rows.values()];
  const sum = (field: keyof Tally) => all.reduce((total, row) => total + row[field], 0);
  const total: Tally = {
    sent: sum("sent"),
    same: sum("same"),
    warned: sum("warned"),
    silent: sum("silent"),
    stored: sum("stored"),
  };
  process.stdout.write(
    `\nseed ${SEED}\n\n| kind | sent | same verdict | accepted with a warning | silent yes | false no | stored otherwise |\n`,
  );
  process.stdout.write("| --- | --- | --- | --- | --- | --- | --- |\n");
  for (const [kind, { sent, same, warned, silent, stored }] of [...rows, ["all", total] as const])
    process.stdout.write(
      `| ${kind} | ${sent} | ${same} | ${warned} | ${silent} | ${sent - same - warned - silent} | ${stored} |\n`,
    );
  return total.same >= least * total.sent && total.silent === 0;
}
