// The README's first function, and every command about it on the README's page and in troubleshooting.
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

test("the first function does what the README says, and troubleshooting's commands tell of it", {
  timeout: 90_000,
}, async () => {
  const port = await freePort();
  const shell = await Shell.open({ "127.0.0.1:9464": `127.0.0.1:${port}` });
  const files = blocks.filter(({ page, text }) => page === "README.md" && /^(?:#|\/\/) functions\//.test(text));
  expect(files).toHaveLength(2);
  // Each file's first line says where it is.
  for (const { text } of files) shell.write(/functions\/\S+/.exec(text)?.[0] ?? "", text);
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
  expect(answers).toEqual([
    "1 valid, 0 faults\n",
    expect.stringMatching(/"name":"greet".*"ready":true/),
    expect.stringMatching(/^default +ada +1 /m),
    expect.stringMatching(/outcome="ok"\} \d/),
    expect.stringContaining("no dead letters"),
  ]);
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
