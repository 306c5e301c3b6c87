import { existsSync } from "node:fs";
import { checkExpression } from "../dispatch/filter/check-expression.ts";
import { loadFunctions } from "../manifest/load.ts";
import type { FunctionCode } from "./function-code.ts";
import type { FunctionSet, FunctionSource } from "./function-source.ts";

/** The functions of a folder. */
export class FolderSource implements FunctionSource {
  private readonly folder: string;
  private readonly code: FunctionCode;

  /** `code`: of the same folder. */
  constructor(folder: string, code: FunctionCode) {
    this.folder = folder;
    this.code = code;
  }

  async read(): Promise<FunctionSet> {
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
