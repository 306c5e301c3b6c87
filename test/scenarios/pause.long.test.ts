import { expect, test } from "vitest";
import { watchfire } from "../cli/run.ts";
import { createTeam, install } from "./cluster.ts";

test("a function that a command paused is told nothing, says so everywhere, also after a kill, and then hears it all", async () => {
  const team = await createTeam();
  const runtime = await install();
  await runtime.define("greet", { watch: team.watch() });
  await runtime.define("other", { watch: team.watch() });
  await runtime.start();
  await team.make("a");
  await runtime.hears("greet", "Added a=1");
  const command = (...args: string[]) => watchfire([...args, "--data", runtime.data]);
  expect(await command("pause", "greet")).toMatchObject({
    status: 0,
    stdout: "greet is paused: its events wait, in order\n",
  });
  expect((await command("pause", "greet")).stdout).toBe("greet was paused by a command before\n");
  await team.set("a", 2);
  await runtime.hears("other", "Modified a=2");
  await runtime.kill();
  await runtime.start();
  await team.set("a", 3);
  await team.make("b");
  await runtime.hears("other", "Added b=1");
  expect(await runtime.function("greet")).toMatchObject({
    ready: false,
    reason: "Paused",
    paused: "command",
    queued: 3,
  });
  expect((await runtime.function("greet"))?.message).toContain("until `watchfire resume greet`");
  expect(await runtime.metric("watchfire_function_paused", { function: "greet" })).toBe(1);
  expect(await runtime.metric("watchfire_function_paused", { function: "other" })).toBe(0);
  const explained = await runtime.explain("greet", team.name, "b");
  expect(explained.why).toContain("Paused");
  expect(runtime.told("greet")).toEqual(["Added a=1"]);
  expect((await command("resume", "greet")).stdout).toBe("greet goes on\n");
  await runtime.hears("greet", 4);
  await runtime.quiet();
  expect(runtime.told("greet").filter((line) => line.includes("a="))).toEqual([
    "Added a=1",
    "Modified a=2",
    "Modified a=3",
  ]);
  expect(await runtime.function("greet")).toMatchObject({ ready: true });
  expect((await command("resume", "greet")).stdout).toBe("greet was not paused\n");
});

test("a manifest that says paused is obeyed at the start and as it changes, and no command overrules it", async () => {
  const team = await createTeam();
  const runtime = await install();
  const define = (paused: boolean) => runtime.define("greet", { watch: team.watch(), spec: { paused } });
  await define(true);
  await team.make("a");
  await runtime.start();
  expect(await runtime.function("greet")).toMatchObject({ reason: "Paused", paused: "manifest", queued: 1 });
  const refused = await watchfire(["resume", "greet", "--data", runtime.data]);
  expect(refused.stderr).toMatch(/^WF_RUNTIME_PAUSED_BY_MANIFEST: .* got "greet"; take `paused: true` out/);
  expect(refused.status).toBe(1);
  expect(runtime.told("greet")).toEqual([]);
  await define(false);
  await runtime.reload();
  await runtime.hears("greet", "Added a=1 initial");
  await define(true);
  await runtime.reload();
  await team.set("a", 2);
  await runtime.sees("it waits", async () => (await runtime.function("greet"))?.queued === 1);
  expect(runtime.told("greet")).toHaveLength(1);
});

test.each([
  [["pause"], "WF_CLI_USAGE: pause takes one FUNCTION; such as `watchfire pause greet`"],
  [["resume", "a", "b"], 'WF_CLI_USAGE: resume takes one FUNCTION, got "a b"'],
])("is the user's mistake as %j", async (args, said) => {
  const { status, stderr } = await watchfire(args);
  expect(stderr).toContain(said);
  expect(status).toBe(1);
});

test("what is asked of a function that is not there, or where no runtime is, says so", async () => {
  const team = await createTeam();
  const runtime = await install();
  await runtime.define("greet", { watch: team.watch() });
  await runtime.start();
  const { stderr } = await watchfire(["pause", "gret", "--data", runtime.data]);
  expect(stderr).toContain(
    'WF_RUNTIME_NO_FUNCTION: the runtime has no function of this name, got "gret"; did you mean greet?',
  );
  const token = await watchfire(["pause", "greet", "--url", runtime.url, "--data", runtime.functions]);
  expect(token.stderr).toContain("WF_OBSERVE_TOKEN");
  const { stderr: nowhere } = await watchfire(["pause", "greet", "--data", runtime.functions]);
  expect(nowhere).toContain("WF_CLI_UNREACHABLE: no runtime was started with this data folder");
  expect(await runtime.function("greet")).toMatchObject({ ready: true });
});
