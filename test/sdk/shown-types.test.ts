import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { typedProject } from "../tools/typed-project.ts";

const tsc = join(import.meta.dirname, "../../node_modules/typescript/bin/tsc");

const code = `
import type { Kube, WatchEvent } from "@watchfire/sdk";
import type { V1Deployment } from "@watchfire/sdk/kubernetes";
export const got = (kube: Kube) => kube.get({ apiVersion: "apps/v1", kind: "Deployment", name: "web" });
export const listed = (kube: Kube) => kube.list({ apiVersion: "apps/v1", kind: "Deployment" });
export const told = (event: WatchEvent<V1Deployment>) => event.object;
`;

it("an inferred type is shown by its name, as V1Deployment, and not by all its fields", () => {
  const folder = typedProject({ "handler.ts": code });
  // A declaration contains the text that an editor shows.
  const words = ["-p", folder, "--noEmit", "false", "--declaration", "--emitDeclarationOnly", "--outDir"];
  execFileSync(process.execPath, [tsc, ...words, join(folder, "out")], { cwd: folder });
  const shown = readFileSync(join(folder, "out/handler.d.ts"), "utf8").replace(/import\("[^"]*"\)\./g, "");
  expect([...shown.matchAll(/=> (.*);$/gm)].map(([, type]) => type)).toEqual([
    "Promise<Stored<V1Deployment>>",
    "Promise<ObjectList<Stored<V1Deployment>>>",
    "Stored<V1Deployment>",
  ]);
});
