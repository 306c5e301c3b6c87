import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import type { Shape } from "./edits.ts";
import type { Namespaces } from "./ledger.ts";

const recorder = join(import.meta.dirname, "functions/recorder");
const telling = join(import.meta.dirname, "telling.handler.ts");

/** The functions that record the changes of objects, and their form. */
export interface Recording {
  /** Number of functions that divide the objects among them by the numbers in their names. Default 1. */
  readonly shares?: number;
  /** Number of slots over which each function is spread. Default 1. */
  readonly shards?: number;
  /**
   * Each function has a separate watch, by the label that the writer puts on its objects, and handlers log their deliveries.
   * Default:
   * all share one watch, each judges all objects, and handlers write into the cluster.
   */
  readonly apart?: boolean;
}

/** Writes the auditor's function into a folder of functions, for these namespaces, with its manifest after an edit. */
export async function writeRecorders(
  functions: string,
  { objects, records }: Namespaces,
  { shares = 1, shards = 1, apart = false }: Recording,
  { trigger: named, watch: edited }: Shape = {},
): Promise<void> {
  const { spec, ...rest } = parse(await readFile(join(recorder, "function.yaml"), "utf8"));
  for (let share = 0; share < shares; share++) {
    const name = shares === 1 ? "recorder" : `recorder-${share}`;
    const own = join(functions, name);
    await cp(recorder, own, { recursive: true });
    if (apart) await cp(telling, join(own, "handler.ts"));
    const [trigger] = spec.triggers;
    const watch = { ...trigger.watch, namespaceSelector: { matchNames: [objects] }, ...edited };
    if (shares > 1 && apart) {
      watch.labelSelector = { ...watch.labelSelector, matchLabels: { share: String(share) } };
    } else if (shares > 1) {
      const expression = `int(object.metadata.name.substring(5)) % ${shares} == ${share}`;
      watch.matchConditions = [...(watch.matchConditions ?? []), { name: "share", expression }];
    }
    const manifest = {
      ...rest,
      metadata: { name },
      spec: {
        ...spec,
        triggers: [{ ...trigger, ...(named && { name: named }), watch }],
        permissions: [{ ...spec.permissions[0], namespaces: [records] }],
        delivery: { ...spec.delivery, shards },
      },
    };
    await writeFile(join(own, "function.yaml"), stringify(manifest));
  }
}
