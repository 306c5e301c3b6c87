// The runtime in the form that an image contains.
import { execFile } from "node:child_process";
import { once } from "node:events";
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundleImage } from "../../deploy/image/bundle.ts";

const folder = mkdtempSync(join(tmpdir(), "watchfire-image-"));
const root = join(import.meta.dirname, "../..");
const notes = readFileSync(join(import.meta.dirname, "../../deploy/chart/templates/NOTES.txt"), "utf8");

beforeAll(() => bundleImage(folder));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("it can speak to NATS without a package beside it", async () => {
  const found = readdirSync(join(folder, "sandbox")).find((file) => file.startsWith("client-"));
  const { client } = await import(join(folder, "sandbox", found ?? ""));
  const { transport, jetstream, objects } = client;
  const used = [transport.connect, transport.headers, transport.credsAuthenticator, jetstream.jetstream, objects.Objm];
  expect(used.map((each) => typeof each)).toEqual(used.map(() => "function"));
});

test("its Node starts with the flags that the command gives it in a checkout", () => {
  const flagsOf = (file: string) => readFileSync(file, "utf8").split("\n", 1)[0]?.match(/--\S+/g);
  const inCheckout = flagsOf(join(import.meta.dirname, "../../runtime/bin/watchfire.js"));
  expect(inCheckout).not.toBeNull();
  expect(flagsOf(join(folder, "bin/watchfire.js"))).toEqual(inCheckout);
});

test("its thread reads source maps", async () => {
  const thread = new Worker(join(folder, "sandbox/positions/thread.js"));
  const source = JSON.stringify({ version: 3, sources: ["f.ts"], names: [], mappings: "AAAA" });
  thread.postMessage({ kind: "text", text: "    at app:///f/handler.js:1:1", map: 1, source, forget: [] });
  const [reply] = await once(thread, "message");
  await thread.terminate();
  expect(reply).toMatchObject({ text: "    at f.ts:1:1" });
});

/** The commands that query a running runtime, except `record`, which writes into a project. */
const asking = [
  ...["status", "support", "explain", "runs", "run", "logs", "redeliver"],
  ...["pause", "resume", "dead-letters", "slots", "console"],
];
/** The commands that containers of the chart's templates, and of the pods on the pages, run. */
const contained = globSync(["deploy/chart/templates/**/*.yaml", "deploy/chart/templates/*.tpl", "runtime/docs/*.md"], {
  cwd: root,
}).flatMap((file) =>
  [...readFileSync(join(root, file), "utf8").matchAll(/^ +args:(?: \[|\n +- )([a-z]+)/gm)].map(([, name = ""]) => name),
);

test("it has each command that the chart's notes and containers run, and each that asks a running runtime", async () => {
  const noted = [...notes.matchAll(/-c watchfire -- watchfire ([\w-]+)/g)].map(([, command = ""]) => command);
  expect(noted).toContain("slots");
  expect(new Set(contained)).toEqual(new Set(["start", "executor", "backup", "restore"]));
  for (const command of new Set([...noted, ...asking, ...contained])) {
    const help = promisify(execFile)(process.execPath, [join(folder, "bin/watchfire.js"), command, "--help"]);
    expect((await help).stdout).toContain(command);
  }
});
