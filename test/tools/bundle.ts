import { dirname } from "node:path";
import { systemClock } from "../../runtime/base/clock.ts";
import { Builders } from "../../runtime/bundle/builders.ts";
import type { Bundle } from "../../runtime/bundle/bundle.ts";

const builders = new Map<string, Builders>();

/**
 * Builds one handler from its own folder and the packages above it. Its builders are reused for the next handler of that folder.
 */
export function bundleFunction({ handler }: { readonly name?: string; readonly handler: string }): Promise<Bundle> {
  const folder = dirname(handler);
  const ofFolder = builders.get(folder) ?? new Builders({ folder, clock: systemClock });
  builders.set(folder, ofFolder);
  return ofFolder.bundle({ handler });
}
