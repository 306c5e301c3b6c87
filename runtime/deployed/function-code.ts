import { Builders } from "../bundle/builders.ts";
import type { Bundle } from "../bundle/bundle.ts";
import type { Clock } from "../clock.ts";
import { WatchfireError } from "../errors.ts";
import { isBuilt } from "../manifest/built.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { readBuilt } from "./built-folder.ts";

/** The code of a folder's functions. */
export interface FunctionCode {
  /** @throws WatchfireError of the bundle section */
  bundle(manifest: Pick<FunctionManifest, "name" | "handler">, signal?: AbortSignal): Promise<Bundle>;
  /** Ends what builds. */
  close(): void;
}

/**
 * The code of a folder: as it was built, where `watchfire build` wrote that folder, else built from its sources.
 * @throws WatchfireError WF_BUILD_DAMAGED where what was built is not whole
 */
export function openCode(folder: string, clock: Clock): FunctionCode {
  return isBuilt(folder) ? new BuiltCode(folder) : new Builders({ folder, clock });
}

/** Code that was built before, checked and read once. */
class BuiltCode implements FunctionCode {
  private readonly folder: string;
  private readonly built: ReturnType<typeof readBuilt>;

  constructor(folder: string) {
    this.folder = folder;
    this.built = readBuilt(folder);
  }

  async bundle({ name }: Pick<FunctionManifest, "name">): Promise<Bundle> {
    const built = this.built.get(name);
    if (built) return built.bundle;
    throw new WatchfireError("WF_BUILD_DAMAGED", { what: `${name} was not built`, place: { file: this.folder } });
  }

  close(): void {}
}
