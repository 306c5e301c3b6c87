import { existsSync } from "node:fs";
import { checkExpression } from "../dispatch/filter/check-expression.ts";
import { loadFunctions } from "../manifest/load.ts";
import type { FunctionCode } from "./function-code.ts";
import type { FunctionOffer, FunctionSet, FunctionSource } from "./function-source.ts";

/** The functions of a folder. */
export class FolderSource implements FunctionSource {
  private readonly folder: string;
  private readonly code: FunctionCode;
  private ahead: Promise<FunctionSet> | undefined;

  /** `code`: of the same folder. */
  constructor(folder: string, code: FunctionCode) {
    this.folder = folder;
    this.code = code;
  }

  /**
   * Reads and builds in other processes, while this one is busy with other things: the first `read` gives that. Never
   * rejects.
   */
  begin(): void {
    this.ahead = this.look().then((set) => ({ ...set, functions: set.functions.map(bundledAhead) }));
    this.ahead.catch(() => undefined); // whoever reads hears of it
  }

  read(): Promise<FunctionSet> {
    const { ahead } = this;
    this.ahead = undefined;
    return ahead ?? this.look();
  }

  private async look(): Promise<FunctionSet> {
    const {
      functions,
      rejected,
      faults: all,
    } = await loadFunctions(this.folder, {
      checkExpression,
      texts: this.code.manifests,
    });
    const ofManifests = new Set(rejected.flatMap(({ faults }) => faults));
    const faults = all.filter((fault) => !ofManifests.has(fault));
    return {
      functions: functions.map((manifest) => ({
        manifest,
        origin: { type: "folder", manifest: manifest.file },
        isGone: () => !existsSync(manifest.file),
        bundle: (signal) => this.code.bundle(manifest, signal),
      })),
      rejected: rejected.map((each) => ({ ...each, origin: { type: "folder", manifest: each.file } })),
      faults,
      // A manifest without a name that can be a function's may be anybody's.
      complete: faults.length === 0 && rejected.every(({ name }) => name !== undefined),
    };
  }
}

/** Its first bundle is what is being built now. */
function bundledAhead(offer: FunctionOffer): FunctionOffer {
  const controller = new AbortController();
  let ahead: ReturnType<FunctionOffer["bundle"]> | undefined = offer.bundle(controller.signal);
  ahead.catch(() => undefined); // whoever asks for it hears of it
  return {
    ...offer,
    bundle: (signal) => {
      const first = ahead;
      if (!first) return offer.bundle(signal);
      ahead = undefined;
      signal?.addEventListener("abort", () => controller.abort(signal.reason), { once: true });
      return first;
    },
  };
}
