// Runs every command of runtime/docs/signing.md as it is written there.
import { execFile, spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { admin, cluster, createTeam } from "../scenarios/cluster.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import { writeFunction } from "../tools/installation.ts";
import { helmPath } from "../tools/kubectl.ts";
import { until } from "../tools/until.ts";

const root = resolve(import.meta.dirname, "../..");
const guide = readFileSync(join(root, "runtime/docs/signing.md"), "utf8");
const commands = [...guide.matchAll(/^\$ (.+)$/gm)].map(([, command]) => command ?? "");

test("the guide's commands make keys, deploy and build with them, and start runtimes that take it up", {
  timeout: 90_000,
}, async () => {
  const place = mkdtempSync(join(tmpdir(), "watchfire-guide-"));
  onTestFinished(() => rmSync(place, { recursive: true, force: true }));
  const programs = join(place, "bin");
  mkdirSync(programs);
  // `npx watchfire` runs this checkout. helm has no cluster here, so an upgrade only renders.
  const shims = {
    npx: `shift; exec ${process.execPath} ${join(root, "runtime/bin/watchfire.js")} "$@"`,
    helm: `shift; release="$1"; chart="${root}/$2"; shift 2; exec ${await helmPath()} template "$release" "$chart" $(printf '%s ' "$@" | sed s/--reset-then-reuse-values//)`,
    node: `exec ${process.execPath} "$@"`,
  };
  for (const [name, text] of Object.entries(shims)) {
    writeFileSync(join(programs, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(programs, name), 0o755);
  }
  const kubeconfig = join(place, "kubeconfig");
  const access = { url: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken };
  writeFileSync(kubeconfig, kubeconfigOf(access, "watchfire"));
  await admin.post("/api/v1/namespaces", { metadata: { name: "watchfire" } });
  const team = await createTeam();
  await writeFunction(join(place, "functions"), "greet", { watch: team.watch() });
  const env = { PATH: `${programs}:${process.env.PATH}`, HOME: place, KUBECONFIG: kubeconfig };
  const run = async (command: string) =>
    (await promisify(execFile)("sh", ["-ec", command], { cwd: place, env })).stdout;

  const ran: string[] = [];
  for (const command of commands.filter((each) => !each.includes("watchfire start"))) {
    const said = await run(command);
    ran.push(command.split(" ").slice(0, 3).join(" "));
    if (command.startsWith("helm")) expect(said).toContain("--trust=/etc/watchfire/trust/keys.pem");
    if (command.includes("deploy --functions")) expect(said).toMatch(/^greet +created/);
    if (/generateKeyPair|pubout/.test(command)) {
      expect(readFileSync(join(place, "watchfire.pub"), "utf8")).toContain("BEGIN PUBLIC KEY");
    }
  }
  expect(ran).toEqual([
    "openssl genpkey -algorithm",
    "openssl pkey -in",
    "node -e 'const",
    "npx watchfire deploy",
    "helm upgrade watchfire",
    "npx watchfire build",
    "npx watchfire validate",
  ]);

  const starts = commands.filter((each) => each.includes("watchfire start"));
  expect(starts).toHaveLength(2);
  for (const [no, start] of starts.entries()) {
    const more = `--listen 127.0.0.1:0 --data data-${no}`;
    const process_ = spawn("sh", ["-ec", `exec ${start} ${more}`], { cwd: place, env });
    onTestFinished(() => void process_.kill("SIGKILL"));
    let log = "";
    process_.stdout.on("data", (text) => (log += text));
    process_.stderr.on("data", (text) => (log += text));
    const signs = ['"ready"', ...(start.includes("--deployed") ? ['"deployed functions loaded"'] : [])];
    await until(`${start} is ready`, 30_000, async () => signs.every((sign) => log.includes(sign))).catch((cause) => {
      throw new Error(log, { cause });
    });
    expect(log).not.toMatch(/WF_DEPLOYED|WF_BUILD|no functions yet/);
    process_.kill("SIGKILL");
  }
});
