// npm run test:e2e: tests the image and the chart on a complete cluster with real pods. WATCHFIRE_CLUSTER names the tool that
// creates the cluster, see deploy/DESIGN.md. With `--scaling` (npm run bench:fleet) it measures a fleet instead. Without such a
// tool, it prints so and exits with status 0.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildImages } from "./images.ts";

const root = join(import.meta.dirname, "../..");
const tool = process.env.WATCHFIRE_CLUSTER ?? join(root, "../shared/cluster/cluster");
const say = (line: string) => process.stdout.write(`${line}\n`);

const reason = missing();
if (reason) {
  say(`test:e2e did not run: ${reason}`);
  process.exit(0);
}
const folder = mkdtempSync(join(tmpdir(), "watchfire-e2e-"));
process.env.WATCHFIRE_CLUSTER = tool;
process.env.WATCHFIRE_CLUSTER_FOLDER = folder;
let status = 2;
// A signal to this process also stops its children; the cluster is still removed.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => undefined);
try {
  call(tool, "up", folder);
  await buildImages(tool, folder);
  const vitest = join(root, "node_modules/.bin/vitest");
  const given = process.argv.slice(2);
  const scenarios = given.includes("--scaling") ? "scaling/vitest.config.ts" : "vitest.config.ts";
  const config = join(import.meta.dirname, scenarios);
  const args = ["exec", folder, vitest, "run", "--config", config, ...given.filter((arg) => arg !== "--scaling")];
  status = spawnSync(tool, args, { stdio: "inherit", cwd: root }).status ?? 2;
} finally {
  spawnSync(tool, ["down", folder], { stdio: "inherit" });
  if (status === 0) rmSync(folder, { recursive: true, force: true });
  else say(`the cluster's logs are in ${folder}`);
}
process.exit(status);

/** The reason why no cluster can be created here; `undefined` if one can. */
function missing(): string | undefined {
  if (!existsSync(tool)) return `${tool} is not there; WATCHFIRE_CLUSTER names a tool that makes a cluster`;
  if (process.getuid?.() !== 0) return "a cluster with real pods is made by root alone";
  const setup = spawnSync(tool, ["setup"], { stdio: ["ignore", "ignore", "inherit"] });
  return setup.status === 0 ? undefined : `\`${tool} setup\` failed with status ${setup.status ?? setup.signal}`;
}

function call(command: string, ...args: string[]): void {
  const { status, signal } = spawnSync(command, args, { stdio: "inherit" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${status ?? signal}`);
}
