import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const bin = resolve(import.meta.dirname, "../../runtime/bin/watchfire.js");

const packageFile = resolve(import.meta.dirname, "../../runtime/package.json");
const { version: packageVersion } = JSON.parse(readFileSync(packageFile, "utf8")) as { version: string };

interface Result {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

function watchfire(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Result> {
  return new Promise((done) => {
    execFile(process.execPath, [bin, ...args], { env: { PATH: process.env.PATH, ...env } }, (error, stdout, stderr) => {
      done({ status: typeof error?.code === "number" ? error.code : 0, stdout, stderr });
    });
  });
}

const manifest = (name: string, extra = ""): string => `apiVersion: watchfire.dev/v1alpha1
kind: Function
metadata: { name: ${name} }
spec:
  handler: ./${name}.ts
  triggers: [{ watch: { apiVersion: v1, kind: ConfigMap } }]
${extra}`;

describe("the command line", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "watchfire-cli-"));
  });

  it("a command that is not there is the user's mistake", async () => {
    const { status, stderr } = await watchfire(["brew"]);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^WF_CLI_USAGE: .*"brew"/);
  });

  it("a misspelt command or option is answered with the one that was probably meant", async () => {
    expect((await watchfire(["validat"])).stderr).toContain("did you mean `watchfire validate`?");
    const { status, stderr } = await watchfire(["validate", "--fucntions", folder]);
    expect(stderr).toMatch(/^WF_CLI_USAGE: there is no option --fucntions; did you mean --functions\?/);
    expect(status).toBe(1);
  });

  it("it tells its version", async () => {
    const { status, stdout } = await watchfire(["--version"]);
    expect(stdout).toBe(`${packageVersion}\n`);
    expect(status).toBe(0);
  });

  it("an environment variable that cannot be used is named", async () => {
    const { status, stderr } = await watchfire(["start", "--kubeconfig", "none"], { WATCHFIRE_LOG_LEVEL: "loud" });
    expect(status).toBe(1);
    expect(stderr).toMatch(/^WF_CLI_ENVIRONMENT: WATCHFIRE_LOG_LEVEL/);
  });

  it("a kubeconfig that is not there is the user's mistake", async () => {
    const { status, stderr } = await watchfire(["start", "--kubeconfig", join(folder, "none")]);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^WF_KUBE_CONFIG/);
  });

  it("dead letters of a folder without a store are the user's mistake", async () => {
    const { status, stderr } = await watchfire(["dead-letters", "list", "--data", join(folder, "nothing")]);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^WF_CHECKPOINT_/);
  });

  it("validate tells every fault of every file, each at its place, and ends with 1", async () => {
    writeFileSync(join(folder, "good.ts"), "export default () => {};");
    writeFileSync(join(folder, "node.ts"), 'import "node:fs";\nexport default () => process.pid;');
    writeFileSync(join(folder, "good.yaml"), manifest("good"));
    writeFileSync(join(folder, "node.yaml"), manifest("node"));
    writeFileSync(join(folder, "odd.yaml"), manifest("good2", "  colour: red\n  delivery: { concurrency: many }\n"));
    const { status, stderr, stdout } = await watchfire(["validate", "--functions", folder]);
    expect(status).toBe(1);
    expect(stdout).toContain("1 valid");
    expect(stderr).toMatch(/WF_MANIFEST_UNKNOWN_FIELD .*odd\.yaml:7:3 /);
    expect(stderr).toMatch(/odd\.yaml:8:\d+ spec\.delivery\.concurrency/);
    expect(stderr).toMatch(/WF_BUNDLE_NODE_BUILTIN .*node\.ts:1:8: /);
    expect(stderr).toMatch(/WF_BUNDLE_ABSENT_NAME .*node\.ts:2:22: /);
  });

  it("validate of good functions ends with 0", async () => {
    const { status, stdout } = await watchfire([
      "validate",
      "--functions",
      resolve(import.meta.dirname, "../../functions"),
    ]);
    expect(stdout).toContain("0 faults");
    expect(status).toBe(0);
  });

  describe("with the endpoints' port taken", () => {
    const server = createServer();
    beforeAll(() => new Promise<void>((done) => server.listen(0, "127.0.0.1", () => done())));
    afterAll(() => new Promise((done) => server.close(done)));

    it("dev says so, and leaves no process behind", async () => {
      const address = server.address();
      const port = typeof address === "object" ? String(address?.port) : "";
      const { status, stderr } = await watchfire([
        "dev",
        "--functions",
        folder,
        "--data",
        join(folder, "data"),
        "--port",
        port,
      ]);
      expect(stderr).toMatch(/^WF_OBSERVE_LISTEN/m);
      expect(status).toBe(1);
    });
  });
});
