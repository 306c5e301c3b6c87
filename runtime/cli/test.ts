import { relative } from "node:path";
import { systemClock } from "../base/clock.ts";
import { WatchfireError } from "../base/errors.ts";
import { suggest } from "../base/suggest.ts";
import { cut } from "../base/wording.ts";
import { openCode } from "../catalog/function-code.ts";
import { fixtureFiles, readFixture } from "../dev/fixtures/fixture-file.ts";
import { FixtureRunner, type OwnCluster } from "../dev/fixtures/fixture-runner.ts";
import { table } from "../dev/table.ts";
import { checkExpression } from "../engine/filter/check-expression.ts";
import { connectDirect } from "../kube/direct.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { loadFunctions } from "../manifest/load.ts";
import { command } from "./command.ts";
import { startEmbeddedCluster } from "./embedded-cluster.ts";
import { readFolder } from "./operand.ts";
import { functions as functionsFolder } from "./options.ts";

/** Characters of a value in the table. */
const longestValue = 80;

export const test = command({
  name: "test",
  summary: "runs each function on its events/*.json, in the sandbox and on an embedded cluster, and compares",
  operands: "[FUNCTION...]",
  options: { functions: functionsFolder },
  async run({ options, operands }) {
    const folder = readFolder(options.functions);
    const { functions, faults } = await loadFunctions(folder, { checkExpression });
    for (const fault of faults) process.stderr.write(`${fault.message}\n`);
    const chosen = chosenOf(functions, operands);
    const code = openCode(folder, systemClock);
    const runner = new FixtureRunner(openCluster);
    const rows: string[][] = [];
    const told = new Set<string>();
    let [passed, failed] = [0, 0];
    try {
      for (const manifest of chosen) {
        for (const file of fixtureFiles(manifest)) {
          const shownFile = relative(process.cwd(), file);
          try {
            const fixture = readFixture(file);
            const differences = await runner.run(manifest, await code.bundle(manifest), fixture);
            if (differences.length === 0) passed++;
            else failed++;
            for (const { what, expected, actual } of differences)
              rows.push([shownFile, what, shown(expected), shown(actual)]);
          } catch (error) {
            if (!(error instanceof WatchfireError)) throw error;
            failed++;
            // A broken handler is that of all fixtures beside it.
            if (!told.has(error.message)) process.stderr.write(`${error.message}\n`);
            told.add(error.message);
          }
        }
      }
    } finally {
      code.close();
      await runner.close();
    }
    if (passed + failed === 0) {
      const what = "no function has a fixture: a file events/NAME.json beside its manifest";
      throw new WatchfireError("WF_DEV_FIXTURE", { what, place: { file: folder } });
    }
    if (rows.length > 0) {
      process.stdout.write(`${table(["FIXTURE", "WHAT", "EXPECTED", "GOT"], rows).join("\n")}\n\n`);
    }
    process.stdout.write(`${passed} passed, ${failed} failed\n`);
    return failed === 0 && faults.length === 0 ? 0 : 1;
  },
});

const shown = (value: string): string => cut(value.replace(/\s+/g, " "), longestValue);

/** @throws WatchfireError WF_CLI_USAGE for one that is not there */
function chosenOf(functions: readonly FunctionManifest[], names: readonly string[]): readonly FunctionManifest[] {
  const known = functions.map(({ name }) => name);
  const missing = names.find((name) => !known.includes(name));
  if (missing === undefined)
    return names.length === 0 ? functions : functions.filter(({ name }) => names.includes(name));
  const meant = suggest(missing, known);
  const hint = meant === undefined ? `the folder has: ${known.join(", ") || "none"}` : `did you mean ${meant}?`;
  throw new WatchfireError("WF_CLI_USAGE", { what: "test takes functions of the folder", actual: missing, hint });
}

async function openCluster(): Promise<OwnCluster> {
  const cluster = await startEmbeddedCluster({});
  const transport = connectDirect({ server: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken });
  return {
    transport,
    close: async () => {
      await transport.close();
      await cluster.close();
    },
  };
}
