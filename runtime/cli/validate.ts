import { bundleFunction } from "../bundle/bundle-function.ts";
import { WatchfireError } from "../errors.ts";
import { checkExpression } from "../filter/check-expression.ts";
import { loadFunctions } from "../manifest/load.ts";
import { command } from "./command.ts";
import { readFolder } from "./operand.ts";
import { functions as functionsFolder } from "./options.ts";

export const validate = command({
  name: "validate",
  summary: "checks every manifest, and builds every handler without running it",
  options: { functions: functionsFolder },
  async run({ options }) {
    const { functions, faults } = await loadFunctions(readFolder(options.functions), { checkExpression });
    const built = await Promise.allSettled(functions.map(bundleFunction));
    const all = [...faults];
    for (const result of built) {
      if (result.status === "fulfilled") continue;
      if (!(result.reason instanceof WatchfireError)) throw result.reason;
      all.push(...result.reason.faults);
    }
    for (const fault of all) process.stderr.write(`${fault.message}\n`);
    const good = built.filter((result) => result.status === "fulfilled").length;
    process.stdout.write(`${good} valid, ${all.length === 1 ? "1 fault" : `${all.length} faults`}\n`);
    return all.length === 0 ? 0 : 1;
  },
});
