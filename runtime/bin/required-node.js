import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** Required by isolated-vm 7 and by the SQLite module. */
const oldest = 24;

/** Whether this Node can run the runtime. */
export const isNewEnough = Number(process.versions.node.split(".")[0]) >= oldest;

/** One-line message for when neither this Node nor one installed by npm can run it. */
export const needed = `WF_CLI_NODE: Node ${oldest} or newer is needed, got ${process.versions.node}; install it, or add it to the project with \`npm install --save-dev node@${oldest}\`\n`;

/**
 * Message for Yarn's Plug'n'Play, under which the runtime cannot run because executors read packages only from folders; else
 * `undefined`.
 */
export const withoutFolders = process.versions.pnp
  ? "WF_CLI_PNP: the packages are in archives of Yarn's Plug'n'Play, which executors cannot read; put `nodeLinker: node-modules` into .yarnrc.yml, and run `yarn install`\n"
  : undefined;

/** Returns the Node that npm installed next to this package, or `undefined`. */
export function installedNode() {
  try {
    return join(dirname(createRequire(import.meta.url).resolve("node/package.json")), "bin", "node");
  } catch {
    return undefined;
  }
}
