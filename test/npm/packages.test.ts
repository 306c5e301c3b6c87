import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packAll } from "../../deploy/npm/pack.ts";

let tarballs: string[];
const folder = mkdtempSync(join(tmpdir(), "watchfire-packages-"));
const project = join(folder, "project");

const nameOf = (tarball: string): string => tarball.split("/").at(-1)?.replace(/-\d.*/, "") ?? "";

/** Runs a command in the project; fails with all that it said. */
function run(command: string, ...words: string[]): string {
  try {
    return execFileSync(command, words, { cwd: project, encoding: "utf8", stdio: "pipe" });
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${command} ${words.join(" ")}\n${stdout}${stderr}`);
  }
}

beforeAll(() => {
  tarballs = packAll(join(folder, "tarballs"));
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "project", type: "module", private: true }));
  run("npm", "install", "--prefer-offline", "--ignore-scripts", ...tarballs);
}, 240_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the packages, from their tarballs", () => {
  it("are as npm wants them", async () => {
    for (const tarball of tarballs) {
      const { messages, pkg } = await publint({ pack: { tarball: readFileSync(tarball).buffer }, strict: true });
      expect(messages.map((message) => formatMessage(message, pkg ?? {}))).toEqual([]);
    }
  });

  it("have types that each way of resolving modules finds", async () => {
    for (const tarball of tarballs) {
      const analysis = await checkPackage(createPackageFromTarballData(readFileSync(tarball)));
      const problems = "problems" in analysis ? analysis.problems : [{ kind: "no types" }];
      // ECMAScript modules alone, which `require` reaches by import() and the oldest way of resolving does not know.
      const wrong = problems.filter(({ kind }) => kind !== "CJSResolvesToESM" && kind !== "NoResolution");
      expect(wrong, nameOf(tarball)).toEqual([]);
    }
  });

  it("say what they are, under which licence, and ship no source beside a declaration", () => {
    for (const tarball of tarballs) {
      const files = execFileSync("tar", ["-tzf", tarball], { encoding: "utf8" }).split("\n");
      expect(files).toEqual(expect.arrayContaining(["package/README.md", "package/LICENSE", "package/package.json"]));
      expect(files.filter((file) => /^package\/dist\/.*(?<!\.d)\.ts$/.test(file))).toEqual([]);
    }
  });

  it("compile in a strict project, with the libraries' declarations checked", () => {
    const text = `import { defineHandler } from "@watchfire/sdk";
      import type { V1ConfigMap } from "@watchfire/sdk/kubernetes";
      import { runHandler } from "@watchfire/sdk/testing";
      const handler = defineHandler<V1ConfigMap>(async (event, ctx) => {
        const web = await ctx.kube.get({ apiVersion: "apps/v1", kind: "Deployment", name: "web", namespace: "shop" });
        ctx.log.info(event.object.metadata.name, { replicas: web.spec?.replicas });
      });
      await runHandler(handler, { object: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" } } });`;
    writeFileSync(join(project, "handler.ts"), text);
    const tsc = join(import.meta.dirname, "../../node_modules/typescript/bin/tsc");
    for (const [module, resolution] of [
      ["nodenext", "nodenext"],
      ["esnext", "bundler"],
    ]) {
      const settings = ["--strict", "--noEmit", "--target", "esnext", "--types", "", "--skipLibCheck", "false"];
      run(
        process.execPath,
        tsc,
        ...settings,
        "--module",
        module ?? "",
        "--moduleResolution",
        resolution ?? "",
        "handler.ts",
      );
    }
  });

  it("start a cluster that a client reaches by its kubeconfig", () => {
    const program = `import { once } from "node:events";
      import { get } from "node:https";
      import { text } from "node:stream/consumers";
      import { startCluster } from "@watchfire/cluster";
      const cluster = await startCluster();
      const headers = { authorization: "Bearer " + cluster.adminToken };
      const [answer] = await once(get(cluster.url + "/api/v1/namespaces", { ca: cluster.caCertificate, headers }), "response");
      const { items } = JSON.parse(await text(answer));
      console.log(items.map(({ metadata }) => metadata.name).sort().join(), cluster.kubeconfig.includes(cluster.url));
      await cluster.close();`;
    expect(run(process.execPath, "--no-warnings", "--input-type=module", "-e", program).trim()).toBe(
      "default,kube-node-lease,kube-public,kube-system true",
    );
  });
});
