import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { assetsFolder } from "../tools/assets.ts";
import { folderOf } from "../tools/folder.ts";
import { TalkingProcess } from "../tools/talking-process.ts";
import { until } from "../tools/until.ts";
import { bin, onFreePort, watchfire } from "./run.ts";
import { define, manifest, write } from "./session.ts";

const assets = assetsFolder();
if (!assets) process.stdout.write("no function runs on a real API server by --real: KUBEBUILDER_ASSETS is not set\n");

const crd = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "sites.example.com" },
  spec: {
    group: "example.com",
    scope: "Namespaced",
    names: { plural: "sites", singular: "site", kind: "Site", listKind: "SiteList" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: { spec: { type: "object", properties: { replicas: { type: "integer", default: 3 } } } },
          },
        },
      },
    ],
  },
};
const site = { apiVersion: "example.com/v1", kind: "Site", metadata: { name: "a", namespace: "default" }, spec: {} };
const handler = `export default (event, ctx) => { ctx.log.info("replicas " + event.object.spec.replicas); };`;

/** A project with a definition and a sample of its kind. */
function project(): { folder: string; functions: string } {
  const folder = folderOf({});
  const functions = join(folder, "functions");
  define(functions, "site", handler, manifest("site", "", "{ apiVersion: example.com/v1, kind: Site }"));
  write(join(functions, "site/crd.yaml"), JSON.stringify(crd));
  write(join(functions, "site/sample.yaml"), JSON.stringify(site));
  return { folder, functions };
}

/** Pids of the programs that work on a folder. */
function programsOn(folder: string): string[] {
  try {
    return execFileSync("pgrep", ["-f", `^\\S*/(etcd|kube-apiserver).*${folder}`], { encoding: "utf8" })
      .trim()
      .split("\n");
  } catch {
    return [];
  }
}

describe.skipIf(!assets)("on a real API server", () => {
  const env = { KUBEBUILDER_ASSETS: assets };
  const realSession = (args: readonly string[]) =>
    new TalkingProcess(process.execPath, [bin, ...onFreePort(args)], { env, patienceMs: 60_000 });

  test("dev --real says its version, applies definitions and samples, keeps objects, and leaves no program behind", async () => {
    const { folder, functions } = project();
    const data = join(folder, "data");
    const args = ["dev", "--real", "--functions", functions, "--data", data];
    const first = realSession(args);
    await first.says(/cluster: kube-apiserver v1\.\d+\.\d+/);
    await first.says(/site {2}Added example\.com\/v1\/Site default\/a {2}ok/);
    expect(first.output).toContain("replicas 3");
    expect(programsOn(data)).toHaveLength(2);
    const beside = await watchfire(args, env);
    expect(beside.status).toBe(1);
    expect(beside.stderr).toMatch(/^WF_DEV_CLUSTER_LOCKED /m);
    first.signal("SIGINT");
    expect(await first.end()).toBe(0);
    expect(programsOn(data)).toEqual([]);

    rmSync(join(functions, "site/sample.yaml"));
    const second = realSession(args);
    await second.says(/cluster: kube-apiserver/);
    const kubectl = await watchfire(["kubectl", "get", "sites", "-o", "name"], {
      ...env,
      PATH: `${assets}:${process.env.PATH}`,
      HOME: folder,
      WATCHFIRE_DATA: data,
    });
    expect(kubectl.stdout).toBe("site.example.com/a\n");
    second.signalAlone("SIGKILL");
    await until("no program outlives it", 10_000, async () => programsOn(data).length === 0);
  }, 120_000);

  test("test --real holds a fixture to what the server stores", async () => {
    const { functions } = project();
    const object = { ...site, metadata: { name: "b", namespace: "demo" } };
    write(join(functions, "site/events/added.json"), JSON.stringify({ event: { type: "Added", object } }));
    const bad = { ...object, spec: { replicas: "many" } };
    write(join(functions, "site/events/bad.json"), JSON.stringify({ event: { type: "Added", object: bad } }));
    const { status, stdout, stderr } = await watchfire(["test", "--real", "--functions", functions], env);
    expect([status, stdout]).toEqual([1, "1 passed, 1 failed\n"]);
    expect(stderr).toContain('spec.replicas in body must be of type integer: "string"');
  }, 120_000);
});

test.each(["dev", "test"])("%s --real says what is missing, and how setup-envtest brings it", async (command) => {
  const { folder, functions } = project();
  const args = [command, "--real", "--functions", functions];
  const unset = await watchfire(args, {}, folder);
  expect([unset.status, unset.stdout]).toEqual([1, ""]);
  expect(unset.stderr).toMatch(/^WF_DEV_REAL_PROGRAMS: KUBEBUILDER_ASSETS is not set; .*setup-envtest@latest use/);
  const empty = await watchfire(args, { KUBEBUILDER_ASSETS: folder }, folder);
  expect(empty.stderr).toMatch(/^WF_DEV_REAL_PROGRAMS: KUBEBUILDER_ASSETS has no etcd, got /);
});

test("dev --real does not take a cluster beside it", async () => {
  const { functions } = project();
  const { status, stderr } = await watchfire(["dev", "--real", "--context", "a", "--functions", functions]);
  expect(status).toBe(1);
  expect(stderr).toMatch(/^WF_CLI_USAGE: --real starts a cluster/);
});
