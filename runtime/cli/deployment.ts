import { hostname } from "node:os";
import { createInterface } from "node:readline/promises";
import { systemClock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { clean, cut } from "../base/wording.ts";
import type { DeployReport } from "../catalog/deploy/deploy.ts";
import type { PackedFunction } from "../catalog/packed-function.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { editsOf } from "../manifest/edits.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { readManifests } from "../manifest/read.ts";
import { recordsOf } from "../manifest/trigger-record.ts";
import type { ValueUse } from "../manifest/values.ts";
import { describeFinding } from "./annotations.ts";
import type { Option } from "./command.ts";
import { warn } from "./warning.ts";
import { lacksSets, type RuntimeAccount } from "./workloads.ts";

/** Exit status of `--dry-run` if something would change. */
const changesStatus = 3;

/** The options of commands that change a set. */
export const deploymentOptions = {
  "dry-run": { summary: "writes nothing and shows what would change; exit status 3 if anything would" },
  yes: { short: "y", summary: "agrees to the removal of functions; without it, the command asks at a terminal" },
} as const satisfies Record<string, Option>;

/** Returns the parts of a plan that describe who deploys which set. */
export const deployerOf = (set: string) => ({
  set,
  clock: systemClock,
  holder: `${hostname()} ${process.pid}`,
  waiting: (who: string, limitMs: number) =>
    void process.stderr.write(`waiting up to ${limitMs / 1000} s, since another deployment has not ended: ${who}\n`),
});

/** The streams on which a question is asked. */
interface Terminal {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: NodeJS.WritableStream & { readonly isTTY?: boolean };
}

interface DeploymentParts {
  readonly set: string;
  readonly given: ReadonlySet<string>;
  readonly transport: KubeTransport;
  readonly runtime: RuntimeAccount;
  readonly packed: readonly PackedFunction[];
  readonly manifests: readonly FunctionManifest[];
  /** Values that were filled into them. */
  readonly filled: readonly ValueUse[];
  readonly terminal: Terminal;
  /** The part of a JSON answer that is not in the report; `undefined`: text. */
  readonly json:
    | { readonly namespace: string; readonly account: string; readonly warnings: readonly WatchfireError[] }
    | undefined;
}

/** One change of a set by a command: shows it, and asks about what it removes. */
export class Deployment {
  private readonly parts: DeploymentParts;
  private refused: number | undefined;

  constructor(parts: DeploymentParts) {
    this.parts = parts;
  }

  /** Exit status if nothing was to be written: the dry run's, or 1 after a "no". */
  get unwritten(): number | undefined {
    return this.refused;
  }

  /**
   * Resolves with false if nothing may be written.
   * @throws WatchfireError WF_DEPLOYED_NO_SETS; WF_DEPLOYED_REMOVES if functions would be removed and nobody can be asked
   */
  approve = async (report: DeployReport): Promise<boolean> => {
    const { set, given, transport, runtime, terminal } = this.parts;
    if (given.has("dry-run")) {
      const isAlone = !report.isDone && !hasContent(report);
      const rest = isAlone ? ["labels, signatures or locks would be written again, and nothing else"] : [];
      this.print(report, [...report.rights, ...this.parts.filled.map(describeUse), ...rest]);
      this.warn(report);
      this.refused = report.isDone ? 0 : changesStatus;
      return false;
    }
    if (report.takenOver.length > 0 && (await lacksSets(transport, runtime))) {
      throw new WatchfireError("WF_DEPLOYED_NO_SETS", {
        what: `the runtime ${runtime.namespace}/${runtime.account} knows no sets, and the set ${set} would take over ${report.takenOver.join(", ")}`,
      });
    }
    const removed = named(report, "removed");
    if (removed.length === 0 || given.has("yes")) return true;
    if (terminal.input.isTTY && terminal.output.isTTY) {
      if (await agreed(`remove ${removed.join(", ")} from the set ${set}?`, terminal)) return true;
      terminal.output.write("nothing was written\n");
      this.refused = 1;
      return false;
    }
    throw new WatchfireError("WF_DEPLOYED_REMOVES", {
      what: `this would remove ${removed.join(", ")} from the set ${set}`,
    });
  };

  /**
   * Prints a report: functions, deleted objects, and the effects of changed manifests.
   * @param rest lines that follow in the text; JSON has the rights in any case
   */
  print(report: DeployReport, rest: readonly string[] = []): void {
    const { set, packed, manifests, filled, json } = this.parts;
    const edits = editsIn(manifests, report);
    if (!json) {
      process.stdout.write([...rowsOf(report, packed), ...edits, ...rest, ""].join("\n"));
      return;
    }
    const { warnings, ...runtime } = json;
    const answer = {
      ...runtime,
      set,
      ...answerOf(report, packed),
      edits,
      values: filled,
      warnings: warnings.map(describeFinding),
    };
    process.stdout.write(`${JSON.stringify(answer, null, 2)}\n`);
  }

  /** Warns about what may be unexpected. */
  warn(report: DeployReport): void {
    const { set } = this.parts;
    const [created, removed] = [named(report, "created"), named(report, "removed")].map((each) => each.join(", "));
    if (created && removed) {
      warn(
        `${removed} is removed and ${created} is new: a function with another name starts without checkpoints, from the objects that exist`,
      );
    }
    if (report.left.length > 0) {
      warn(
        `${report.left.join(", ")} stays in the set default, where versions without sets deployed it: this folder, of the set ${set}, does not have it`,
      );
    }
    if (this.parts.given.has("message") && !this.parts.given.has("canary") && !report.isRecorded) {
      const now = report.revision === undefined ? "" : `, which is revision ${report.revision}`;
      warn(`the message is not stored: the code and the manifests are those that are deployed${now}`);
    }
    if (report.canaryOf.length > 0) warn(`the canary of ${report.canaryOf.join(", ")} ends, and was not promoted`);
    if (report.unsigned) {
      warn("what was deployed before was signed, and this is not: a runtime with --trust refuses it");
    }
  }
}

const named = ({ functions }: DeployReport, which: DeployReport["functions"][number]["fate"]): string[] =>
  functions.flatMap(({ name, fate }) => (fate === which ? name : []));

const describeUse = ({ name, value, place: { file, line, column } }: ValueUse): string =>
  clean(`filled \${${name}} at ${file}:${line}:${column} with ${cut(value, 80)}`);

/** Whether anything but labels, signatures and locks changes. */
const hasContent = ({ functions, rights, deleted, takenOver }: DeployReport): boolean =>
  functions.some(({ fate }) => fate !== "unchanged") || rights.length + deleted.length + takenOver.length > 0;

/** Asks a question that a `y` or `yes` answers with yes, and everything else, the end of the input as well, with no. */
export async function agreed(question: string, { input, output }: Terminal): Promise<boolean> {
  const lines = createInterface({ input, output });
  try {
    const closed = new Promise<string>((resolve) => lines.once("close", () => resolve("")));
    const answer = await Promise.race([lines.question(`${question} [y/N] `), closed]);
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    lines.close();
  }
}

/** Describes the effects of changed manifests, apart from the functions' names. */
function editsIn(manifests: readonly FunctionManifest[], { manifestsBefore }: DeployReport): string[] {
  return manifests.flatMap((manifest) => {
    const text = manifestsBefore.get(manifest.name);
    const [read] = text === undefined ? [] : readManifests(text, manifest.name, undefined);
    if (!read?.manifest) return [];
    return editsOf(recordsOf(manifest), recordsOf(read.manifest)).map((line) => `${manifest.name}: ${line}`);
  });
}

/** Returns the report for programs. `bytes` and `configMap` are null for a removed function. */
const answerOf = (report: DeployReport, packed: readonly PackedFunction[]) => ({
  functions: report.functions.map(({ name, fate }) => {
    const of = packed.find((each) => each.name === name);
    return {
      name,
      fate,
      configMap: of?.configMap.metadata.name ?? null,
      bytes: of?.bytes ?? null,
      withoutSourceMap: of?.withoutSourceMap ?? false,
    };
  }),
  takenOver: report.takenOver,
  deleted: report.deleted,
  kept: report.kept,
  forgottenRevisions: report.forgotten,
  rights: report.rights,
  changes: !report.isDone,
  prunedEverywhere: report.prunedEverywhere,
  unsigned: report.unsigned,
  revision: report.revision ?? null,
});

function rowsOf(report: DeployReport, packed: readonly PackedFunction[]): string[] {
  const { functions: fates, deleted, kept, forgotten, prunedEverywhere, takenOver } = report;
  const width = Math.max(0, ...fates.map(({ name }) => name.length));
  const rows = fates.map(({ name, fate }) => {
    const of = packed.find((each) => each.name === name);
    const size = of ? `  ${of.configMap.metadata.name}  ${Math.ceil(of.bytes / 1024)} KiB` : "";
    const without = of?.withoutSourceMap ? ", without its source map, which did not fit" : "";
    const over = takenOver.includes(name) ? ", taken over from the set default" : "";
    return `${name.padEnd(width)}  ${fate.padEnd(9)}${size}${without}${over}`.trimEnd();
  });
  const pruned = [
    ...deleted.map((name) => `deleted ${name}`),
    ...kept.map((name) => `kept the code of ${name} for \`watchfire rollback\``),
    ...(forgotten.length > 0 ? [`deleted revision ${forgotten.join(", ")}`] : []),
  ];
  const partly = prunedEverywhere
    ? []
    : ["rights in other namespaces were not looked for: listing them is not allowed"];
  return [...rows, ...pruned, ...partly];
}
