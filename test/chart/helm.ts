import { execFile } from "node:child_process";
import { globSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { parseAllDocuments } from "yaml";
import type { Body } from "../target/client.ts";
import { helmPath } from "../tools/kubectl.ts";

export const chart = join(import.meta.dirname, "../../deploy/chart");

/** Files of values, one for each way to use the chart. */
export const scenarios = globSync("ci/*-values.yaml", { cwd: chart }).map((file) => basename(file, "-values.yaml"));

export const valuesOf = (scenario: string): string[] => ["--values", join(chart, `ci/${scenario}-values.yaml`)];

/** Helm's own folders, so that it reads and writes nothing of the machine's user. */
const home = mkdtempSync(join(tmpdir(), "watchfire-helm-"));
const surroundings = { PATH: process.env.PATH, HOME: home };

/** Runs the real helm and returns its output. If it fails, throws with its error output. */
export async function helm(...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(await helmPath(), args, { env: surroundings, maxBuffer: 2 ** 25 });
  return stdout;
}

export const release = "watchfire";
export const namespace = "apps";

/** The objects that the chart renders, as the API server would receive them. */
export const render = (...args: readonly string[]): Promise<Body[]> => renderAs(release, ...args);

/** The same for a release of that name. Throws if the output is not valid YAML. */
export async function renderAs(name: string, ...args: readonly string[]): Promise<Body[]> {
  const text = await helm("template", name, chart, "--namespace", namespace, ...args);
  return parseAllDocuments(text).flatMap((document) => {
    if (document.errors[0]) throw document.errors[0];
    return (document.toJS() as Body | null) ?? [];
  });
}

export function only(objects: readonly Body[], kind: string): Body {
  const [found, ...others] = objects.filter((object) => object.kind === kind);
  if (!found || others.length > 0) throw new Error(`${others.length + (found ? 1 : 0)} objects of kind ${kind}`);
  return found;
}

/** The only StatefulSet or Deployment. */
export function workload(objects: readonly Body[]): Body {
  return only(objects, objects.some(({ kind }) => kind === "Deployment") ? "Deployment" : "StatefulSet");
}

/** The pod's two containers. */
export function containers(objects: readonly Body[]) {
  const { containers } = workload(objects).spec.template.spec;
  const named = (name: string) => containers.find((container: { name: string }) => container.name === name);
  return { watchfire: named("watchfire"), executor: named("executor") };
}
