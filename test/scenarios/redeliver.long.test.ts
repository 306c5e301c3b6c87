import { beforeEach, describe, expect, test } from "vitest";
import { type Result, watchfire } from "../cli/run.ts";
import { Session } from "../cli/session.ts";
import type { Installation } from "../tools/installation.ts";
import type { Team } from "../tools/team.ts";
import { createTeam, install } from "./cluster.ts";

let team: Team;
let runtime: Installation;

const command = (...args: string[]): Promise<Result> => watchfire([...args, "--data", runtime.data]);
const runId = async (name: string, event: string): Promise<string> => {
  const { runs } = JSON.parse((await command("runs", name, "-o", "json")).stdout);
  return runs.find(({ type, object }: { type: string; object: string }) => `${type} ${object}` === event)?.id;
};

beforeEach(async () => {
  team = await createTeam();
  runtime = await install();
});

describe("what a function did", () => {
  test.each(["runs greet", "explain greet TEAM/a", "dead-letters list"])(
    "is told on a terminal in colours, and without a written escape, by `watchfire %s`",
    async (words) => {
      await runtime.define("greet", {
        watch: team.watch(),
        spec: { delivery: { retry: { maxAttempts: 1 } } },
        work: `throw new Error("no");`,
      });
      await runtime.start();
      await team.make("a");
      await runtime.sees("it is given up", async () => (await runtime.deadLetters()).length === 1);
      const args = [...words.replace("TEAM", team.name).split(" "), "--data", runtime.data];
      const { stdout } = await watchfire(args, { FORCE_COLOR: "1" });
      expect(stdout).toContain(String.fromCharCode(27));
      expect(stdout).not.toContain("u001b");
    },
  );

  test("is told by its runs, newest first, with the ID, the outcome and the error, and by its log's lines", async () => {
    const work = `if (event.object.data.v === "2") throw new Error("two is odd");`;
    await runtime.define("greet", { watch: team.watch(), spec: { delivery: { retry: { maxAttempts: 1 } } }, work });
    await runtime.define("other", { watch: team.watch() });
    await runtime.start();
    expect((await command("runs", "greet")).stdout).toContain("no attempt of function greet is on record");
    await team.make("a");
    await runtime.hears("greet", "Added a=1");
    await team.set("a", 2);
    await runtime.sees("it is given up", async () => (await runtime.deadLetters()).length === 1);
    const { stdout } = await command("runs", "greet");
    const [header, ...rows] = stdout.trimEnd().split("\n");
    expect(header).toMatch(/ENDED AT +EVENT +OBJECT +ATTEMPT +OUTCOME +WAITED +TOOK +CALLS +ID +ERROR/);
    expect(rows).toHaveLength(2);
    expect(rows[0]).toMatch(
      new RegExp(`Modified +ConfigMap ${team.name}/a +1 +failed +\\d+ ms +\\S+/Modified +Error: two is odd`),
    );
    expect(rows[1]).toMatch(/Added .* ok +\d+ ms +\S+\/Added$/);
    const logs = await command("logs", "greet");
    expect(logs.stdout).toMatch(/told +line=Added a=1/);
    expect(logs.stdout).toMatch(/attempt failed/);
    expect(logs.stdout).toMatch(/replay=watchfire dead-letters replay 1/);
    expect(logs.stdout).not.toContain("other");
    const json = (await command("logs", "greet", "-o", "json")).stdout.trimEnd().split("\n");
    expect(json.map((line) => JSON.parse(line).function)).toEqual(json.map(() => "greet"));
  });

  test("is told by the log of all functions in their order, from a level and a time on", async () => {
    const work = `ctx.log[name === "greet" ? "warn" : "info"]("seen");`;
    const spec = { delivery: { retry: { maxAttempts: 1 } } };
    for (const name of ["greet", "other"]) {
      await runtime.define(name, { watch: team.watch(), spec, work: `const name = "${name}"; ${work}` });
    }
    await runtime.start();
    await team.make("a");
    for (const name of ["greet", "other"]) await runtime.hears(name, "Added a=1");
    const linesOf = async (...more: string[]) => {
      const { stdout } = await command("logs", "-o", "json", ...more);
      return stdout
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line))
        .filter(({ msg }) => msg === "seen")
        .map((line) => line.function);
    };
    expect((await linesOf()).toSorted()).toEqual(["greet", "other"]);
    expect(await linesOf("--level", "warn")).toEqual(["greet"]);
    expect(await linesOf("--since", "1h")).toHaveLength(2);
    expect((await command("logs", "--since", "soon")).stderr).toContain("--since takes a duration");
  });

  test("stands in the status of the runtime: what waits, what failed, what is watched", async () => {
    const spec = { delivery: { retry: { maxAttempts: 1 } } };
    await runtime.define("greet", { watch: team.watch(), spec, work: `throw new Error("no");` });
    await runtime.define("broken", { watch: team.watch({ labelSelector: { matchLabels: { "a b": "c" } } }) });
    await runtime.start();
    await team.make("a");
    await runtime.sees("it is given up", async () => (await runtime.deadLetters()).length === 1);
    const { stdout, status } = await command("status");
    expect(status).toBe(0);
    expect(stdout).toMatch(/^greet +Ready +0 +0 s +0 +\d+ s ago +1 +1$/m);
    expect(stdout).toMatch(/^broken +ManifestRefused /m);
    expect(stdout).toMatch(/^ {2}broken: WF_MANIFEST_/m);
    expect(stdout).toMatch(new RegExp(`^v1/ConfigMap +${team.name} .* watching `, "m"));
    const { functions } = JSON.parse((await command("status", "-o", "json")).stdout);
    expect(functions).toContainEqual(expect.objectContaining({ name: "greet", deadLetters: 1 }));
  });
});

test("the log of a function is followed line by line until the command is stopped", async () => {
  await runtime.define("greet", { watch: team.watch() });
  await runtime.start();
  await team.make("a");
  await runtime.hears("greet", "Added a=1");
  const following = new Session(["logs", "greet", "--follow", "--data", runtime.data]);
  await following.says(/told +line=Added a=1/);
  await team.set("a", 2);
  await following.says(/told +line=Modified a=2/);
  following.signal("SIGINT");
  expect(await following.end()).toBe(0);
  expect(following.output.match(/Added a=1/g)).toHaveLength(1);
});

describe("a handler is told again", () => {
  test("of one object, of all, and of what a run was told: each flagged, with the same ID, and said in the log", async () => {
    const matchConditions = [{ name: "named", expression: "object.metadata.name != 'c'" }];
    await runtime.define("greet", { watch: team.watch({ matchConditions }) });
    await runtime.start();
    for (const name of ["a", "b", "c"]) await team.make(name);
    await runtime.hears("greet", 2);
    await runtime.quiet();
    expect(await command("redeliver", "greet", "--object", `${team.name}/a`)).toMatchObject({
      stdout: "redelivered 1\n",
      status: 0,
    });
    await runtime.hears("greet", "Modified a=1 redelivered");
    expect(await command("redeliver", "greet", "--all")).toMatchObject({
      stdout: "redelivered 2, left 1 which the trigger's events or conditions leave out\n",
      status: 0,
    });
    await runtime.hears("greet", "Modified b=1 redelivered");
    await runtime.quiet();
    const id = await runId("greet", `Added ${team.name}/b`);
    expect((await command("redeliver", "greet", "--run", id)).stdout).toBe("redelivered 1\n");
    await runtime.hears("greet", "Added b=1 redelivered");
    expect(runtime.told("greet")).toHaveLength(6);
    expect((await command("logs", "greet")).stdout.match(/redelivery requested/g)).toHaveLength(3);
  });

  test("of a run that was given up by its dead letter, of one whose object has changed since not at all", async () => {
    const spec = { delivery: { retry: { maxAttempts: 1 } } };
    const work = `if (event.object.metadata.name === "bad" && !event.redelivered) throw new Error("no");`;
    await runtime.define("greet", { watch: team.watch(), spec, work });
    await runtime.start();
    await team.make("bad");
    await runtime.sees("it is given up", async () => (await runtime.deadLetters()).length === 1);
    const bad = await runId("greet", `Added ${team.name}/bad`);
    expect((await command("redeliver", "greet", "--run", bad)).stdout).toBe("redelivered 1\n");
    await runtime.hears("greet", "Added bad=1 redelivered");
    await runtime.sees("the letter is gone", async () => (await runtime.deadLetters()).length === 0);
    await team.make("a");
    await runtime.hears("greet", "Added a=1");
    await runtime.sees("its run is there", async () => (await runId("greet", `Added ${team.name}/a`)) !== undefined);
    const id = await runId("greet", `Added ${team.name}/a`);
    await team.set("a", 2);
    await runtime.hears("greet", "Modified a=2");
    const { stderr, status } = await command("redeliver", "greet", "--run", id);
    expect(stderr).toContain(
      "WF_RUNTIME_NOT_REDELIVERED: the object has changed since, and a run is not repeated with an old state",
    );
    expect(stderr).toContain(`\`watchfire redeliver greet --object ${team.name}/a\``);
    expect(status).toBe(1);
  });

  test("in its turn and once, also where the process is killed before the handler was", async () => {
    await runtime.define("greet", { watch: team.watch() });
    await runtime.start();
    await team.make("a");
    await runtime.hears("greet", "Added a=1");
    await runtime.quiet();
    await command("pause", "greet");
    expect((await command("redeliver", "greet", "--all")).stdout).toBe("redelivered 1\n");
    await team.set("a", 2);
    await runtime.sees("both wait", async () => {
      const { queued = 0, spilled = 0 } = (await runtime.function("greet")) ?? {};
      return queued + spilled === 2;
    });
    await runtime.kill();
    await runtime.start();
    await command("resume", "greet");
    await runtime.hears("greet", "Modified a=2");
    await runtime.quiet();
    expect(runtime.told("greet")).toEqual(["Added a=1", "Modified a=1 redelivered", "Modified a=2"]);
  });

  test("not of an object that is not there or not chosen, and by no trigger that is not there", async () => {
    await runtime.define("greet", { watch: team.watch({ labelSelector: { matchLabels: { sync: "true" } } }) });
    await runtime.start();
    await team.make("a");
    const refusals = [
      [["--object", `${team.name}/no`], "by the trigger trigger, there is no such object"],
      [["--object", `${team.name}/a`], "by the trigger trigger, its selectors do not choose the object"],
      [["--object", "elsewhere/a"], "by the trigger trigger, it does not read elsewhere"],
      [["--all", "--trigger", "triger"], 'has no trigger of this name, got "triger"; did you mean --trigger trigger?'],
      [
        ["--run", "u/1/Added"],
        'WF_RUNTIME_NO_RUN: no recent run of greet, and no dead letter of it, has this ID, got "u/1/Added"',
      ],
    ] as const;
    for (const [args, said] of refusals) {
      const { status, stderr } = await command("redeliver", "greet", ...args);
      expect(stderr).toContain(said);
      expect(status).toBe(1);
    }
    expect(runtime.told("greet")).toEqual([]);
    expect((await command("runs", "gret")).stderr).toContain("did you mean greet?");
    expect((await command("logs", "gret")).stderr).toContain("did you mean greet?");
  });
});

test.each([
  [["runs", "a", "b"], 'runs takes one FUNCTION, got "a b"'],
  [["runs", "--limit", "0"], '--limit takes 1 to 1000, got "0"'],
  [["runs", "--since", "yesterday"], '--since takes a duration, got "yesterday"'],
  [["runs", "--outcome", "odd"], "--outcome takes ok or failed or permanent or interrupted, got odd"],
  [["logs", "a", "b"], 'logs takes one FUNCTION, got "a b"'],
  [["redeliver", "a"], "redeliver takes one of --object NAME, --all and --run ID; such as"],
  [["redeliver", "a", "--all", "--run", "x"], 'and --run ID, got "--all --run"'],
  [["redeliver", "a", "--run", "x", "--trigger", "t"], "--trigger is for --object and --all"],
  [
    ["redeliver", "a", "--object", "a/b/c"],
    '--object takes NAMESPACE/NAME, or NAME where the kind has no namespace, got "a/b/c"',
  ],
])("is the user's mistake as %j", async (args, said) => {
  const { status, stderr } = await watchfire(args);
  expect(stderr).toContain("WF_CLI_USAGE: ");
  expect(stderr).toContain(said);
  expect(status).toBe(1);
});
