import { existsSync } from "node:fs";
import { WatchfireError } from "../base/errors.ts";
import type { Bundle } from "../bundle/bundle.ts";
import { checkExpression } from "../engine/filter/check-expression.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { type LoadOptions, loadFunctions } from "../manifest/load.ts";
import type { FunctionCode } from "./function-code.ts";
import type { FunctionOffer, FunctionSet, FunctionSource } from "./function-source.ts";

/** How the placeholders of the folder's manifests are filled. */
interface FolderSourceOptions extends Pick<LoadOptions, "placeholders"> {
  /** Reads the values; called at each read of the folder. Default: manifests are read as they are. Throws WatchfireError. */
  readonly values?: () => LoadOptions["values"];
}

/** The functions of a folder. */
export class FolderSource implements FunctionSource {
  private readonly folder: string;
  private readonly code: FunctionCode;
  private readonly options: FolderSourceOptions;
  private ahead: Promise<FunctionSet> | undefined;

  /** `code`: code of the same folder. */
  constructor(folder: string, code: FunctionCode, options: FolderSourceOptions = { placeholders: "build" }) {
    this.folder = folder;
    this.code = code;
    this.options = options;
  }

  /**
   * Begins to read, and builds each function in other processes as soon as its manifest has been read. The first `read` returns
   * the result or rejects with the failure.
   */
  begin(): void {
    this.ahead = this.lookAndBuild();
    this.ahead.catch(() => undefined); // the caller of `read` gets the error
  }

  read(): Promise<FunctionSet> {
    const { ahead } = this;
    this.ahead = undefined;
    return ahead ?? this.look();
  }

  private async lookAndBuild(): Promise<FunctionSet> {
    const begun = new Map<FunctionManifest, BundleAhead>();
    try {
      const set = await this.look((manifest) => begun.set(manifest, new BundleAhead(this.code, manifest)));
      const functions = set.functions.map((offer) => {
        const bundle = begun.get(offer.manifest);
        begun.delete(offer.manifest);
        return bundle?.offered(offer) ?? offer;
      });
      return { ...set, functions };
    } finally {
      // The remaining bundles are of functions whose name another claims, or nothing could be read.
      for (const bundle of begun.values()) bundle.abandon();
    }
  }

  private async look(onManifest?: (manifest: FunctionManifest) => void): Promise<FunctionSet> {
    const { placeholders } = this.options;
    let values: LoadOptions["values"];
    try {
      values = this.options.values?.();
    } catch (error) {
      if (!(error instanceof WatchfireError)) throw error;
      // The functions that run continue with the values they have.
      return { functions: [], rejected: [], faults: error.faults, complete: false };
    }
    const {
      functions,
      rejected,
      faults: all,
    } = await loadFunctions(this.folder, {
      checkExpression,
      texts: this.code.manifests,
      onManifest,
      values,
      placeholders,
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
      // A manifest without a valid function name may belong to any function.
      complete: faults.length === 0 && rejected.every(({ name }) => name !== undefined),
    };
  }
}

/** A function's code that is built before it is requested. */
class BundleAhead {
  private readonly controller = new AbortController();
  private bundle: Promise<Bundle> | undefined;

  constructor(code: FunctionCode, manifest: FunctionManifest) {
    this.bundle = code.bundle(manifest, this.controller.signal);
    this.bundle.catch(() => undefined); // the caller of `bundle` gets the error
  }

  /** Returns the offer with this one as its first bundle. */
  offered(offer: FunctionOffer): FunctionOffer {
    return {
      ...offer,
      bundle: (signal) => {
        const first = this.bundle;
        if (!first) return offer.bundle(signal);
        this.bundle = undefined;
        signal?.addEventListener("abort", () => this.controller.abort(signal.reason), { once: true });
        return first;
      },
    };
  }

  abandon(): void {
    this.controller.abort();
  }
}
