import { relative, resolve } from "node:path";
import { WatchfireError } from "../base/errors.ts";
import { readBuilt } from "../catalog/built-folder.ts";
import { TrustedKeys } from "../catalog/signature.ts";
import { checkExpression } from "../engine/filter/check-expression.ts";
import { editsOnRecord } from "../engine/trigger-views.ts";
import { Checkpoint } from "../journal/checkpoint.ts";
import { SqliteJournal } from "../journal/sqlite/journal.ts";
import { isBuilt } from "../manifest/built.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { loadFunctions } from "../manifest/load.ts";
import { strayWarnings } from "../manifest/stray-files.ts";
import { describeFinding, faultOfCase, githubAnnotation, junitOf } from "./annotations.ts";
import { buildFunctions } from "./built-functions.ts";
import { command } from "./command.ts";
import { readAccount, readFolder, readNamespace } from "./operand.ts";
import { functions as functionsFolder, output, serviceAccount } from "./options.ts";
import { compareWithCluster, compareWithTypes } from "./project-checks.ts";
import { rulesOptions } from "./rbac.ts";
import { readStore, warningsOfStore } from "./store-limits.ts";
import { readValues, valuesOption } from "./values.ts";
import {
  compareHandlers,
  compareNames,
  warn,
  warningsOfReach,
  warningsOfTypes,
  warningsOfWildcards,
} from "./warning.ts";

export const validate = command({
  name: "validate",
  summary:
    "checks every manifest, builds every handler, checks its types, and loads it in a sandbox without calling it",
  options: {
    functions: functionsFolder,
    namespace: {
      value: "NS",
      summary:
        "the runtime's namespace, to warn of permissions that reach it; default: warns only of those for all namespaces",
    },
    "service-account": serviceAccount,
    store: rulesOptions.store,
    kubeconfig: { value: "FILE", summary: "checks kinds and resources against what this kubeconfig's cluster serves" },
    context: { value: "NAME", summary: "checks them against the cluster of this context of your kubeconfig" },
    values: valuesOption,
    output: output("json", "junit", "github"),
    data: {
      value: "DIR",
      summary: "says what edits of manifests do to the records in this data folder, while no runtime uses it",
    },
    trust: {
      value: "KEY",
      summary: "the folder must be the output of `watchfire build`, signed with this ed25519 public key, a PEM file",
      many: true,
    },
  },
  async run({ options, given }) {
    const folder = readFolder(options.functions);
    const namespace = options.namespace === undefined ? undefined : readNamespace(options.namespace);
    const account = readAccount(options["service-account"]);
    const store = readStore(options.store);
    if (given.has("trust")) readSigned(folder, TrustedKeys.read(options.trust));
    const values = readValues(options.values);
    const loaded = await loadFunctions(folder, { checkExpression, values, placeholders: "option" });
    const { functions, rejected, faults } = loaded;
    // A wrong folder must not pass as a valid one.
    if (functions.length + rejected.length + faults.length === 0) {
      for (const { message } of strayWarnings(folder, functions)) warn(message);
      throw new WatchfireError("WF_MANIFEST_NONE", { what: "there is no function below it", place: { file: folder } });
    }
    const served = await compareWithCluster(
      folder,
      loaded,
      options,
      given,
      namespace === undefined ? undefined : { namespace, account },
    );
    const built = await buildFunctions(folder, functions);
    const types = await compareWithTypes(folder, built);
    const handlers = compareHandlers(folder, loaded);
    const asksCluster = given.has("kubeconfig") || given.has("context");
    const names = asksCluster ? { faults: [], warnings: [] } : compareNames(folder, loaded);
    const ofBuild = built.flatMap((each) => each.faults);
    // A manifest that is refused may be the one that uses a value.
    const unused = faults.length === 0 ? (values?.unused() ?? []) : [];
    const all = [
      ...faults,
      ...unused,
      ...served.faults,
      ...ofBuild,
      ...types.faults,
      ...names.faults,
      ...handlers.faults,
    ];
    const warnings = [
      ...strayWarnings(folder, functions),
      ...names.warnings,
      ...warningsOfWildcards(loaded),
      ...warningsOfReach(loaded, { namespace, account }),
      ...warningsOfStore(loaded, built, store),
      ...handlers.warnings,
      ...warningsOfTypes(loaded),
    ];
    const edits = options.data === undefined ? [] : await editsInFolder(options.data, functions);
    const faulty = new Set([...served.faulty, ...types.faulty]);
    const wrong = new Set([...names.faults, ...handlers.faults].map(({ detail }) => resolve(detail.place?.file ?? "")));
    const isGood = (manifest: FunctionManifest) =>
      !faulty.has(manifest) && ![manifest.file, manifest.handler].some((file) => wrong.has(resolve(file)));
    const good = built.filter(({ faults, manifest }) => faults.length === 0 && isGood(manifest));
    print(options.output, {
      valid: good.map(({ manifest }) => manifest.name),
      faults: all,
      warnings,
      edits,
      unchecked: [...types.unchecked, ...served.unchecked],
      signed: given.has("trust"),
    });
    return all.length === 0 ? 0 : 1;
  },
});

/** The result of all checks. */
interface Findings {
  /** Names of functions. */
  readonly valid: readonly string[];
  readonly faults: readonly WatchfireError[];
  readonly warnings: readonly WatchfireError[];
  /** Descriptions of what the edits change in stored checkpoints. */
  readonly edits: readonly string[];
  /** Descriptions of what could not be checked. */
  readonly unchecked: readonly string[];
  readonly signed: boolean;
}

function print(format: string, found: Findings): void {
  const { valid, faults, warnings } = found;
  const say = (text: string) => process.stdout.write(`${text}\n`);
  if (format === "json") {
    const [errors, notes] = [faults, warnings].map((all) => all.map(describeFinding));
    say(JSON.stringify({ ...found, faults: errors, warnings: notes }, null, 2));
  } else if (format === "junit") {
    const broken = faults.map((fault) => ({ name: nameOf(fault), faults: [faultOfCase(fault)] }));
    say(junitOf("watchfire validate", [...valid.map((name) => ({ name, faults: [] })), ...broken]));
  } else {
    printText(found, format === "github");
  }
}

/** Faults and warnings go to stderr, or to stdout as annotations. */
function printText({ valid, faults, warnings, edits, unchecked, signed }: Findings, isGithub: boolean): void {
  const say = (text: string) => process.stdout.write(`${text}\n`);
  for (const fault of faults) {
    if (isGithub) say(githubAnnotation("error", faultOfCase(fault)));
    else process.stderr.write(`${fault.message}\n`);
  }
  for (const warning of warnings) {
    if (isGithub) say(githubAnnotation("warning", faultOfCase(warning)));
    else warn(warning.message);
  }
  for (const line of edits) say(line);
  for (const each of unchecked) process.stderr.write(`not checked: ${each}\n`);
  const counts = [
    `${valid.length} valid`,
    counted(faults.length, "fault"),
    ...(signed ? ["signed"] : []),
    ...(warnings.length > 0 ? [counted(warnings.length, "warning")] : []),
  ];
  say(counts.join(", "));
}

/** Returns the place of a fault as the name of a test, or its code if it has no place. */
function nameOf({ code, detail: { place } }: WatchfireError): string {
  if (!place) return code;
  return [relative(process.cwd(), place.file), place.line].filter((part) => part !== undefined).join(":");
}

/**
 * Describes the effects of changed manifests on the checkpoints in a data folder, one line each.
 * @throws WatchfireError of the checkpoint section, also if a runtime uses the folder
 */
async function editsInFolder(folder: string, functions: readonly FunctionManifest[]): Promise<string[]> {
  const store = new Checkpoint(new SqliteJournal({ folder, maintenance: true }));
  try {
    const lines: string[] = [];
    for (const manifest of functions) {
      const edits = await editsOnRecord(store, manifest);
      lines.push(...edits.map((line) => `${manifest.name}: ${line}`));
    }
    return lines;
  } finally {
    await store.close(false);
  }
}

/** @throws WatchfireError WF_BUILD_UNTRUSTED, WF_BUILD_DAMAGED */
function readSigned(folder: string, trust: TrustedKeys): void {
  if (!isBuilt(folder)) {
    throw new WatchfireError("WF_BUILD_UNTRUSTED", { what: "it holds sources", place: { file: folder } });
  }
  readBuilt(folder, trust);
}

const counted = (number: number, what: string): string => `${number} ${what}${number === 1 ? "" : "s"}`;
