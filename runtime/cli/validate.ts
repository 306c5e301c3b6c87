import { WatchfireError } from "../errors.ts";
import { checkExpression } from "../filter/check-expression.ts";
import { loadFunctions } from "../manifest/load.ts";
import { buildFunctions } from "./built-functions.ts";
import { command } from "./command.ts";
import { readFolder } from "./operand.ts";
import { functions as functionsFolder } from "./options.ts";

export const validate = command({
  name: "validate",
  summary: "checks every manifest, builds every handler, and loads it in a sandbox without calling it",
  options: { functions: functionsFolder },
  async run({ options }) {
    const folder = readFolder(options.functions);
    const { functions, rejected, faults } = await loadFunctions(folder, { checkExpression });
    // A folder that is not the one that was meant must not pass for a good one.
    if (functions.length + rejected.length + faults.length === 0) {
      throw new WatchfireError("WF_MANIFEST_NONE", { what: "there is no function below it", place: { file: folder } });
    }
    const built = await buildFunctions(functions);
    const all = [...faults, ...built.flatMap((each) => each.faults)];
    for (const fault of all) process.stderr.write(`${fault.message}\n`);
    const good = built.filter((each) => each.faults.length === 0).length;
    process.stdout.write(`${good} valid, ${all.length === 1 ? "1 fault" : `${all.length} faults`}\n`);
    return all.length === 0 ? 0 : 1;
  },
});
