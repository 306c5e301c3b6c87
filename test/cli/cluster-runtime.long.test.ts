import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { delimiter, dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { folderOf } from "../tools/folder.ts";
import { until } from "../tools/until.ts";
import { bin, type Result } from "./run.ts";

const token = "t".repeat(43);

/** A request to a replica. */
interface Asked {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly reason: string | undefined;
}

/** A replica's endpoints, on loopback. */
async function replica(role: "active" | "standby", more: object = {}) {
  const asked: Asked[] = [];
  const server = createServer(({ url = "", headers }, response) => {
    const reason = headers["watchfire-reason"];
    asked.push({ path: url, authorization: headers.authorization, reason: reason && String(reason) });
    const answers: Record<string, object> = {
      "/status": { role, functions: [], sources: [], ...more },
      "/functions/greet/pause": { changed: true, says: `greet is paused by the ${role}` },
      "/functions/logs?after=0&wait=0": { lines: [] },
    };
    const answer = answers[url];
    if (answer) response.end(JSON.stringify(answer));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { asked, port: (server.address() as AddressInfo).port };
}

const pod = (name: string, namespace = "watchfire", release = "events", isReady = true) => ({
  metadata: { name, namespace, labels: { "app.kubernetes.io/instance": release } },
  spec: {
    serviceAccountName: "events",
    containers: [{ name: "executor" }, { name: "watchfire", ports: [{ name: "http", containerPort: 9464 }] }],
  },
  status: { phase: "Running", conditions: [{ type: "Ready", status: isReady ? "True" : "False" }] },
});

/** A cluster as kubectl shows it. */
interface Scene {
  readonly pods: readonly object[];
  /** Commands that are refused; `all`: pods of all namespaces. */
  readonly forbidden?: readonly string[];
  /** The endpoints' ports, by pod. */
  readonly ports?: Readonly<Record<string, number>>;
  /** The kubeconfig's user. Default: there is no kubeconfig. */
  readonly user?: object;
}

function onCluster({ user, ...scene }: Scene) {
  const folder = folderOf({});
  const file = join(folder, "scene.json");
  writeFileSync(file, JSON.stringify({ ...scene, token }));
  symlinkSync(join(import.meta.dirname, "fake-kubectl.js"), join(folder, "kubectl"));
  symlinkSync(bin, join(folder, "kubectl-watchfire"));
  const PATH = [folder, dirname(process.execPath)].join(delimiter);
  const kubeconfig = join(folder, "kubeconfig");
  if (user) writeFileSync(kubeconfig, kubeconfigWith(user));
  const env = { PATH, FAKE_KUBECTL: file, KUBECONFIG: kubeconfig };
  const start = (program: string, words: readonly string[]): ChildProcess =>
    spawn(
      program === "plugin" ? join(folder, "kubectl-watchfire") : process.execPath,
      program === "plugin" ? words : [bin, ...words],
      { env, cwd: folder },
    );
  const calls = (): { pid: number; words: string[] }[] => {
    const log = join(folder, "calls.jsonl");
    if (!existsSync(log)) return [];
    return readFileSync(log, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  };
  return {
    start,
    calls,
    run: async (program: "plugin" | "watchfire", ...words: string[]): Promise<Result> => {
      const child = start(program, words);
      let [stdout, stderr] = ["", ""];
      child.stdout?.on("data", (text) => (stdout += text));
      child.stderr?.on("data", (text) => (stderr += text));
      const [status] = await once(child, "close");
      return { status, stdout, stderr };
    },
    /** Waits until nothing is forwarded. */
    allEnded: () => until("kubectl ends", 10_000, async () => calls().every(({ pid }) => !isAlive(pid))),
  };
}

/** A kubeconfig whose context is in the namespace `own`. */
const kubeconfigWith = (user: object): string =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server: "https://127.0.0.1:1" } }],
    users: [{ name: "u", user }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u", namespace: "own" } }],
    "current-context": "x",
  });

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

test("the plugin finds the runtime by its labels, asks the replica that works, and ends what it forwards", async () => {
  const [standby, active] = [await replica("standby"), await replica("active")];
  const pods = [pod("events-0"), pod("events-1"), pod("events-2", undefined, undefined, false)];
  const { run, calls, allEnded } = onCluster({ pods, ports: { "events-0": standby.port, "events-1": active.port } });
  expect(await run("plugin", "pause", "greet")).toEqual({
    status: 0,
    stdout: "greet is paused by the active\n",
    stderr: "runtime: pod events-1 in namespace watchfire\n",
  });
  expect(standby.asked).toEqual([{ path: "/status" }]);
  expect(active.asked.at(-1)).toEqual({ path: "/functions/greet/pause", authorization: `Bearer ${token}` });
  expect(calls().map(({ words }) => words.slice(0, 4))).toEqual([
    ["get", "pods", "--all-namespaces", "--selector=app.kubernetes.io/name=watchfire"],
    ["port-forward", "--namespace=watchfire", "--address=127.0.0.1", "pod/events-0"],
    ["port-forward", "--namespace=watchfire", "--address=127.0.0.1", "pod/events-1"],
    ["exec", "--namespace=watchfire", "events-1", "--container=watchfire"],
  ]);
  await allEnded();
});

test("status needs no token, and -n, --release, --context and --kubeconfig name the runtime for `watchfire` as well", async () => {
  const active = await replica("active");
  const pods = [pod("a-0", "one", "a"), pod("b-0", "one", "b"), pod("a-0", "two", "a")];
  const { run, calls } = onCluster({ pods, forbidden: ["exec"], ports: { "b-0": active.port } });
  const words = ["-n", "one", "--release", "b", "--context", "prod", "--kubeconfig", "/tmp/k"];
  expect(await run("watchfire", "status", ...words)).toMatchObject({ status: 0, stdout: /active/ });
  expect(calls()[0]?.words.slice(0, 5)).toEqual([
    "--kubeconfig=/tmp/k",
    "--context=prod",
    "get",
    "pods",
    "--namespace=one",
  ]);
});

test("several runtimes are refused with how each is named", async () => {
  const { run } = onCluster({ pods: [pod("a-0", "one", "a"), pod("b-0", "two", "b"), pod("b-1", "two", "b")] });
  const { status, stderr } = await run("plugin", "status");
  expect(status).toBe(1);
  expect(stderr).toMatch(/^WF_CLI_USAGE: .*several runtimes.*-n one --release a, -n two --release b\n/);
});

test("a user who may not list all pods has the context's namespace looked into", async () => {
  const active = await replica("active");
  const { run } = onCluster({
    pods: [pod("a-0", "own"), pod("b-0", "two")],
    forbidden: ["all"],
    ports: { "a-0": active.port },
  });
  expect(await run("plugin", "status")).toMatchObject({ status: 0, stderr: /pod a-0 in namespace own/ });
});

test.each([
  ["exec", /WF_CLI_FORWARD: kubectl exec: Error from server \(Forbidden\): exec is forbidden; .*pods\/exec/],
  ["port-forward", /WF_CLI_FORWARD: kubectl port-forward: Error from server \(Forbidden\): port-forward is forbidden/],
  ["get", /WF_CLI_FORWARD: kubectl get: Error from server \(Forbidden\): get is forbidden/],
])("what kubectl refuses is said: %s", async (command, said) => {
  const active = await replica("active");
  const scene = { pods: [pod("a-0")], forbidden: [command], ports: { "a-0": active.port } };
  const { run, allEnded } = onCluster(scene);
  const { status, stderr } = await run("plugin", "pause", "greet");
  expect([status, stderr]).toEqual([1, expect.stringMatching(said)]);
  await allEnded();
});

test("a pod that does not run has another message than a cluster without a runtime", async () => {
  const pending = { ...pod("a-0"), status: { phase: "Pending" } };
  const [one, empty] = [onCluster({ pods: [pending] }), onCluster({ pods: [] })];
  expect((await one.run("plugin", "status")).stderr).toContain("no pod of the runtime runs: a-0 is Pending");
  expect((await empty.run("watchfire", "status", "-n", "x")).stderr).toMatch(
    /has no pod of a runtime.*-n x.*helm list -A/,
  );
});

test("a runtime here and one in a cluster are not named at once, and the plugin takes --url", async () => {
  const active = await replica("active");
  const { run, calls } = onCluster({ pods: [] });
  const url = `http://127.0.0.1:${active.port}`;
  expect((await run("watchfire", "status", "--url", url, "-n", "x")).stderr).toMatch(
    /WF_CLI_USAGE.*--url.*--namespace/,
  );
  expect((await run("plugin", "status", "--url", url)).status).toBe(0);
  expect(calls()).toEqual([]);
});

test.each(["SIGINT", "SIGTERM"] as const)("what is forwarded for `logs --follow` ends with %s", async (signal) => {
  const active = await replica("active");
  const { start, calls, allEnded } = onCluster({ pods: [pod("a-0")], ports: { "a-0": active.port } });
  const child = start("watchfire", ["logs", "--follow", "-n", "watchfire"]);
  onTestFinished(() => void child.kill("SIGKILL"));
  await until("it follows", 10_000, async () => active.asked.some(({ path }) => path.endsWith("wait=10")));
  expect(calls().filter(({ pid }) => isAlive(pid))).toHaveLength(1);
  const ended = once(child, "close");
  child.kill(signal);
  expect(await ended).toEqual([0, null]);
  await allEnded();
});

const words = ["pause", "greet", "-n", "watchfire", "--reason", "it is late – 夜"];
const commandsOf = (calls: readonly { words: string[] }[]) => calls.map(({ words: [first] }) => first);

test("a runtime that reviews tokens is asked with the kubeconfig's own, without pods/exec, and told the reason", async () => {
  const active = await replica("active", { tokenReview: true });
  const scene = { pods: [pod("events-0")], ports: { "events-0": active.port }, forbidden: ["exec"] };
  const { run, calls } = onCluster({ ...scene, user: { token: "my-own" } });
  expect(await run("plugin", ...words)).toMatchObject({ status: 0, stdout: "greet is paused by the active\n" });
  expect(active.asked.at(-1)).toEqual({
    path: "/functions/greet/pause",
    authorization: "Bearer my-own",
    reason: encodeURIComponent("it is late – 夜"),
  });
  expect(commandsOf(calls())).toEqual(["get", "port-forward"]);
});

test("an exec plugin's token is sent as well", async () => {
  const active = await replica("active", { tokenReview: true });
  const credential = {
    apiVersion: "client.authentication.k8s.io/v1",
    kind: "ExecCredential",
    status: { token: "fresh" },
  };
  const exec = {
    apiVersion: credential.apiVersion,
    command: process.execPath,
    args: ["-e", `process.stdout.write(${JSON.stringify(JSON.stringify(credential))})`],
    interactiveMode: "Never",
  };
  const { run } = onCluster({ pods: [pod("events-0")], ports: { "events-0": active.port }, user: { exec } });
  expect(await run("plugin", ...words)).toMatchObject({ status: 0 });
  expect(active.asked.at(-1)?.authorization).toBe("Bearer fresh");
});

test("the user's token is sent to no runtime that does not review tokens, and to none in a namespace that nobody named", async () => {
  const [old, found] = [await replica("active"), await replica("active", { tokenReview: true })];
  const user = { token: "my-own" };
  const first = onCluster({ pods: [pod("events-0")], ports: { "events-0": old.port }, user });
  expect(await first.run("plugin", ...words)).toMatchObject({ status: 0 });
  expect(old.asked.at(-1)?.authorization).toBe(`Bearer ${token}`);
  const second = onCluster({ pods: [pod("events-0")], ports: { "events-0": found.port }, user });
  const { status, stderr } = await second.run("plugin", "pause", "greet");
  expect([status, stderr]).toEqual([1, expect.stringMatching(/WF_CLI_FORWARD.*not named.*name it with -n watchfire/)]);
  expect(found.asked.flatMap(({ authorization }) => authorization ?? [])).toEqual([]);
});

test.each([
  ["a name and a password", { username: "ada", password: "p" }, /logs in with a name and a password/],
  ["another user to act as", { token: "my-own", as: "ada" }, /acts as another user/],
  [
    "a plugin that gives a certificate",
    { exec: { apiVersion: "client.authentication.k8s.io/v1", command: "nowhere", interactiveMode: "Never" } },
    /nowhere/,
  ],
])(
  "a kubeconfig with %s has no token: the pod's own is read, or the error names --as-account",
  async (_, user, why) => {
    const active = await replica("active", { tokenReview: true });
    const scene = { pods: [pod("events-0")], ports: { "events-0": active.port }, user };
    expect(await onCluster(scene).run("plugin", ...words)).toMatchObject({ status: 0 });
    expect(active.asked.at(-1)?.authorization).toBe(`Bearer ${token}`);
    const { status, stderr } = await onCluster({ ...scene, forbidden: ["exec"] }).run("plugin", ...words);
    expect(status).toBe(1);
    expect(stderr).toMatch(why);
    expect(stderr).toMatch(/WF_CLI_FORWARD.*pass --as-account NAME/);
  },
);

test("--as-account asks with a token of a ServiceAccount that is for this runtime alone", async () => {
  const active = await replica("active", { tokenReview: true });
  const scene = { pods: [pod("events-0")], ports: { "events-0": active.port }, forbidden: ["exec"] };
  const { run, calls } = onCluster(scene);
  expect(await run("plugin", ...words, "--as-account", "people/oncall")).toMatchObject({ status: 0 });
  expect(active.asked.at(-1)?.authorization).toBe("Bearer a-token-of-the-account");
  expect(calls().at(-1)?.words).toEqual([
    "create",
    "token",
    "--namespace=people",
    "--audience=watchfire.dev/watchfire/events",
    "--duration=3600s",
    "oncall",
  ]);
  const wrong = await run("plugin", ...words, "--as-account=--help");
  expect(wrong).toMatchObject({ status: 1, stderr: expect.stringMatching(/WF_CLI_USAGE/) });
  const path = await run("plugin", ...words, "--as-account", "a/b/c");
  expect(path).toMatchObject({ status: 1, stderr: expect.stringMatching(/WF_CLI_USAGE.*NAME or NAMESPACE\/NAME/) });
});
