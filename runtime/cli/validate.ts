import { WatchfireError } from "../errors.ts";
import { checkExpression } from "../filter/check-expression.ts";
import { loadFunctions } from "../manifest/load.ts";
import { buildFunctions } from "./built-functions.ts";
import { command } from "./command.ts";
import { readFolder } from "./operand.ts";
import { functions as functionsFolder, serviceAccount } from "./options.ts";
import { warnOfReach } from "./warning.ts";

export const validate = command({
  name: "validate",
  summary: "checks every manifest, builds every handler, and loads it in a sandbox without calling it",
  options: {
    functions: functionsFolder,
    namespace: {
      value: "NS",
      summary: "the runtime's namespace, to warn of permissions that reach it; without it: of those for all",
    },
    "service-account": serviceAccount,
  },
  async run({ options }) {
    const folder = readFolder(options.functions);
    const loaded = await loadFunctions(folder, { checkExpression });
    const { functions, rejected, faults } = loaded;
    // A folder that is not the one that was meant must not pass for a good one.
    if (functions.length + rejected.length + faults.length === 0) {
      throw new WatchfireError("WF_MANIFEST_NONE", { what: "there is no function below it", place: { file: folder } });
    }
    const built = await buildFunctions(folder, functions);
    const all = [...faults, ...built.flatMap((each) => each.faults)];
    for (const fault of all) process.stderr.write(`${fault.message}\n`);
    const { namespace, "service-account": account } = options;
    const warnings = warnOfReach(loaded, { namespace, account });
    const good = built.filter((each) => each.faults.length === 0).length;
    const counts = [
      `${good} valid`,
      counted(all.length, "fault"),
      ...(warnings > 0 ? [counted(warnings, "warning")] : []),
    ];
    process.stdout.write(`${counts.join(", ")}\n`);
    return all.length === 0 ? 0 : 1;
  },
});

const counted = (number: number, what: string): string => `${number} ${what}${number === 1 ? "" : "s"}`;
