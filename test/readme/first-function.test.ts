// The README's first function, and every command about it on the README's page and in troubleshooting.
import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { kubectlPath } from "../tools/kubectl.ts";
import { TalkingProcess } from "../tools/talking-process.ts";
import { until } from "../tools/until.ts";
import { blocks, commandsOf } from "./blocks.ts";
import { read } from "./sections.ts";

const root = join(import.meta.dirname, "../..");
const bin = join(root, "runtime/bin/watchfire.js");

/** The README's two files, where their first lines say. */
const files = blocks
  .filter(({ page, text }) => page === "README.md" && /^(?:#|\/\/) functions\//.test(text))
  .map(({ text }) => ({ file: /functions\/\S+/.exec(text)?.[0] ?? "", text }));

test("the first function does what the README says, and troubleshooting's commands tell of it", {
  timeout: 90_000,
}, async () => {
  // Within the checkout, where the SDK is found.
  mkdirSync(join(root, "node_modules/.cache/watchfire"), { recursive: true });
  const place = mkdtempSync(join(root, "node_modules/.cache/watchfire/first-"));
  onTestFinished(() => rmSync(place, { recursive: true, force: true }));
  for (const { file, text } of files) {
    mkdirSync(join(place, dirname(file)), { recursive: true });
    writeFileSync(join(place, file), text);
  }
  expect(files.map(({ file }) => file)).toEqual(["functions/greet/function.yaml", "functions/greet/handler.ts"]);

  // Of the checkout, no more than these two files are type-checked.
  writeFileSync(
    join(place, "tsconfig.json"),
    JSON.stringify({ extends: join(root, "tsconfig.json"), include: ["functions"] }),
  );
  const programs = join(place, "bin");
  mkdirSync(programs);
  const shims = { npx: `shift; exec ${process.execPath} ${bin} "$@"`, kubectl: `exec ${await kubectlPath()} "$@"` };
  for (const [name, text] of Object.entries(shims)) {
    writeFileSync(join(programs, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(programs, name), 0o755);
  }
  const env = { PATH: `${programs}:${process.env.PATH}`, HOME: place };
  const dev = new TalkingProcess(process.execPath, [bin, "dev", "--port", "0"], {
    cwd: place,
    env,
    patienceMs: 30_000,
  });
  const [, address = ""] = /status +http:\/\/([\d.:]+)\//.exec(await dev.says(/status +http.*\n.*Ctrl-C/)) ?? [];
  const run = async (command: string) => {
    const words = ["-ec", command.replace("127.0.0.1:9464", address)];
    return (await promisify(execFile)("sh", words, { cwd: place, env })).stdout;
  };

  const [validate = "", ...first] = commandsOf("README.md").filter((each) =>
    /watchfire validate|configmap ada/.test(each),
  );
  expect(await run(validate)).toBe("1 valid, 0 faults\n");
  const greeting = first.pop() ?? "";
  for (const command of first) await run(command);
  const said = await until("it has been greeted", 30_000, async () => (await run(greeting)) || undefined);
  expect(said).toBe("hello, ada");
  await dev.says(/greet {2}Modified v1\/ConfigMap default\/ada {2}ok/);

  const answers: string[] = [];
  for (const command of commandsOf("runtime/docs/troubleshooting.md")) answers.push(await run(command));
  expect(answers).toEqual([
    "1 valid, 0 faults\n",
    expect.stringMatching(/"name":"greet".*"ready":true/),
    expect.stringMatching(/^default +ada +1 /m),
    expect.stringMatching(/outcome="ok"\} \d/),
    expect.stringContaining("no dead letters"),
  ]);
});

test("`npm start` prints the table that the README shows", { timeout: 60_000 }, async () => {
  const data = mkdtempSync(join(tmpdir(), "watchfire-readme-"));
  onTestFinished(() => rmSync(data, { recursive: true, force: true }));
  const dev = new TalkingProcess(process.execPath, [bin, "dev", "--port", "0", "--data", data], {
    cwd: root,
    patienceMs: 30_000,
  });
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
