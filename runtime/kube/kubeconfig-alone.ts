import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { Plugin } from "esbuild";

/**
 * For a build. Of client-node it takes the kubeconfig alone: the hundreds of generated classes stay out. The kubeconfig asks
 * their index for the two that a connection of the client's own is configured with.
 */
export const kubeconfigAlone: Plugin = {
  name: "kubeconfig",
  setup({ onResolve, onLoad }) {
    const client = dirname(createRequire(import.meta.url).resolve("@kubernetes/client-node"));
    const kubeconfig = join(client, "config.js");
    onResolve({ filter: /^@kubernetes\/client-node$/ }, () => ({ path: kubeconfig }));
    onResolve({ filter: /^\.\/gen\/index\.js$/ }, ({ importer, path }) =>
      importer === kubeconfig ? { path, namespace: "generated" } : undefined,
    );
    onLoad({ filter: /.*/, namespace: "generated" }, () => ({
      contents: 'export * from "./configuration.js"; export * from "./servers.js";',
      resolveDir: join(client, "gen"),
    }));
  },
};
