// Runs the README's first function, and every command about it in the README, in troubleshooting and in building.
import { cpSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { folderOf } from "../tools/folder.ts";
import { TalkingProcess } from "../tools/talking-process.ts";
import { until } from "../tools/until.ts";
import { freePort } from "../tools/watchfire-process.ts";
import { blocks, commandsOf } from "./blocks.ts";
import { read } from "./sections.ts";
import { Shell } from "./shell.ts";

const root = join(import.meta.dirname, "../..");

const files = blocks.filter(({ page, text }) => page === "README.md" && /^(?:#|\/\/) functions\//.test(text));
/** The file that a text's first line names. */
const fileOf = (text: string) => /functions\/\S+/.exec(text)?.[0] ?? "";

/** A text with uniform numbers and spaces, because versions differ from run to run, and columns with them. */
const words = (text: string) => text.replace(/\d+/g, "N").replace(/\s+/g, " ").trim();

test("the first function does what the README says, and troubleshooting's commands tell of it", {
  timeout: 90_000,
}, async () => {
  const port = await freePort();
  const shell = await Shell.open({ "127.0.0.1:9464": `127.0.0.1:${port}` });
  expect(files).toHaveLength(2);
  for (const { text } of files) shell.write(fileOf(text), text);
  const dev = shell.start(`npx watchfire dev --port ${port}`);
  await dev.says(/stop +Ctrl-C/);

  const mine = commandsOf("README.md").filter((each) => /watchfire validate|configmap ada/.test(each));
  const [validate = "", ...first] = mine;
  expect(await shell.run(validate)).toBe("1 valid, 0 faults\n");
  const greeting = first.pop() ?? "";
  for (const command of first) await shell.run(command);
  const said = await until("it has been greeted", 30_000, async () => (await shell.run(greeting)) || undefined);
  expect(said).toBe("hello, ada");
  await dev.says(/greet {2}Modified v1\/ConfigMap default\/ada {2}ok/);

  const answers: string[] = [];
  for (const command of commandsOf("runtime/docs/troubleshooting.md")) answers.push(await shell.run(command));
  const [shown = ""] = /^function greet is ready\n[^`]*/m.exec(read("runtime/docs/troubleshooting.md")) ?? [];
  expect(words(answers.shift() ?? "")).toBe(words(shown));
  expect(answers).toEqual([
    "1 valid, 0 faults\n",
    expect.stringMatching(/"name":"greet".*"ready":true/),
    expect.stringMatching(/^default +ada +1 /m),
    expect.stringMatching(/outcome="ok"\} \d/),
    expect.stringContaining("no dead letters"),
  ]);
  for (const command of commandsOf("runtime/docs/building.md"))
    expect(await shell.run(command)).toMatch(/^greet {2}[0-9a-f]{16} {2}\d+ KiB$/m);
});

test("`validate` says of the shipped functions and the first one what the README shows", {
  timeout: 60_000,
}, async () => {
  const shell = await Shell.open();
  cpSync(join(root, "functions"), join(shell.folder, "functions"), { recursive: true });
  for (const { text } of files) shell.write(fileOf(text), text);
  const [, shown] = /^\$ npx watchfire validate\n([^$]*)/m.exec(read("README.md")) ?? [];
  expect(await shell.run("npx watchfire validate")).toBe(shown);
  const [, code = ""] = /three warnings \(`(\w+)`\)/.exec(read("README.md")) ?? [];
  expect((await shell.run("npx watchfire validate 2>&1 >/dev/null")).split(`warning: ${code} `)).toHaveLength(4);
});

test("`npm start` prints the table that the README shows", { timeout: 60_000 }, async () => {
  const words = [join(root, "runtime/bin/watchfire.js"), "dev", "--port", "0", "--data", folderOf({})];
  const dev = new TalkingProcess(process.execPath, words, { cwd: root, patienceMs: 30_000 });
  await dev.says(/hello {2}Added v1\/ConfigMap demo\/app-settings {2}ok/);
  const table = (text: string) => /^ {2}FUNCTION[\s\S]*?\n\n/m.exec(text)?.[0];
  expect(table(dev.output)).toBe(table(read("README.md")));
  expect(read("README.md")).toContain(
    dev.output
      .split("\n")
      .find((line) => line.includes("keys="))
      ?.slice(10),
  );
});
