import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { makeCertificates } from "../../runtime/cluster/certificates.ts";
import { connectDirect } from "../../runtime/kube/direct.ts";
import { ExecPlugin } from "../../runtime/kube/exec-plugin.ts";
import { connectKubeconfig } from "../../runtime/kube/kubeconfig.ts";
import type { ExecSpec } from "../../runtime/kube/kubeconfig-file.ts";
import { TlsFiles } from "../../runtime/kube/tls-files.ts";
import { TokenFile } from "../../runtime/kube/token-file.ts";
import { ScriptedServer } from "../faults/api-server.ts";
import { VirtualClock } from "../virtual-clock.ts";

const folder = mkdtempSync(join(tmpdir(), "watchfire-credentials-"));
afterAll(() => rmSync(folder, { recursive: true }));
const file = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};

test("a token file is trimmed, read again after a minute, and its last token kept while it is missing", async () => {
  const clock = new VirtualClock();
  const path = file("token", "first\n");
  const token = new TokenFile(path, clock);
  expect(await token.token()).toBe("first");
  writeFileSync(path, "second\n");
  await clock.advance(59_999);
  expect(await token.token()).toBe("first");
  await clock.advance(1);
  expect(await token.token()).toBe("second");
  rmSync(path);
  token.forget();
  expect(await token.token()).toBe("second");
  writeFileSync(path, "\n");
  await clock.advance(60_000);
  expect(await token.token()).toBe("second");
});

test("until a token file can be read, the token that stands beside it counts", async () => {
  const clock = new VirtualClock();
  const path = join(folder, "late");
  const token = new TokenFile(path, clock, "static");
  expect(await token.token()).toBe("static");
  writeFileSync(path, "filed\n");
  await clock.advance(60_000);
  expect(await token.token()).toBe("filed");
});

test("a certificate that rotates is used at once, and not before its key has come", async () => {
  const [first, second] = [await makeCertificates(Date.now()), await makeCertificates(Date.now())];
  const [crt, key] = [file("rotating.crt", first.certificate), file("rotating.key", first.key)];
  const source = (path: string) => ({ data: Buffer.alloc(0), file: path, origin: "" });
  const tls = new TlsFiles({
    client: { certificate: source(crt), key: source(key) },
    serverName: "",
    insecure: false,
  });
  const before = await tls.read();
  expect(before).toEqual({ cert: first.certificate, key: first.key });
  expect(await tls.read()).toBe(before);
  writeFileSync(crt, second.certificate);
  expect(await tls.read()).toBe(before);
  rmSync(key);
  expect(await tls.read()).toBe(before);
  writeFileSync(key, second.key);
  expect(await tls.read()).toEqual({ cert: second.certificate, key: second.key });
});

test("a token file that was never there is a failure, not an empty token", async () => {
  await expect(new TokenFile(join(folder, "none"), new VirtualClock()).token()).rejects.toThrow("none");
});

/** A plugin that counts its runs in a file and returns credentials that expire at `ends`. */
function plugin(name: string, body: string, more: Partial<ExecSpec> = {}): ExecSpec {
  const script = file(
    `${name}.cjs`,
    `require("fs").appendFileSync(${JSON.stringify(join(folder, `${name}.runs`))}, "x");\n${body}`,
  );
  return {
    apiVersion: "client.authentication.k8s.io/v1",
    command: process.execPath,
    args: [script],
    env: [],
    installHint: "",
    provideClusterInfo: false,
    interactiveMode: "Never",
    ...more,
  };
}
const runs = (name: string): number => readFileSync(join(folder, `${name}.runs`), "utf8").length;
const print = (status: string) =>
  `process.stdout.write(JSON.stringify({kind:"ExecCredential",apiVersion:"client.authentication.k8s.io/v1",status:${status}}));`;

test("however many requests wait, a plugin runs once", async () => {
  const exec = new ExecPlugin(plugin("single", print('{token:"t"}')), undefined, {}, new VirtualClock());
  const all = await Promise.all(Array.from({ length: 10 }, () => exec.credential()));
  expect(new Set(all.map((each) => each.token))).toEqual(new Set(["t"]));
  expect(runs("single")).toBe(1);
});

test("a plugin may leave out the kind, as kubectl allows", async () => {
  const answer = '{apiVersion:"client.authentication.k8s.io/v1",status:{token:"t"}}';
  const script = `process.stdout.write(JSON.stringify(${answer}));`;
  const exec = new ExecPlugin(plugin("kindless", script), undefined, {}, new VirtualClock());
  expect(await exec.credential()).toMatchObject({ token: "t" });
});

test("a plugin runs again a minute before its credentials end, or when they were refused", async () => {
  const clock = new VirtualClock();
  const ends = new Date(clock.now() + 300_000).toISOString();
  const exec = new ExecPlugin(
    plugin("renew", print(`{token:"t",expirationTimestamp:"${ends}"}`)),
    undefined,
    {},
    clock,
  );
  await exec.credential();
  await clock.advance(239_000);
  await exec.credential();
  expect(runs("renew")).toBe(1);
  await clock.advance(2000);
  await exec.credential();
  expect(runs("renew")).toBe(2);
  exec.forget();
  await exec.credential();
  expect(runs("renew")).toBe(3);
});

test("a plugin that hangs, and what it started with it, is given up after 30 s", async () => {
  const clock = new VirtualClock();
  const spec = plugin(
    "hangs",
    'require("child_process").spawnSync(process.execPath, ["-e", "setTimeout(() => {}, 5000)"], { stdio: "inherit" });',
  );
  const waiting = new ExecPlugin(spec, undefined, {}, clock).credential().catch((each: Error) => each);
  while (!existsSync(join(folder, "hangs.runs"))) await clock.advance(0);
  await clock.advance(29_999);
  const began = performance.now();
  await clock.advance(1);
  expect(String(await waiting)).toMatch(/WF_KUBE_EXEC_PLUGIN.*killed after 30 s/);
  expect(performance.now() - began).toBeLessThan(2_000);
  expect(clock.timers).toBe(0);
});

test("a plugin that prints without end is told from one that hangs", async () => {
  const spec = plugin("floods", 'for (;;) require("fs").writeSync(1, "x".repeat(65536));');
  const error = await new ExecPlugin(spec, undefined, {}, new VirtualClock()).credential().catch((each: Error) => each);
  expect(String(error)).toContain("MAXBUFFER");
});

test("a plugin that fails says so with its own words, and never with its output", async () => {
  const fails = new ExecPlugin(
    plugin("fails", 'console.log("secret"); console.error("not signed in"); process.exit(3);'),
    undefined,
    {},
    new VirtualClock(),
  );
  await expect(fails.credential()).rejects.toMatchObject({
    code: "WF_KUBE_EXEC_PLUGIN",
    message: expect.stringMatching(/exit status 3.*not signed in/),
  });
  const garbled = new ExecPlugin(plugin("garbled", 'console.log("secret");'), undefined, {}, new VirtualClock());
  const error = await garbled.credential().catch((each: Error) => each);
  expect(String(error)).toContain("did not print an ExecCredential");
  expect(String(error)).not.toContain("secret");
});

test("where a plugin is not there, its kubeconfig's hint says how to get it, and does nothing to the terminal", async () => {
  const spec = plugin("absent", "", { command: join(folder, "absent"), installHint: "brew install \u001b[2Jabsent" });
  const error = await new ExecPlugin(spec, undefined, {}, new VirtualClock()).credential().catch((each: Error) => each);
  expect(error).toMatchObject({ code: "WF_KUBE_EXEC_PLUGIN", hint: "brew install \\u001b[2Jabsent" });
});

const kubeconfig = (server: string, user: object, more: object = {}) =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "here",
    clusters: [{ name: "c", cluster: { server } }],
    users: [{ name: "u", user }],
    contexts: [{ name: "here", context: { cluster: "c", user: "u", namespace: "team-a" } }],
    ...more,
  });

test("every request says which program and version sends it", async () => {
  const server = await ScriptedServer.start();
  const kubeconfig = {
    clusters: [{ name: "c", cluster: { server: server.url } }],
    contexts: [{ name: "x", context: { cluster: "c", user: "" } }],
    "current-context": "x",
  };
  const { transport } = await connectKubeconfig({ file: file("agent", JSON.stringify(kubeconfig)), environment: {} });
  for (const each of [transport, connectDirect({ server: server.url })]) {
    server.script(
      () => true,
      (exchange) => exchange.reply(200, "{}"),
    );
    await each.json({ method: "GET", path: "/api" });
    await each.close();
  }
  const said = server.requests.map(({ headers }) => headers.get("user-agent"));
  expect(said).toEqual([expect.stringMatching(/^watchfire\/\d+\.\d+\.\d+/), said[0]]);
  await server.close();
});

test("a context that is not there is the user's mistake, and those that are there are named", async () => {
  const path = file("config", kubeconfig("http://127.0.0.1:1", {}));
  await expect(connectKubeconfig({ file: path, context: "there", environment: {} })).rejects.toMatchObject({
    code: "WF_KUBE_CONFIG",
    blame: "user",
    hint: "name one of: here",
  });
});

test("with nothing named ~/.kube/config is taken, and KUBECONFIG before it", async () => {
  const named = file("named", kubeconfig("http://127.0.0.1:1", {}));
  const home = join(folder, "home");
  mkdirSync(join(home, ".kube"), { recursive: true });
  copyFileSync(file("usual", kubeconfig("http://127.0.0.1:2", {})), join(home, ".kube/config"));
  for (const [environment, server] of [
    [{ HOME: home }, "http://127.0.0.1:2"],
    [{ HOME: home, KUBECONFIG: named }, "http://127.0.0.1:1"],
  ] as const) {
    const { transport } = await connectKubeconfig({ environment });
    expect(transport.description).toContain(server);
    await transport.close();
  }
});

test("without a cluster to connect to, the ways to name one are said", async () => {
  await expect(connectKubeconfig({ environment: { HOME: join(folder, "nowhere") } })).rejects.toMatchObject({
    code: "WF_KUBE_CONFIG",
    message: expect.stringContaining("--kubeconfig FILE"),
  });
});
