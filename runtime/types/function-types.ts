import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { CachedRead, EnvVar, FunctionManifest, Selection } from "../manifest/function.ts";

/** The types of one function, and the file next to its manifest that they belong in. */
interface FunctionTypes {
  readonly name: string;
  readonly file: string;
  readonly text: string;
}

/** Returns the types of every function whose `function.yaml` holds no other function. */
export function functionTypes(manifests: readonly FunctionManifest[]): FunctionTypes[] {
  const byFile = Map.groupBy(manifests, ({ file }) => file);
  return [...byFile].flatMap(([file, [manifest, second]]) => {
    if (!manifest || second || !/^function\.ya?ml$/.test(basename(file))) return [];
    return [{ name: manifest.name, file: join(dirname(file), "function.d.ts"), text: textOf(manifest) }];
  });
}

/** Returns the types whose file exists and has another text. @throws the file system's error */
export const staleFunctionTypes = (manifests: readonly FunctionManifest[]): FunctionTypes[] =>
  functionTypes(manifests).filter(({ file, text }) => existsSync(file) && readFileSync(file, "utf8") !== text);

/** Rewrites the files of stale types. @throws the file system's error */
export function refreshFunctionTypes(manifests: readonly FunctionManifest[]): void {
  for (const { file, text } of staleFunctionTypes(manifests)) writeFileSync(file, text);
}

function textOf({ file, triggers, schedules, env, reads, delivery }: FunctionManifest): string {
  const primary = triggers.find(({ key }) => key === undefined);
  const isReconciler = delivery.mode === "Reconcile" && primary !== undefined;
  const handler = delivery.batch ? "BatchHandler" : "Handler";
  return [
    `// Made from ${basename(file)} by \`watchfire types\`, and by \`watchfire dev\` when it changes: change that.`,
    'import type * as sdk from "@watchfire/sdk";',
    "",
    ...(isReconciler
      ? [`type Kind = ${objectOf(primary)};`]
      : [
          "type Triggers = sdk.Triggers<{",
          ...triggers.map((trigger) => `  readonly ${keyOf(trigger.name)}: ${objectOf(trigger)};`),
          ...schedules.map(({ name }) => `  readonly ${keyOf(name)}: sdk.Scheduled;`),
          "}>;",
        ]),
    "",
    ...(env.length === 0
      ? ["type Env = Record<never, string>;"]
      : [
          "type Env = {",
          ...env.map((each) => `  readonly ${keyOf(each.name)}${isOptional(each) ? "?" : ""}: string;`),
          "};",
        ]),
    reads.length === 0 ? "type Reads = never;" : `type Reads =\n${reads.map(readOf).join("\n")};`,
    "",
    "export type Context = sdk.Context<Env, sdk.CacheOf<Reads>>;",
    ...(isReconciler
      ? ["export type Run = sdk.Reconciliation<Kind>;", "export type Reconciler = sdk.Reconciler<Kind, Context>;"]
      : ["export type Event = sdk.EventOf<Triggers>;", `export type ${handler} = sdk.${handler}<Triggers, Context>;`]),
    "",
  ].join("\n");
}

/** Returns the type of a selection's objects: that of `watchfire types` or the SDK, or an object with unknown fields. */
const objectOf = ({ apiVersion, kind, object }: Selection): string =>
  object === "Metadata" ? "sdk.KubeObject" : `sdk.ObjectOf<${JSON.stringify(apiVersion)}, ${JSON.stringify(kind)}>`;

function readOf({ indexes, ...read }: CachedRead): string {
  const names = indexes.map(({ name }) => JSON.stringify(name)).join(" | ") || "never";
  const kind = `${JSON.stringify(read.apiVersion)}, ${JSON.stringify(read.kind)}`;
  return `  | sdk.Read<${kind}, ${names}, ${objectOf(read)}>`;
}

/** A reference that is optional may have no value. */
const isOptional = ({ secretKeyRef, configMapKeyRef }: EnvVar): boolean =>
  (secretKeyRef ?? configMapKeyRef)?.optional === true;

const keyOf = (name: string): string => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name));
