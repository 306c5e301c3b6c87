import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { folderOf } from "../tools/folder.ts";
import { until } from "../tools/until.ts";
import { define, manifest, outcome, Session } from "./session.ts";

interface Kubeconfig {
  clusters: { cluster: { server: string; "certificate-authority-data": string } }[];
  users: { user: { token?: string; tokenFile?: string } }[];
}

/** Starts a cluster and returns the path of its kubeconfig, with a change applied. */
async function clusterWith(folder: string, change: (kubeconfig: Kubeconfig) => void): Promise<string> {
  const file = join(folder, "kubeconfig");
  await new Session(["cluster", "--kubeconfig", file]).says(/cluster ready/);
  const kubeconfig = parse(readFileSync(file, "utf8")) as Kubeconfig;
  change(kubeconfig);
  const changed = join(folder, "changed");
  writeFileSync(changed, stringify(kubeconfig));
  return changed;
}

describe("a name that Kubernetes has not", () => {
  test.each([
    ["start", "--namespace", "team_a", "a namespace's name"],
    ["start", "--service-account", "My account", "a ServiceAccount's name"],
    ["start", "--reserve", "a/secret", "an object's name"],
    ["validate", "--namespace", "team_a", "a namespace's name"],
    ["validate", "--service-account", "My account", "a ServiceAccount's name"],
    ["rbac", "--namespace", "team_a", "a namespace's name"],
  ])("ends `%s %s` with 1 before anything begins, and is shown", async (name, option, value, takes) => {
    const { status, output } = await outcome(name, "--functions", folderOf({}), option, value);
    expect(output).toBe(`WF_CLI_USAGE: ${option} takes ${takes}, got "${value}"; run \`watchfire ${name} --help\`\n`);
    expect(status).toBe(1);
  });
});

describe("a functions folder", () => {
  test.each(["dev", "start", "validate"])(
    "that is not there ends `%s` with 1, and is named with a hint",
    async (name) => {
      const folder = folderOf({});
      const args = name === "validate" ? [] : ["--data", join(folder, "data")];
      const { status, output } = await outcome(name, "--functions", join(folder, "nope"), ...args);
      expect(output).toMatch(
        /^WF_MANIFEST_FOLDER .*nope: there is no such folder; name an existing folder with --functions, or run it in the project/,
      );
      expect(output.trim().split("\n")).toHaveLength(1);
      expect(status).toBe(1);
    },
  );

  test("that is empty is none of a mistake: `dev` runs and says what to add", async () => {
    const folder = folderOf({});
    const dev = new Session(["dev", "--functions", folder, "--data", join(folder, ".data"), "--port", "0"]);
    expect(await dev.says(/Ctrl-C/)).toContain(`no functions yet in ${folder}: add NAME/function.yaml there`);
    define(folder, "first");
    await dev.says(/first {2}function added/);
  });

  test("that is empty is none of a mistake either to `start`, which says where it looked", async () => {
    const folder = folderOf({ "functions/README.md": "" });
    const kubeconfig = await clusterWith(folder, () => undefined);
    const functions = join(folder, "functions");
    const start = new Session([
      ...["start", "--functions", functions, "--data", join(folder, "data"), "--kubeconfig", kubeconfig],
      ...["--listen", "127.0.0.1:0", "--deployed"],
    ]);
    const line = (await start.says(/\{.*"no functions yet"\}/))
      .split("\n")
      .find((each) => each.includes("no functions"));
    expect(JSON.parse(line ?? "").looked).toEqual([
      `${functions}/NAME/function.yaml`,
      `${functions}/*.yaml`,
      "what `watchfire deploy` brings for default/watchfire",
    ]);
  });
});

test("with `--leader-elect` a folder that holds a function is never said to hold none", async () => {
  const folder = folderOf({});
  const kubeconfig = await clusterWith(folder, () => undefined);
  const functions = join(folder, "functions");
  define(functions, "first");
  const start = new Session([
    ...["start", "--functions", functions, "--data", join(folder, "data"), "--kubeconfig", kubeconfig],
    ...["--listen", "127.0.0.1:0", "--leader-elect", "--deployed"],
  ]);
  await start.says(/\{.*"msg":"ready"\}/);
  expect(start.output).toContain("running for the lease");
  expect(start.output).not.toContain("no functions yet");
});

test("a Secret that is not there is told of once, however often the folder is read", async () => {
  const folder = folderOf({});
  const functions = join(folder, "functions");
  const env = "  env: [{ name: TOKEN, valueFrom: { secretKeyRef: { name: none, key: token } } }]";
  define(functions, "lacking", "export default () => {};", manifest("lacking", env));
  const dev = new Session(["dev", "--functions", functions, "--data", join(folder, "data"), "--port", "0"]);
  await dev.says(/Ctrl-C/);
  for (const name of ["one", "two", "three"]) {
    define(functions, name);
    await dev.says(new RegExp(`${name} {2}function added`));
  }
  expect(dev.output.match(/WF_ACCESS_ENV/g)).toHaveLength(1);
});

describe("a data folder", () => {
  test("that is a file ends `dev` and `start` with 1, and is named with a hint", async () => {
    const folder = folderOf({});
    const functions = join(folder, "functions");
    define(functions, "steady");
    const data = join(functions, "steady", "handler.ts");
    const dev = await outcome("dev", "--functions", functions, "--data", data);
    expect(dev.output).toMatch(/^WF_DEV_CLUSTER_FILES .*handler\.ts.*ENOTDIR.*--data/);
    expect(dev.status).toBe(1);
    const kubeconfig = await clusterWith(folder, () => undefined);
    const start = await outcome("start", "--functions", functions, "--data", data, "--kubeconfig", kubeconfig);
    expect(start.output).toMatch(/^WF_CHECKPOINT_READ_ONLY .*handler\.ts.*ENOTDIR.*--data/);
    expect(start.status).toBe(1);
  });

  test.runIf(process.platform === "linux")("below /proc ends `dev` and `start` with 1 instead of never", async () => {
    const folder = folderOf({});
    const dev = await outcome("dev", "--functions", folder, "--data", "/proc/watchfire/deep");
    expect(dev.output).toMatch(/^WF_DEV_CLUSTER_FILES/);
    expect(dev.status).toBe(1);
    const kubeconfig = await clusterWith(folder, () => undefined);
    const start = await outcome("start", "--functions", folder, "--data", "/proc/x/y", "--kubeconfig", kubeconfig);
    expect(start.output).toMatch(/^WF_CHECKPOINT_READ_ONLY/);
    expect(start.status).toBe(1);
  });

  test("whose embedded cluster another process serves: the hint tells both ways out", async () => {
    const folder = folderOf({});
    mkdirSync(join(folder, "functions"));
    const state = join(folder, "cluster.state");
    const kubeconfig = join(folder, "kubeconfig");
    await new Session(["cluster", "--state", state, "--kubeconfig", kubeconfig]).says(/cluster ready/);
    const { status, output } = await outcome("dev", "--functions", join(folder, "functions"), "--data", folder);
    expect(output).toMatch(/^WF_DEV_CLUSTER_LOCKED .*the process \d+ uses it; .*--kubeconfig.*--data/);
    expect(status).toBe(1);
  });
});

describe("a cluster that does not let us in", () => {
  test("`dev` ends with 1 and says that the token was refused", async () => {
    const folder = folderOf({});
    const kubeconfig = await clusterWith(folder, ({ users }) => {
      for (const { user } of users) user.token = "stale";
    });
    const data = join(folder, "data");
    const { status, output } = await outcome("dev", "--functions", folder, "--data", data, "--kubeconfig", kubeconfig);
    expect(output).toMatch(/^WF_KUBE_CREDENTIALS: https:\S+ .*answered 401.*; sign in again/m);
    expect(status).toBe(1);
  });

  test("`dev` ends with 1 and says that the server's certificate is not trusted", async () => {
    const folder = folderOf({});
    const other = folderOf({});
    const foreign = parse(readFileSync(await clusterWith(other, () => undefined), "utf8")) as Kubeconfig;
    const kubeconfig = await clusterWith(folder, ({ clusters }) => {
      for (const [index, { cluster }] of clusters.entries()) {
        const authority = foreign.clusters[index]?.cluster["certificate-authority-data"];
        cluster["certificate-authority-data"] = authority ?? "";
      }
    });
    const data = join(folder, "data");
    const { status, output } = await outcome("dev", "--functions", folder, "--data", data, "--kubeconfig", kubeconfig);
    expect(output).toMatch(/^WF_KUBE_CERTIFICATE: .*; correct the kubeconfig's certificate-authority/m);
    expect(status).toBe(1);
  });

  test("`start` says so as well, goes on trying, and is ready once the token is a good one", async () => {
    const folder = folderOf({});
    const tokenFile = join(folder, "token");
    writeFileSync(tokenFile, "stale");
    let token = "";
    const kubeconfig = await clusterWith(folder, ({ users }) => {
      for (const { user } of users) {
        token = user.token ?? "";
        delete user.token;
        user.tokenFile = tokenFile;
      }
    });
    const args = ["--functions", folder, "--data", join(folder, ".data"), "--listen", "127.0.0.1:0"];
    const start = new Session(["start", ...args, "--kubeconfig", kubeconfig]);
    const line = await start.says(/cluster cannot be used/);
    expect(line).toMatch(/"level":"warn".*WF_KUBE_CREDENTIALS/);
    writeFileSync(tokenFile, token);
    await until("it is ready", 15_000, async () => start.output.includes('"msg":"ready"'));
  });
});
