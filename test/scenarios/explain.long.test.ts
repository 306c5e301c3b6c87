import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import type { TriggerExplanation } from "../../runtime/observe/explanation.ts";
import type { Installation } from "../tools/installation.ts";
import type { Team } from "../tools/team.ts";
import { admin, createTeam, install } from "./cluster.ts";

const bin = join(import.meta.dirname, "../../runtime/bin/watchfire.js");

/** The output of the command, with the address that the runtime wrote to its data folder. */
async function command(runtime: Installation, ...args: string[]): Promise<string> {
  return (await promisify(execFile)(process.execPath, [bin, "explain", ...args, "--data", runtime.data])).stdout;
}

const check = ({ checks }: TriggerExplanation, name: string) => checks.find((each) => each.name === name);

const fails = `throw new Error("no");`;
const once = (more: object) => ({ delivery: { retry: { maxAttempts: 1 }, ...more } });

/** Functions that do not receive `a`, or do not complete it, each for a different reason. */
const define = (runtime: Installation, team: Team) =>
  Promise.all([
    runtime.define("elsewhere", { watch: team.watch() }),
    runtime.define("labelled", { watch: team.watch({ labelSelector: { matchLabels: { sync: "true" } } }) }),
    runtime.define("named", { watch: team.watch({ fieldSelector: "metadata.name!=a" }) }),
    runtime.define("deletions", { watch: team.watch({ events: ["Deleted"] }) }),
    runtime.define("fields", { watch: team.watch({ changedFields: [".data.w"] }) }),
    runtime.define("large", {
      watch: team.watch({ matchConditions: [{ name: "large", expression: "int(object.data.v) > 10" }] }),
    }),
    runtime.define("odd", {
      watch: team.watch({ matchConditions: [{ name: "odd", expression: "object.data.no == '1'" }] }),
    }),
    runtime.define("skips", { watch: team.watch({ initialEvents: "Skip" }) }),
    runtime.define("retries", {
      watch: team.watch(),
      spec: { delivery: { retry: { initialDelay: "1m" } } },
      work: fails,
    }),
    runtime.define("blocks", { watch: team.watch(), spec: once({ onFailure: "Block" }), work: fails }),
    runtime.define("gives-up", { watch: team.watch(), spec: once({ onFailure: "DeadLetter" }), work: fails }),
    runtime.define("fires", { watch: team.watch() }),
  ]);

test("an event that did not fire is explained by the rule that kept it away, one that fired by its run", async () => {
  const [team, other] = [await createTeam(), await createTeam()];
  const runtime = await install();
  await team.make("old");
  await define(runtime, team);
  await runtime.start();
  await Promise.all([team, other].map((each) => each.make("a", 1, { sync: "no" })));
  await runtime.hears("fires", "Added a=1");
  await team.set("a", 2);
  await runtime.hears("fires", "Modified a=2");
  await runtime.sees("a dead letter", async () => (await runtime.deadLetters()).some(({ name }) => name === "a"));
  await runtime.sees("the others have come so far", async () => {
    const lanes = await Promise.all(
      ["retries", "blocks"].map(async (name) => check(await runtime.explain(name, team.name, "a"), "queue")),
    );
    const filtered = await Promise.all(["fields", "large", "odd"].map((name) => runtime.explain(name, team.name, "a")));
    return (
      lanes.every((lane) => lane?.passes === "no" && lane.says.includes("1 more")) &&
      filtered.every((each) => each.filtered[0]?.type === "Modified")
    );
  });
  const asked = [
    ["elsewhere", other.name, "a", "namespace", `the trigger reads only ${team.name}`],
    ["labelled", team.name, "a", "labelSelector", "sync=true, but the object's labels are: sync=no"],
    ["named", team.name, "a", "fieldSelector", "metadata.name!=a leaves it out"],
    ["deletions", team.name, "a", "events", "its Modified was filtered: Modified is not one of its events: Deleted"],
    ["fields", team.name, "a", "changedFields", "its changedFields are unchanged: .data.w"],
    ["large", team.name, "a", "condition", "the condition large is false"],
    ["odd", team.name, "a", "conditionError", "the condition odd has no value: "],
    ["skips", team.name, "old", "initialEvents", "was there when the function was deployed, and initialEvents is Skip"],
    ["retries", team.name, "a", "queue", "its Added failed in attempt 1 and waits for the next, with 1 more behind it"],
    [
      "blocks",
      team.name,
      "a",
      "queue",
      "its Added failed in attempt 1 and blocks the object's queue, as onFailure asks, with 1 more behind it",
    ],
    ["gives-up", team.name, "a", "givenUp", "the handler failed with its Modified, which was given up after attempt 1"],
    ["fires", team.name, "a", "fired", "it did fire: the handler ended well with its Modified"],
    ["fires", team.name, "nobody", "object", "there is no object of this name"],
  ] as const;
  for (const [name, namespace, object, reason, says] of asked) {
    const found = await runtime.explain(name, namespace, object);
    expect({ name, ...found }).toMatchObject({ name, reason, why: expect.stringContaining(says) });
  }
  const large = await runtime.explain("large", team.name, "a");
  expect(check(large, "condition large")).toMatchObject({ passes: "no", says: "false; int(object.data.v) > 10" });
  expect(large.next).toBe("a Modified with the object in its current state is filtered: the condition large is false");
  const fires = await runtime.explain("fires", team.name, "a");
  expect(fires.next).toBe("a Modified with the object in its current state reaches the handler");
  expect(fires.runs).toMatchObject([{ type: "Modified", attempt: 1, outcome: "ok" }, { type: "Added" }]);
  const givenUp = await runtime.explain("gives-up", team.name, "a");
  expect(check(givenUp, "deadLetters")).toMatchObject({ passes: "no", says: expect.stringContaining("Error: no") });
  expect((await runtime.explain("skips", team.name, "a")).reason).toBe("fired");
});

test("the command prints why, what would be next, each check, and what happened, without being told where to ask", async () => {
  const team = await createTeam();
  const runtime = await install();
  const matchConditions = [
    { name: "large", expression: "int(object.data.v) > 10" },
    { name: "named", expression: "object.metadata.name == 'a'" },
  ];
  await runtime.define("resize", { watch: team.watch({ matchConditions }) });
  await runtime.start();
  await team.make("a");
  await runtime.sees("it is filtered", async () => (await runtime.function("resize"))?.filtered?.[0]?.count === 1);
  const text = await command(runtime, "resize", `${team.name}/a`);
  for (const line of [
    /^function resize is ready$/m,
    new RegExp(`^trigger trigger: ConfigMap ${team.name}/a$`, "m"),
    /^ {2}why: its Added was filtered: the condition large is false$/m,
    /^ {2}condition large +NO +false; int\(object\.data\.v\) > 10$/m,
    /^ {2}condition named +yes +true; object\.metadata\.name == 'a'$/m,
    /^ {2}\d{4}-\S+Z +Added +\d+ +the condition large is false$/m,
  ]) {
    expect(text).toMatch(line);
  }
  expect(JSON.parse(await command(runtime, "resize", `${team.name}/a`, "-o", "json"))).toMatchObject({
    function: { name: "resize", ready: true },
    object: { namespace: team.name, name: "a" },
    triggers: [{ reason: "condition" }],
  });
  await expect(command(runtime, "resise", "x/a")).rejects.toThrow(/WF_RUNTIME_NO_FUNCTION.*did you mean resize\?/);
  await expect(command(runtime, "resize", "x/y/z")).rejects.toThrow(/WF_CLI_USAGE.*NAMESPACE\/NAME/);
  await expect(command(runtime, "resize", "x/a", "--trigger", "triger")).rejects.toThrow(
    /did you mean --trigger trigger\?/,
  );
});

test("a function that is not loaded, and one that may not watch, say so before anything else", async () => {
  const team = await createTeam();
  const account = `/api/v1/namespaces/${team.name}/serviceaccounts`;
  await admin.post(account, { metadata: { name: "nobody" } });
  const { status } = await admin.post(`${account}/nobody/token`, { spec: {} });
  const runtime = await install(status.token);
  await runtime.define("follower", { watch: team.watch() });
  await runtime.define("broken", { watch: team.watch(), work: "return (((" });
  await runtime.open();
  await runtime.sees("it is forbidden", async () => (await runtime.function("follower"))?.reason === "Forbidden");
  const found = await runtime.explain("follower", team.name, "a");
  expect(found).toMatchObject({
    reason: "source",
    why: expect.stringMatching(/forbidden: .*cannot (list|watch) resource "configmaps"/),
  });
  await runtime.sees("it is broken", async () => (await runtime.function("broken"))?.reason === "BuildFailed");
  expect(await command(runtime, "broken", `${team.name}/a`)).toMatch(
    /^function broken is not ready, BuildFailed: WF_BUNDLE_SYNTAX/,
  );
});

test("a Secret's values are in no explanation, however its conditions fail; those of the runtime are not looked at", async () => {
  const team = await createTeam();
  const runtime = await install();
  const secrets = `/api/v1/namespaces/${team.name}/secrets`;
  const matchConditions = [
    { name: "misses", expression: "{'a': true}[object.data.password]" },
    { name: "looks", expression: "object.data.password == 'x'" },
  ];
  const watch = { apiVersion: "v1", kind: "Secret", namespaceSelector: { matchNames: [team.name] }, matchConditions };
  const permissions = [{ apiGroups: [""], resources: ["secrets"], verbs: ["list"], namespaces: [team.name] }];
  await runtime.define("keeper", { watch, spec: { permissions } });
  await runtime.start();
  const password = Buffer.from("hunter2-hunter2").toString("base64");
  await admin.post(secrets, { metadata: { name: "key" }, data: { password } });
  await runtime.sees("it is filtered", async () => (await runtime.function("keeper"))?.filtered?.[0]?.count === 1);
  const found = await runtime.explain("keeper", team.name, "key");
  expect(found.reason).toBe("condition");
  expect(check(found, "condition misses")).toMatchObject({ says: expect.stringContaining("no value") });
  expect(JSON.stringify(found)).not.toContain(password);
  expect(await runtime.function("keeper")).toMatchObject({
    filtered: [{ why: "condition", condition: "looks", count: 1 }],
  });
});

test("an object of a kind without namespaces is asked for by its name, any other by both", async () => {
  const team = await createTeam();
  const runtime = await install();
  await runtime.define("spaces", { watch: { apiVersion: "v1", kind: "Namespace", events: ["Deleted"] } });
  await runtime.define("all", { watch: { apiVersion: "v1", kind: "ConfigMap", events: ["Deleted"] } });
  await runtime.start();
  expect(await runtime.explain("spaces", "", team.name)).toMatchObject({ reason: "events" });
  expect((await runtime.explain("spaces", "default", team.name)).why).toContain("ask for NAME");
  expect((await runtime.explain("all", "", "a")).why).toContain("ask for NAMESPACE/NAME");
});

test("what an explanation asks changes nothing: no event, no condition's count, no position", async () => {
  const team = await createTeam();
  const runtime = await install();
  const watch = team.watch({ matchConditions: [{ name: "odd", expression: "object.data.no == '1'" }] });
  await runtime.define("follower", { watch });
  await runtime.start();
  await team.make("a");
  await runtime.sees("it is filtered", async () => (await runtime.function("follower"))?.filtered?.[0]?.count === 1);
  const before = await runtime.function("follower");
  const evaluated = () => runtime.metric("watchfire_match_condition_errors_total");
  const errors = await evaluated();
  for (let n = 0; n < 3; n++) await runtime.explain("follower", team.name, "a");
  expect(await evaluated()).toBe(errors);
  expect(await runtime.function("follower")).toEqual(before);
});
