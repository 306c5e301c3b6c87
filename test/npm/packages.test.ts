import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { beforeAll, describe, expect, inject, it } from "vitest";
import { Project } from "./project.ts";

const tarballs = inject("tarballs");
let project: Project;

const nameOf = (tarball: string): string => tarball.split("/").at(-1)?.replace(/-\d.*/, "") ?? "";

/** The packages that a program imports. */
const libraries = tarballs.filter((tarball) => ["watchfire-sdk", "watchfire-cluster"].includes(nameOf(tarball)));

beforeAll(() => {
  project = Project.empty();
  project.run("npm", "install", "--prefer-offline", "--ignore-scripts", ...libraries);
});

describe("the packages, from their tarballs", () => {
  it("are as npm wants them", async () => {
    for (const tarball of tarballs) {
      const { messages, pkg } = await publint({ pack: { tarball: readFileSync(tarball).buffer }, strict: true });
      expect(messages.map((message) => formatMessage(message, pkg ?? {}))).toEqual([]);
    }
  });

  it("have types that each way of resolving modules finds", async () => {
    for (const tarball of libraries) {
      const analysis = await checkPackage(createPackageFromTarballData(readFileSync(tarball)));
      const problems = "problems" in analysis ? analysis.problems : [{ kind: "no types" }];
      // The packages contain only ECMAScript modules, which `require` cannot load directly and the oldest way of resolution does
      // not support.
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
    writeFileSync(join(project.folder, "handler.ts"), text);
    const tsc = join(import.meta.dirname, "../../node_modules/typescript/bin/tsc");
    for (const [module, resolution] of [
      ["nodenext", "nodenext"],
      ["esnext", "bundler"],
    ]) {
      const settings = ["--strict", "--noEmit", "--target", "esnext", "--types", "", "--skipLibCheck", "false"];
      project.run(
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
    expect(project.run(process.execPath, "--no-warnings", "--input-type=module", "-e", program).trim()).toBe(
      "default,kube-node-lease,kube-public,kube-system true",
    );
  });
});
