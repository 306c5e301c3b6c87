import type { Clock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { Builders, type BuildersOptions } from "../bundle/builders.ts";
import type { Bundle } from "../bundle/bundle.ts";
import { isBuilt } from "../manifest/built.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { readBuilt } from "./built-folder.ts";
import type { TrustedKeys } from "./signature.ts";

/** The code of a folder's functions. */
export interface FunctionCode {
  /** The manifests' texts by file, as they were verified together with the code; `undefined`: read them from the folder. */
  readonly manifests?: ReadonlyMap<string, string>;
  /** @throws WatchfireError of the bundle section */
  bundle(manifest: Pick<FunctionManifest, "name" | "handler">, signal?: AbortSignal): Promise<Bundle>;
  /** Ends the builders. */
  close(): void;
}

/**
 * Opens the code of a folder: prebuilt if `watchfire build` wrote the folder, otherwise built from sources. With `trust`, only
 * code signed by one of these keys, and never sources.
 * @throws WatchfireError WF_BUILD_DAMAGED if the built code is incomplete, WF_BUILD_UNTRUSTED
 */
export function openCode(
  folder: string,
  clock: Clock,
  trust?: TrustedKeys,
  options: Pick<BuildersOptions, "idleMs"> = {},
): FunctionCode {
  if (isBuilt(folder)) return new BuiltCode(folder, trust);
  return trust ? noCode : new Builders({ folder, clock, ...options });
}

/** Code of a folder without anything signed. Files added later are ignored. */
const noCode: FunctionCode = {
  manifests: new Map(),
  bundle: () => Promise.reject(new WatchfireError("WF_BUILD_UNTRUSTED", { what: "there is no signature" })),
  close: () => {},
};

/** Prebuilt code, verified and read once. */
class BuiltCode implements FunctionCode {
  readonly manifests: ReadonlyMap<string, string>;
  private readonly folder: string;
  private readonly built: ReturnType<typeof readBuilt>;

  constructor(folder: string, trust: TrustedKeys | undefined) {
    this.folder = folder;
    this.built = readBuilt(folder, trust);
    this.manifests = new Map([...this.built.values()].map(({ file, manifest }) => [file, manifest]));
  }

  async bundle({ name }: Pick<FunctionManifest, "name">): Promise<Bundle> {
    const built = this.built.get(name);
    if (built) return built.bundle;
    throw new WatchfireError("WF_BUILD_DAMAGED", { what: `${name} was not built`, place: { file: this.folder } });
  }

  close(): void {}
}
