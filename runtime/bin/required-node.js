import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** isolated-vm 7 and the SQLite module ask for it. */
const oldest = 24;

/** Whether this Node can run the runtime. */
export const isNewEnough = Number(process.versions.node.split(".")[0]) >= oldest;

/** In one line, what is to be done where neither this Node nor one of npm's can. */
export const needed = `WF_CLI_NODE: Node ${oldest} or newer is needed, got ${process.versions.node}; install it, or add it to the project with \`npm install --save-dev node@${oldest}\`\n`;

/** Why the runtime cannot run under Yarn's Plug'n'Play; undefined where it does not. Executors read their packages from folders alone. */
export const withoutFolders = process.versions.pnp
  ? "WF_CLI_PNP: the packages are in archives of Yarn's Plug'n'Play, which executors cannot read; put `nodeLinker: node-modules` into .yarnrc.yml, and run `yarn install`\n"
  : undefined;

/** The Node that npm installed beside this package; undefined where there is none. */
export function installedNode() {
  try {
    return join(dirname(createRequire(import.meta.url).resolve("node/package.json")), "bin", "node");
  } catch {
    return undefined;
  }
}
