import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { clientBundle, importClient } from "../../runtime/kube/client-node.ts";
import { folderOf } from "../tools/folder.ts";

const kubeconfig = JSON.stringify({
  apiVersion: "v1",
  kind: "Config",
  clusters: [{ name: "c", cluster: { server: "https://c.example:6443" } }],
  users: [{ name: "u", user: { token: "t" } }],
  contexts: [{ name: "here", context: { cluster: "c", user: "u", namespace: "n" } }],
  "current-context": "here",
});

test("the one file that the installation leaves of client-node reads a kubeconfig as the package does", async () => {
  const bundled = await import(pathToFileURL(clientBundle()).href);
  const whole = await import("@kubernetes/client-node");
  const [ours, theirs] = [new bundled.KubeConfig(), new whole.KubeConfig()];
  for (const config of [ours, theirs]) config.loadFromString(kubeconfig);
  expect(ours.getCurrentUser()).toEqual(theirs.getCurrentUser());
  expect(JSON.parse(ours.exportConfig())).toEqual(JSON.parse(theirs.exportConfig()));
});

test("that file has the reader alone, and none of the client's generated classes", () => {
  const text = readFileSync(clientBundle(), "utf8");
  expect(text).toContain("KubeConfig");
  expect(text).not.toMatch(/\bV1Pod\b/);
});

test("where that file is missing or damaged, the package itself is loaded", async () => {
  const folder = folderOf({});
  const damaged = join(folder, "half.mjs");
  writeFileSync(damaged, "export class KubeConfig { loadFrom");
  for (const file of [damaged, join(folder, "missing.mjs")]) {
    const { KubeConfig } = await importClient(file);
    expect(KubeConfig).toBe((await import("@kubernetes/client-node")).KubeConfig);
  }
});
