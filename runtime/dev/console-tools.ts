import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { type Clock, systemClock } from "../base/clock.ts";
import { Discovery } from "../kube/discovery.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { readObjects } from "./sample-file.ts";
import { emitObjects, samplesBeside } from "./samples.ts";
import type { TypeWatch } from "./type-watch.ts";

/** The name of a text from the console's form, in faults. */
const formName = "form.yaml";

/** The further abilities of the console of `watchfire dev`. No other runtime has them. */
export interface ConsoleTools {
  /** The present faults of types, as they were printed. */
  faults(): TypeWatch["faults"];
  /** The samples next to the functions. `undefined` if objects cannot be applied: the cluster is the user's own, or writes are only shown. */
  samples(): readonly { readonly file: string; readonly text: string }[] | undefined;
  /**
   * Applies the objects of a YAML text, with an annotation that makes each a change. Returns what was applied.
   * @throws WatchfireError WF_DEV_SAMPLE
   */
  apply(text: string): Promise<{ readonly applied: readonly string[]; readonly warnings: readonly string[] }>;
}

interface ConsoleToolsParts {
  readonly transport: KubeTransport;
  /** Whether objects can be applied. */
  readonly mayApply: boolean;
  /** The files of the accepted manifests. */
  readonly manifests: () => readonly string[];
  readonly types: () => Pick<TypeWatch, "faults"> | undefined;
  readonly clock: Pick<Clock, "now">;
}

export function consoleTools({ transport, mayApply, manifests, types, clock }: ConsoleToolsParts): ConsoleTools {
  return {
    faults: () => types()?.faults ?? [],
    samples() {
      if (!mayApply) return undefined;
      return samplesBeside(manifests()).map((file) => {
        return { file: relative(process.cwd(), file), text: readFileSync(file, "utf8") };
      });
    },
    async apply(text) {
      const warnings: string[] = [];
      const discovery = new Discovery(transport, systemClock); // a definition may have been added since the last call
      const stamp = new Date(clock.now()).toISOString();
      const warned = (warning: string, place: string) => void warnings.push(`${place}: ${warning}`);
      return { applied: await emitObjects(readObjects(text, formName), transport, discovery, stamp, warned), warnings };
    },
  };
}
