import { expect, test } from "vitest";
import { Redactor } from "../../runtime/access/redactor.ts";
import type { FunctionManifest } from "../../runtime/manifest/function.ts";
import { FunctionLog } from "../../runtime/observe/function-log.ts";
import { createLog } from "../../runtime/observe/log.ts";
import { supportReport, supportReportSchema } from "../../runtime/observe/support-report.ts";
import { folderOf } from "../tools/folder.ts";

const manifestOf = (name: string, env: FunctionManifest["env"] = []) =>
  ({ name, file: `functions/${name}/function.yaml`, env }) as unknown as FunctionManifest;

const parts = {
  options: {},
  data: "/nowhere",
  status: {},
  metrics: "",
  warnings: [],
  manifests: [],
  redactor: new Redactor(),
  variables: {},
  secrets: [],
  now: 0,
};

test("the values of every function, of the process and of the token are removed from every part", async () => {
  const redactor = new Redactor();
  redactor.learn("one", { secrets: ["secret-of-one"], configuration: [] });
  redactor.learn("two", { secrets: ["secret-of-two"], configuration: [] });
  const said = "secret-of-one secret-of-two p@ssword-of-the-proxy variable-of-it the-token";
  const encoded = Buffer.from("secret-of-two").toString("base64");
  const report = await supportReport({
    ...parts,
    options: { listen: said },
    status: { functions: [{ message: said }] },
    metrics: `up{reason="${said}"} 1\n`,
    warnings: [said, encoded],
    manifests: [manifestOf("one"), manifestOf("two")],
    redactor,
    variables: {
      HTTPS_PROXY: "http://user:p%40ssword-of-the-proxy@proxy:3128",
      DATABASE_PASSWORD: "variable-of-it",
      KUBERNETES_PORT: "tcp://10.0.0.1:443",
      PATH: "/usr/bin",
    },
    secrets: ["the-token"],
  });
  const text = JSON.stringify(report);
  expect(text).not.toMatch(/secret-of|ssword-of|variable-of|the-token/);
  expect(text).not.toContain(encoded);
  expect(supportReportSchema.parse(report).warnings).toHaveLength(2);
});

test("functions' own series and values of variables are left out, and references and other series stay", async () => {
  const secretKeyRef = { name: "slack", key: "token", optional: false };
  const report = await supportReport({
    ...parts,
    metrics: 'watchfire_up 1\n# HELP watchfire_user_seen x\nwatchfire_user_seen{label="any"} 1\n',
    manifests: [
      manifestOf("greet", [
        { name: "LITERAL", value: "anything" },
        { name: "REFERENCE", secretKeyRef },
      ]),
    ],
  });
  expect(report.metrics).toEqual(["watchfire_up 1"]);
  expect(report.functions).toMatchObject([
    {
      name: "greet",
      env: [
        { name: "LITERAL", value: "[redacted]" },
        { name: "REFERENCE", secretKeyRef },
      ],
    },
  ]);
});

test("the files of the data folder are named with their sizes, and a folder that cannot be read has no files", async () => {
  const data = folderOf({ "checkpoint.db": "12345", "below/history.db": "1" });
  expect((await supportReport({ ...parts, data })).files).toEqual([{ name: "checkpoint.db", bytes: 5 }]);
  expect((await supportReport(parts)).files).toEqual([]);
});

test("the runtime's last 200 warnings and errors are kept, without the lines of handlers' runs", () => {
  const functionLog = new FunctionLog({ write: () => true });
  const log = createLog("info", functionLog);
  log.info({ function: "greet" }, "ready");
  log.warn({ function: "greet", run: "1" }, "what a handler says");
  for (let number = 1; number <= 250; number++) log.warn({ number, text: "x".repeat(10_000) }, "away");
  log.error({ function: "greet" }, "function disabled");
  expect(functionLog.warnings).toHaveLength(200);
  expect(functionLog.warnings.every((line) => line.length <= 4096)).toBe(true);
  expect(functionLog.warnings.at(-1)).toContain("function disabled");
  expect(functionLog.warnings.join()).not.toContain("what a handler says");
});
