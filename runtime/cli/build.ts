import { resolve } from "node:path";
import { WatchfireError } from "../base/errors.ts";
import { appliedMapLimit } from "../bundle/limits.ts";
import { isBelow } from "../bundle/sources.ts";
import { writeBuilt } from "../catalog/built-folder.ts";
import { hashOf, portableMap } from "../catalog/function-parts.ts";
import { manifestText } from "../catalog/manifest-text.ts";
import { SigningKey } from "../catalog/signature.ts";
import { isBuilt } from "../manifest/built.ts";
import { buildFunctions } from "./built-functions.ts";
import { command } from "./command.ts";
import { readFolder } from "./operand.ts";
import { functions as functionsFolder } from "./options.ts";
import { readManifests } from "./rbac.ts";
import { readValues, valuesOption } from "./values.ts";

export const build = command({
  name: "build",
  summary: "builds the functions into a folder, for an image; `start` runs that folder unchanged",
  options: {
    functions: functionsFolder,
    out: {
      value: "DIR",
      summary: "the folder to write to; the output of an earlier build is deleted",
      default: "build",
    },
    values: valuesOption,
    sign: { value: "KEY", summary: "signs the build with this ed25519 private key, a PEM file" },
  },
  async run({ options }) {
    const folder = readFolder(options.functions);
    const key = options.sign === undefined ? undefined : SigningKey.read(options.sign);
    const [root, out] = [resolve(folder), resolve(options.out)];
    if (isBelow(root, out) || isBelow(out, root)) {
      throw new WatchfireError("WF_CLI_USAGE", { what: "--out is inside the functions folder, or contains it" });
    }
    if (isBuilt(folder)) throw new WatchfireError("WF_CLI_USAGE", { what: `${folder} is what a build wrote` });
    const values = readValues(options.values);
    const loaded = await readManifests(folder, values);
    if (!loaded) return 1;
    if (loaded.functions.length === 0) {
      throw new WatchfireError("WF_MANIFEST_NONE", { what: "there is no function below it", place: { file: folder } });
    }
    const built = await buildFunctions(folder, loaded.functions);
    const faults = built.flatMap((each) => each.faults);
    for (const fault of faults) process.stderr.write(`${fault.message}\n`);
    if (faults.length > 0) return 1;
    const parts = built.flatMap(({ manifest, bundle }) => {
      if (!bundle) return [];
      const sourceMap = portableMap(bundle.sourceMap, root);
      // A larger source map would not be applied to any stack.
      const kept = sourceMap.length <= appliedMapLimit ? sourceMap : "";
      return [
        { name: manifest.name, manifest: manifestText(manifest, values), script: bundle.script, sourceMap: kept },
      ];
    });
    writeBuilt(out, parts, key);
    for (const { name, ...rest } of parts) {
      const size = Math.ceil((rest.script.length + rest.sourceMap.length) / 1024);
      process.stdout.write(`${name}  ${hashOf(rest).slice(0, 16)}  ${size} KiB\n`);
    }
    return 0;
  },
});
