import { chmodSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { folderOf } from "../tools/folder.ts";
import { kubectlPath } from "../tools/kubectl.ts";
import { watchfire } from "./run.ts";
import { define, Session } from "./session.ts";

/** A project whose PATH contains this script as kubectl. */
function project(script: string, data = ".watchfire") {
  const folder = folderOf({ "bin/kubectl": `#!/bin/sh\n${script}\n`, [`${data}/kubeconfig`]: "" });
  chmodSync(join(folder, "bin/kubectl"), 0o755);
  return { folder, PATH: join(folder, "bin") };
}

test("kubectl has every word as it is, the kubeconfig of the dev cluster, and gives its status", async () => {
  const { folder, PATH } = project('echo "$KUBECONFIG" "$@"; exit 3');
  const words = ["get", "pods", "-A", "--help", "--", "-h"];
  const { status, stdout } = await watchfire(["kubectl", ...words], { PATH, KUBECONFIG: "another" }, folder);
  expect(stdout).toBe(`.watchfire/kubeconfig ${words.join(" ")}\n`);
  expect(status).toBe(3);
});

test("--help alone is of `watchfire kubectl` itself", async () => {
  const { status, stdout } = await watchfire(["kubectl", "--help"], {}, folderOf({}));
  expect(stdout).toMatch(/^watchfire kubectl ARGUMENT\.\.\.\n/);
  expect(status).toBe(0);
});

test("kubectl that a signal ended says so as a shell does", async () => {
  const { folder, PATH } = project("kill -9 $$");
  expect((await watchfire(["kubectl"], { PATH }, folder)).status).toBe(128 + 9);
});

test("kubectl takes another data folder from the environment", async () => {
  const { folder, PATH } = project('echo "$KUBECONFIG"', "elsewhere");
  const { stdout } = await watchfire(["kubectl"], { PATH, WATCHFIRE_DATA: "elsewhere" }, folder);
  expect(stdout).toBe("elsewhere/kubeconfig\n");
});

test("where there is no kubectl, or no cluster was ever started, it is said what to do", async () => {
  const { folder, PATH } = project("exit 0");
  const none = await watchfire(["kubectl", "get", "pods"], { PATH: join(folder, ".watchfire") }, folder);
  expect(none.stderr).toMatch(
    /^WF_CLI_KUBECTL: no kubectl is on your PATH; install kubectl: https:\/\/kubernetes\.io\//,
  );
  const bare = await watchfire(["kubectl", "get", "pods"], { PATH }, folderOf({}));
  expect(bare.stderr).toMatch(/^WF_CLI_KUBECTL \.watchfire\/kubeconfig: .*; start `watchfire dev` in this folder/);
  expect([none.status, bare.status]).toEqual([1, 1]);
});

test("once the cluster has stopped it is said so in one line, and what asks no cluster still works", async () => {
  const folder = folderOf({});
  define(join(folder, "functions"), "f");
  const data = join(folder, "data");
  const PATH = dirname(await kubectlPath());
  const kubectl = (...words: string[]) => watchfire(["kubectl", ...words], { PATH, WATCHFIRE_DATA: data }, folder);
  const dev = new Session(["dev", "--functions", join(folder, "functions"), "--data", data]);
  await dev.says(/Ctrl-C/);
  expect(await kubectl("get", "namespace", "default", "-o", "name")).toMatchObject({ stdout: "namespace/default\n" });
  dev.signal("SIGINT");
  expect(await dev.end()).toBe(0);

  const { status, stdout, stderr } = await kubectl("get", "pods");
  expect(stderr).toMatch(
    /^WF_CLI_KUBECTL \S+data\/kubeconfig: the embedded cluster .* is not running: .*127\.0\.0\.1:\d+; start it .*\n$/,
  );
  expect([status, stdout]).toEqual([1, ""]);
  expect(await kubectl("config", "current-context")).toMatchObject({ status: 0, stderr: "" });
  expect((await kubectl("get", "--colour")).stderr).toMatch(/^error: unknown flag: --colour/);
});
