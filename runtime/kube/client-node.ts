import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** What is used of it. */
type Client = Pick<typeof import("@kubernetes/client-node"), "KubeConfig">;

/**
 * client-node's reader of kubeconfigs. The package is a thousand files of generated classes, which take 370 ms and 56
 * MiB to load. The one file that `npm ci` leaves of it takes 26 ms and 7 MiB beside undici, which the transport needs.
 * @param bundled that file; where it is missing or damaged, the package itself is loaded
 */
export async function importClient(bundled?: string): Promise<Client> {
  try {
    return await import(pathToFileURL(bundled ?? clientBundle()).href);
  } catch {
    return import("@kubernetes/client-node");
  }
}

/** Where that file is: in the installation's own `node_modules/.cache`, which only its owner writes to. */
export function clientBundle(): string {
  const require = createRequire(import.meta.url);
  const manifest = require.resolve("@kubernetes/client-node/package.json");
  const { version } = require(manifest) as { version: string };
  return join(manifest, "../../..", ".cache", "watchfire", `client-node-${version}.mjs`);
}
