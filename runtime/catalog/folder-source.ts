import { existsSync } from "node:fs";
import type { Bundle } from "../bundle/bundle.ts";
import { checkExpression } from "../engine/filter/check-expression.ts";
import type { FunctionManifest } from "../manifest/function.ts";
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
   * Reads, and builds each function in other processes as soon as its manifest was read: the first `read` gives that, or why
   * it failed.
   */
  begin(): void {
    this.ahead = this.lookAndBuild();
    this.ahead.catch(() => undefined); // whoever reads hears of it
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
      // Another function claims the name of each that is left, or nothing could be read.
      for (const bundle of begun.values()) bundle.abandon();
    }
  }

  private async look(onManifest?: (manifest: FunctionManifest) => void): Promise<FunctionSet> {
    const {
      functions,
      rejected,
      faults: all,
    } = await loadFunctions(this.folder, {
      checkExpression,
      texts: this.code.manifests,
      onManifest,
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

/** A function's code that is being built before anybody asks for it. */
class BundleAhead {
  private readonly controller = new AbortController();
  private bundle: Promise<Bundle> | undefined;

  constructor(code: FunctionCode, manifest: FunctionManifest) {
    this.bundle = code.bundle(manifest, this.controller.signal);
    this.bundle.catch(() => undefined); // whoever asks for it hears of it
  }

  /** The offer whose first bundle is this one. */
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
