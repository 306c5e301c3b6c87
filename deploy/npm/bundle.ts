import { join } from "node:path";
import { build, type Plugin } from "esbuild";
import { programBody } from "../../runtime/bundle/program-script.ts";
import { bundleRuntime, runtimeSources } from "../bundle/bundle.ts";
import { templatesInside } from "../bundle/plugins.ts";

/** Packages outside of the bundle: native code, and packages that are published separately. */
export const external = ["esbuild", "isolated-vm", "@watchfire/cluster", "@watchfire/sdk"];

/** The NATS client; users who store checkpoints on NATS install it. */
const natsClient = ["@nats-io/transport-node", "@nats-io/jetstream", "@nats-io/obj"];

const programs = {
  watchfire: join(runtimeSources, "bin/watchfire.js"),
  preinstall: join(runtimeSources, "bin/preinstall.js"),
};

/** Bundles the runtime for its npm package, with every command. Returns the input files. */
export const bundlePackage = (folder: string): Promise<string[]> =>
  bundleRuntime(folder, {
    programs,
    plugins: [builderProgramMade, templatesInside, noFormatter],
    // It reads files from its own folder at run time, which the bundle would not contain.
    external: ["@watchfire/cluster", ...natsClient],
  });

/** Bundles `create-watchfire` into one program that includes the templates. Returns the input files. */
export async function bundleCreate(folder: string, sources: string): Promise<string[]> {
  const { metafile } = await build({
    entryPoints: { "create-watchfire": join(sources, "main.js") },
    outdir: folder,
    bundle: true,
    format: "esm",
    platform: "node",
    // It shows users of an older Node what is needed, so it must run there.
    target: "node20",
    legalComments: "none",
    metafile: true,
    plugins: [templatesInside],
  });
  return Object.keys(metafile.inputs);
}

/** Removes the formatter of the schema compiler, which takes 9 MB: `watchfire types` formats its files itself. */
const noFormatter: Plugin = {
  name: "formatter",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^prettier$/ }, ({ path }) => ({ path, namespace: "absent-formatter" }));
    onLoad({ filter: /.*/, namespace: "absent-formatter" }, () => ({
      contents: 'export const format = () => { throw new Error("there is no formatter in this bundle"); };',
    }));
  },
};

/** Embeds the builder's program, instead of bundling it at each start. */
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
