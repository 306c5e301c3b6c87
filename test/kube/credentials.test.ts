import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { connectDirect } from "../../runtime/kube/direct.ts";
import { ExecPlugin, type ExecSpec } from "../../runtime/kube/exec-plugin.ts";
import { connectKubeconfig } from "../../runtime/kube/kubeconfig.ts";
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

test("a token file that was never there is a failure, not an empty token", async () => {
  await expect(new TokenFile(join(folder, "none"), new VirtualClock()).token()).rejects.toThrow("none");
});

/** A plugin that counts its runs in a file and gives credentials that end at `ends`. */
function plugin(name: string, body: string, more: Partial<ExecSpec> = {}): ExecSpec {
  const script = file(
    `${name}.cjs`,
    `require("fs").appendFileSync(${JSON.stringify(join(folder, `${name}.runs`))}, "x");\n${body}`,
  );
  return { apiVersion: "client.authentication.k8s.io/v1", command: process.execPath, args: [script], env: [], ...more };
}
const runs = (name: string): number => readFileSync(join(folder, `${name}.runs`), "utf8").length;
const print = (status: string) =>
  `process.stdout.write(JSON.stringify({kind:"ExecCredential",apiVersion:"client.authentication.k8s.io/v1",status:${status}}));`;
const cluster = { server: "https://cluster:6443" };

test("however many requests wait, a plugin runs once, and is told of the cluster it is for", async () => {
  const spec = plugin(
    "single",
    print("{token: JSON.parse(process.env.KUBERNETES_EXEC_INFO).spec.cluster.server + process.env.MORE}"),
    {
      provideClusterInfo: true,
      env: [{ name: "MORE", value: "!" }],
    },
  );
  const exec = new ExecPlugin(spec, cluster, {}, new VirtualClock());
  const all = await Promise.all(Array.from({ length: 10 }, () => exec.credential()));
  expect(new Set(all.map((each) => each.token))).toEqual(new Set(["https://cluster:6443!"]));
  expect(runs("single")).toBe(1);
});

test("a plugin runs again a minute before its credentials end, or when they were refused", async () => {
  const clock = new VirtualClock();
  const ends = new Date(clock.now() + 300_000).toISOString();
  const exec = new ExecPlugin(plugin("renew", print(`{token:"t",expirationTimestamp:"${ends}"}`)), cluster, {}, clock);
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
  const waiting = new ExecPlugin(spec, cluster, {}, clock).credential().catch((each: Error) => each);
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
  const error = await new ExecPlugin(spec, cluster, {}, new VirtualClock()).credential().catch((each: Error) => each);
  expect(String(error)).toContain("MAXBUFFER");
});

test("a plugin that fails says so with its own words, and never with its output", async () => {
  const fails = new ExecPlugin(
    plugin("fails", 'console.log("secret"); console.error("not signed in"); process.exit(3);'),
    cluster,
    {},
    new VirtualClock(),
  );
  await expect(fails.credential()).rejects.toMatchObject({
    code: "WF_KUBE_EXEC_PLUGIN",
    message: expect.stringMatching(/exit status 3.*not signed in/),
  });
  const garbled = new ExecPlugin(plugin("garbled", 'console.log("secret");'), cluster, {}, new VirtualClock());
  const error = await garbled.credential().catch((each: Error) => each);
  expect(String(error)).toContain("did not print an ExecCredential");
  expect(String(error)).not.toContain("secret");
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

async function authorizationOf(user: object): Promise<string | undefined> {
  const server = await ScriptedServer.start();
  server.script(
    () => true,
    (each) => each.reply(200, "{}"),
  );
  const connection = await connectKubeconfig({ file: file("config", kubeconfig(server.url, user)), environment: {} });
  await connection.transport.json({ method: "GET", path: "/api" });
  await connection.transport.close();
  await server.close();
  expect(connection).toMatchObject({ context: "here", defaultNamespace: "team-a" });
  return server.requests[0]?.headers.get("authorization");
}

test.each<[string, () => object, string]>([
  ["a token", () => ({ token: "plain" }), "Bearer plain"],
  [
    "a user and password",
    () => ({ username: "me", password: "pw" }),
    `Basic ${Buffer.from("me:pw").toString("base64")}`,
  ],
  ["a token file beside the kubeconfig", () => ({ tokenFile: basename(file("beside", "filed\n")) }), "Bearer filed"],
  ["an exec plugin", () => ({ exec: plugin("config", print('{token:"made\\n"}')) }), "Bearer made"],
])("a kubeconfig with %s signs requests with it", async (_what, user, expected) => {
  expect(await authorizationOf(user())).toBe(expected);
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

test("of several files in KUBECONFIG the first to name something wins, and missing ones are passed over", async () => {
  const server = await ScriptedServer.start();
  server.script(
    () => true,
    (each) => each.reply(200, "{}"),
  );
  const first = file("first", kubeconfig(server.url, { token: "first" }));
  const second = file("second", kubeconfig("http://127.0.0.1:1", { token: "second" }, { "current-context": "there" }));
  const environment = { KUBECONFIG: [join(folder, "nowhere"), first, second].join(":") };
  const connection = await connectKubeconfig({ environment });
  await connection.transport.json({ method: "GET", path: "/api" });
  expect(server.requests[0]?.headers.get("authorization")).toBe("Bearer first");
  await connection.transport.close();
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

test("a kubeconfig that acts as somebody else does so in all that it says of them", async () => {
  const server = await ScriptedServer.start();
  server.script(
    () => true,
    (each) => each.reply(200, "{}"),
  );
  const user = {
    token: "t",
    as: "jane",
    "as-uid": "u-1",
    "as-groups": ["dev", "ops"],
    "as-user-extra": { "Acme.com/Project": ["one"] },
  };
  const connection = await connectKubeconfig({ file: file("jane", kubeconfig(server.url, user)), environment: {} });
  await connection.transport.json({ method: "GET", path: "/api" });
  await connection.transport.close();
  await server.close();
  const request = server.requests[0];
  expect(request?.headers.get("impersonate-user")).toBe("jane");
  expect(request?.headers.get("impersonate-uid")).toBe("u-1");
  expect(request?.headers.get("impersonate-extra-acme.com%2fproject")).toBe("one");
  expect(request?.all("impersonate-group")).toEqual(["dev", "ops"]);
});

test("groups to act in without a user to act as are the user's mistake", async () => {
  const path = file("nobody", kubeconfig("http://127.0.0.1:1", { token: "t", "as-groups": ["system:masters"] }));
  await expect(connectKubeconfig({ file: path, environment: {} })).rejects.toMatchObject({ code: "WF_KUBE_CONFIG" });
});
