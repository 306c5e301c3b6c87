import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import type { Difference } from "@watchfire/sdk/testing";
import { systemClock } from "../base/clock.ts";
import { readEnvironment } from "../base/config.ts";
import { WatchfireError } from "../base/errors.ts";
import { suggest } from "../base/suggest.ts";
import { openCode } from "../catalog/function-code.ts";
import { dotEnv } from "../dev/dot-env.ts";
import { fixtureFiles, readFixture } from "../dev/fixtures/fixture-file.ts";
import { FixtureRunner, type OwnCluster } from "../dev/fixtures/fixture-runner.ts";
import { RealCluster } from "../dev/real/real-cluster.ts";
import { findRealPrograms, type RealPrograms } from "../dev/real/real-programs.ts";
import { inOneLine, tableOfTexts } from "../dev/table.ts";
import { checkExpression } from "../engine/filter/check-expression.ts";
import { connectDirect } from "../kube/direct.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { type LoadedFunctions, loadFunctions } from "../manifest/load.ts";
import { type CaseFault, describeFinding, faultOfCase, githubAnnotation, junitOf } from "./annotations.ts";
import { command } from "./command.ts";
import { startEmbeddedCluster } from "./embedded-cluster.ts";
import { readFolder } from "./operand.ts";
import { functions as functionsFolder, output, real } from "./options.ts";
import { readValues, valuesOption } from "./values.ts";
import { warn } from "./warning.ts";

export const test = command({
  name: "test",
  summary:
    "runs each function on its events/*.json, in the sandbox and on an embedded cluster, and compares the results",
  operands: "[FUNCTION...]",
  options: { functions: functionsFolder, values: valuesOption, real, output: output("json", "junit", "github") },
  async run({ options, operands, given }) {
    const programs = given.has("real") ? findRealPrograms(readEnvironment().variables) : undefined;
    const folder = readFolder(options.functions);
    const values = readValues(options.values);
    const loaded = await loadFunctions(folder, { checkExpression, values, placeholders: "option" });
    // A manifest that is refused may be the one that uses a value.
    const faults = loaded.faults.length > 0 ? loaded.faults : (values?.unused() ?? []);
    const chosen = chosenOf(loaded, operands);
    const local = dotEnv(folder);
    const code = openCode(folder, systemClock);
    const runner = new FixtureRunner(programs ? () => openReal(programs) : openEmbedded, local);
    const results: FixtureResult[] = [];
    const unset = new Set<string>();
    try {
      for (const manifest of chosen) {
        const localEnv = local.read(manifest.name);
        for (const file of fixtureFiles(manifest)) {
          const of = { function: manifest.name, fixture: relative(process.cwd(), file) };
          try {
            const fixture = readFixture(file);
            for (const name of localEnv ? unsetIn(manifest, { ...localEnv, ...fixture.env }) : [])
              unset.add(`${manifest.file}: ${name}`);
            const differences = await runner.run(manifest, await code.bundle(manifest), fixture);
            results.push({ ...of, differences });
          } catch (error) {
            if (!(error instanceof WatchfireError)) throw error;
            results.push({ ...of, differences: [], fault: error });
          }
        }
      }
    } finally {
      code.close();
      await runner.close();
    }
    const without = chosen.filter(({ name }) => !results.some((each) => each.function === name));
    const isNamed = operands.length > 0 || chosen.length === 0;
    // A function that is refused may have a fixture.
    if (results.length === 0 && faults.length === 0 && isNamed) {
      const what = `${operands.join(", ") || "the folder"} has no fixture`;
      const hint = without[0] ? howToAdd(without[0]) : "add a function: watchfire new NAME";
      throw new WatchfireError("WF_DEV_FIXTURE", { what, place: { file: folder }, hint });
    }
    for (const each of without) warn(`${each.name} has no fixture; ${howToAdd(each)}`);
    for (const each of unset) warn(`${each} is empty, since it is in neither ${local.file} nor the fixture`);
    print(options.output, faults, results);
    return results.every(isPassed) && faults.length === 0 ? 0 : 1;
  },
});

const howToAdd = ({ name, file }: FunctionManifest): string =>
  `write ${relative(process.cwd(), join(dirname(file), "events", "NAME.json"))}, or: watchfire record ${name}`;

/** Returns the variables that must be from a Secret and have no value. */
const unsetIn = ({ env }: FunctionManifest, values: Readonly<Record<string, string>>): string[] =>
  env.flatMap(({ name, secretKeyRef }) =>
    secretKeyRef && !secretKeyRef.optional && !Object.hasOwn(values, name) ? name : [],
  );

/** The result of one fixture. */
interface FixtureResult {
  readonly function: string;
  /** Its path, relative to the working directory. */
  readonly fixture: string;
  readonly differences: readonly Difference[];
  /** Why it could not be run. */
  readonly fault?: WatchfireError;
}

const isPassed = ({ differences, fault }: FixtureResult): boolean => differences.length === 0 && !fault;

function print(format: string, faults: readonly WatchfireError[], results: readonly FixtureResult[]): void {
  const failed = results.filter((each) => !isPassed(each));
  const counts = { passed: results.length - failed.length, failed: failed.length };
  const say = (text: string) => process.stdout.write(`${text}\n`);
  if (format === "json") {
    const fixtures = results.map(({ fault, ...each }) => ({
      ...each,
      ...(fault && { fault: describeFinding(fault) }),
    }));
    say(JSON.stringify({ ...counts, fixtures, faults: faults.map(describeFinding) }, null, 2));
    return;
  }
  if (format === "junit") {
    const broken = faults.map((fault) => ({ name: fault.code, faults: [faultOfCase(fault)] }));
    const cases = results.map((each) => ({ name: `${each.function}: ${each.fixture}`, faults: caseFaults(each) }));
    say(junitOf("watchfire test", [...broken, ...cases]));
    return;
  }
  if (format === "github") {
    const annotations = [...faults.map(faultOfCase), ...results.flatMap(caseFaults)];
    for (const each of annotations) say(githubAnnotation("error", each));
  } else {
    // A broken handler is reported once for all its fixtures.
    const told = new Set([...faults, ...results.flatMap(({ fault }) => fault ?? [])].map(({ message }) => message));
    for (const message of told) process.stderr.write(`${message}\n`);
    const rows = results.flatMap(({ fixture, differences }) =>
      differences.map(({ what, expected, actual }) => [fixture, what, expected, actual]),
    );
    if (rows.length > 0) say(`${tableOfTexts(["FIXTURE", "WHAT", "EXPECTED", "GOT"], rows, 2).join("\n")}\n`);
  }
  say(`${counts.passed} passed, ${counts.failed} failed`);
}

function caseFaults({ fixture, differences, fault }: FixtureResult): CaseFault[] {
  if (fault) return [faultOfCase(fault)];
  return differences.map(({ what, expected, actual }) => ({
    code: "different",
    message: `${what}: expected ${inOneLine(expected)}, got ${inOneLine(actual)}`,
    place: { file: fixture },
  }));
}

/** Returns the accepted functions among those named, or all. @throws WatchfireError WF_CLI_USAGE for an unknown function */
function chosenOf({ functions, rejected }: LoadedFunctions, names: readonly string[]): readonly FunctionManifest[] {
  const known = [...functions, ...rejected].flatMap(({ name }) => name ?? []);
  const missing = names.find((name) => !known.includes(name));
  if (missing === undefined)
    return names.length === 0 ? functions : functions.filter(({ name }) => names.includes(name));
  const meant = suggest(missing, known);
  const hint = meant === undefined ? `the folder has: ${known.join(", ") || "none"}` : `did you mean ${meant}?`;
  throw new WatchfireError("WF_CLI_USAGE", { what: "test takes functions of the folder", actual: missing, hint });
}

async function openEmbedded(): Promise<OwnCluster> {
  const cluster = await startEmbeddedCluster({ keepOrphans: true });
  const transport = connectDirect({ server: cluster.url, ca: cluster.caCertificate, token: cluster.adminToken });
  return {
    transport,
    close: async () => {
      await transport.close();
      await cluster.close();
    },
  };
}

/** Without a controller manager: nothing changes but by the handler. */
async function openReal(programs: RealPrograms): Promise<OwnCluster> {
  const folder = await mkdtemp(join(tmpdir(), "watchfire-real-"));
  const removeFolder = () => rm(folder, { recursive: true, force: true, maxRetries: 5 });
  try {
    const cluster = await RealCluster.start({ programs: { ...programs, manager: undefined }, folder });
    const transport = connectDirect({ server: cluster.url, ca: cluster.ca, token: cluster.token });
    return {
      transport,
      close: async () => {
        await transport.close();
        await cluster.close();
        await removeFolder();
      },
    };
  } catch (error) {
    await removeFolder();
    throw error;
  }
}
