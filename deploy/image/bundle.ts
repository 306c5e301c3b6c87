import { join } from "node:path";
import type { Plugin } from "esbuild";
import { bundleRuntime, runtimeSources as runtime } from "../bundle/bundle.ts";

/** Commands that a pod and its operator need. The embedded cluster, and commands that use a project's sources, are excluded. */
const commands = [
  ...["start", "executor", "validate", "rbac", "doctor"],
  ...["status", "support", "explain", "runs", "run", "logs", "redeliver", "pause", "dead-letters", "slots", "console"],
  ...["migrate", "backup", "restore"],
];

/** Bundles the runtime for an image. Returns the input files. */
export const bundleImage = (folder: string): Promise<string[]> =>
  bundleRuntime(folder, {
    programs: { watchfire: join(import.meta.dirname, "entry.ts") },
    plugins: [noBuilders, commandsOfThePod],
  });

/** Excludes the builders: the image has no compiler, so nothing is built next to a pod's token. */
const noBuilders: Plugin = {
  name: "builders",
  setup({ onLoad }) {
    onLoad({ filter: /\/bundle\/builders\.ts$/ }, () => ({
      resolveDir: join(runtime, "bundle"),
      contents: `
        import { WatchfireError } from "../base/errors.ts";
        export class Builders {
          constructor({ folder }) { this.folder = folder; }
          async bundle() {
            throw new WatchfireError("WF_BUILD_SOURCES", { what: "the image builds nothing", place: { file: this.folder } });
          }
          warm() {}
          close() {}
        }`,
    }));
  },
};

/** Replaces the other commands by a message that they are not in the image. */
const commandsOfThePod: Plugin = {
  name: "commands",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^\.\/[\w-]+\.ts$/ }, ({ kind, path, importer }) => {
      const name = path.slice(2, -3);
      const isCommand = kind === "dynamic-import" && importer.endsWith("/cli/main.ts");
      return isCommand && !commands.includes(name) ? { path: name, namespace: "absent" } : undefined;
    });
    onLoad({ filter: /.*/, namespace: "absent" }, ({ path: name }) => ({
      resolveDir: join(runtime, "cli"),
      contents: `
        import { WatchfireError } from "../base/errors.ts";
        const refuse = () => {
          throw new WatchfireError("WF_CLI_USAGE", {
            what: "the image does not have this command", actual: "${name}", hint: "run it with npx in a checkout" });
        };
        const command = { name: "${name}", summary: "not in the image", get options() { return refuse(); }, run: refuse };
        export { command as ${camelCase(name)} };`,
    }));
  },
};

const camelCase = (name: string): string => name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
