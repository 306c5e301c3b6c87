import { chmodSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { folderOf } from "../tools/folder.ts";
import { watchfire } from "./run.ts";

/** A project whose PATH has this script for kubectl. */
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
