import { join } from "node:path";
import { build, type Plugin } from "esbuild";
import { programBody } from "../../runtime/bundle/program-script.ts";
import { bundleRuntime, runtimeSources } from "../bundle/bundle.ts";
import { templatesInside } from "../bundle/plugins.ts";

/** What is no part of the bundle: native code, and packages that are published by themselves. */
export const external = ["esbuild", "isolated-vm", "@watchfire/cluster", "@watchfire/sdk"];

/** Who keeps positions on NATS installs its client. */
const natsClient = ["@nats-io/transport-node", "@nats-io/jetstream", "@nats-io/obj"];

const programs = {
  watchfire: join(runtimeSources, "bin/watchfire.js"),
  preinstall: join(runtimeSources, "bin/preinstall.js"),
};

/** Bundles the runtime as its package has it: with every command. Gives the files that went in. */
export const bundlePackage = (folder: string): Promise<string[]> =>
  bundleRuntime(folder, {
    programs,
    plugins: [builderProgramMade, templatesInside, noFormatter],
    // It reads files beside it at run time, and the bundle would not have them.
    external: ["@watchfire/cluster", ...natsClient],
  });

/** Bundles `create-watchfire` into one program, templates and all. Gives the files that went in. */
export async function bundleCreate(folder: string, sources: string): Promise<string[]> {
  const { metafile } = await build({
    entryPoints: { "create-watchfire": join(sources, "main.js") },
    outdir: folder,
    bundle: true,
    format: "esm",
    platform: "node",
    // It says what an older Node needs, so that it runs on one.
    target: "node20",
    legalComments: "none",
    metafile: true,
    plugins: [templatesInside],
  });
  return Object.keys(metafile.inputs);
}

/** `watchfire types` lays its files out by itself: what it compiles schemas with brings a formatter of 9 MB. */
const noFormatter: Plugin = {
  name: "formatter",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^prettier$/ }, ({ path }) => ({ path, namespace: "absent-formatter" }));
    onLoad({ filter: /.*/, namespace: "absent-formatter" }, () => ({
      contents: 'export const format = () => { throw new Error("there is no formatter in this bundle"); };',
    }));
  },
};

/** The builder's program is made here, instead of at each start. */
const builderProgramMade: Plugin = {
  name: "builder-program",
  setup({ onLoad }) {
    onLoad({ filter: /\/bundle\/program-script\.ts$/ }, async () => ({
      resolveDir: join(runtimeSources, "bundle"),
      contents: `
        import { placed } from "./program-place.ts";
        const body = ${JSON.stringify(await programBody(join(runtimeSources, "bundle/builder/main.ts")))};
        export const programScript = async (main) => placed(body, main);`,
    }));
  },
};
