import { readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { dev, endpointsAt } from "../../runtime/cli/dev.ts";
import { manifest } from "../manifest/manifest.ts";
import { Client } from "../target/client.ts";
import { accessOf } from "../target/kubeconfig.ts";
import { folderOf } from "../tools/folder.ts";
import { watchfire } from "./run.ts";
import { Session } from "./session.ts";

const packageFile = resolve(import.meta.dirname, "../../runtime/package.json");
const { version: packageVersion } = JSON.parse(readFileSync(packageFile, "utf8")) as { version: string };

describe("the command line", () => {
  it("a command that is not there is the user's mistake", async () => {
    const { status, stderr } = await watchfire(["brew"]);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^WF_CLI_USAGE: .*"brew"/);
  });

  it("a misspelt command or option is answered with the one that was probably meant", async () => {
    expect((await watchfire(["validat"])).stderr).toContain("did you mean `watchfire validate`?");
    const { status, stderr } = await watchfire(["validate", "--fucntions", "x"]);
    expect(stderr).toMatch(/^WF_CLI_USAGE: there is no option --fucntions; did you mean --functions\?/);
    expect(status).toBe(1);
  });

  it("it tells its version", async () => {
    const { status, stdout } = await watchfire(["--version"]);
    expect(stdout).toBe(`${packageVersion}\n`);
    expect(status).toBe(0);
  });

  it("an environment variable that cannot be used is named, with its value and those that can", async () => {
    const { status, stderr } = await watchfire(["start", "--kubeconfig", "none"], { WATCHFIRE_LOG_LEVEL: "loud" });
    expect(stderr).toBe(
      "WF_CLI_ENVIRONMENT: the environment variable WATCHFIRE_LOG_LEVEL has a value that cannot be used, " +
        'got "loud"; set it to one of fatal, error, warn, info, debug, trace, silent, or unset it\n',
    );
    expect(status).toBe(1);
  });

  it.each([
    [["start", "--store", "redis"], '--store takes sqlite, kubernetes, nats, got "redis"'],
    [["start", "--store", "kubernetes"], "--store kubernetes needs --leader-elect"],
  ])("a store that cannot be used is the user's mistake: %j", async (args, said) => {
    const { status, stderr } = await watchfire(args);
    expect(stderr).toContain(`WF_CLI_USAGE: ${said}`);
    expect(status).toBe(1);
  });

  it.each([
    [["cluster", "--port", "-1"], '--port takes a port, 0 to 65535, got "-1"'],
    [["cluster", "--port=65536"], '--port takes a port, 0 to 65535, got "65536"'],
    [["dev", "--port", "9464x"], '--port takes a port, 0 to 65535, got "9464x"'],
    [["dev", "--port", "1e3"], '--port takes a port, 0 to 65535, got "1e3"'],
    [["start", "--listen", "127.0.0.1:99999"], '--listen takes a port, 0 to 65535, got "99999"'],
    [["start", "--listen", "9464"], '--listen takes HOST:PORT, got "9464"; such as 127.0.0.1:9464'],
  ])("a port that is none is the user's mistake: %j", async (args, said) => {
    const { status, stderr } = await watchfire(args);
    expect(stderr).toContain(`WF_CLI_USAGE: ${said}`);
    expect(status).toBe(1);
  });

  it("a kubeconfig that is not there is the user's mistake", async () => {
    const { status, stderr } = await watchfire(["start", "--kubeconfig", join(folderOf({}), "none")]);
    expect(stderr).toMatch(/^WF_KUBE_CONFIG/);
    expect(status).toBe(1);
  });

  it("dead letters of a folder without a store are the user's mistake", async () => {
    const { status, stderr } = await watchfire(["dead-letters", "list", "--data", join(folderOf({}), "nothing")]);
    expect(stderr).toMatch(/^WF_CHECKPOINT_MISSING/);
    expect(status).toBe(1);
  });

  it("validate tells every fault of every file, each at its place, and ends with 1", async () => {
    const odd = "  triggers: []\n  colour: red\n  delivery: { concurrency: many }";
    const folder = folderOf({
      "good/function.yaml": manifest("good"),
      "good/handler.ts": "export default () => {};",
      "node/function.yaml": manifest("node"),
      "node/handler.ts": 'import "node:fs";\nexport default () => process.pid;',
      "odd/function.yaml": manifest("odd", odd),
      "odd/handler.ts": "export default () => {};",
    });
    const { status, stderr, stdout } = await watchfire(["validate", "--functions", folder]);
    const said = stderr.replaceAll(`${folder}/`, "").split("\n");
    expect(said.filter((line) => !line.startsWith("not checked: "))).toEqual([
      expect.stringMatching(/^WF_MANIFEST_INVALID_VALUE odd\/function\.yaml:6:13 spec\.triggers: /),
      expect.stringMatching(/^WF_MANIFEST_UNKNOWN_FIELD odd\/function\.yaml:7:3 spec\.colour: /),
      expect.stringMatching(/^WF_MANIFEST_WRONG_TYPE odd\/function\.yaml:8:28 spec\.delivery\.concurrency: /),
      expect.stringMatching(/^WF_BUNDLE_NODE_BUILTIN node\/handler\.ts:1:8: /),
      expect.stringMatching(/^WF_BUNDLE_ABSENT_NAME node\/handler\.ts:2:22: /),
      "",
    ]);
    expect(stdout).toContain("1 valid, 5 faults");
    expect(status).toBe(1);
  });

  it("validate of good functions ends with 0", async () => {
    const shipped = resolve(import.meta.dirname, "../../functions");
    const { status, stdout } = await watchfire(["validate", "--functions", shipped], {}, folderOf({}));
    expect(stdout).toContain("0 faults");
    expect(status).toBe(0);
  });

  it("dev whose port is taken says so, and leaves no process behind", async () => {
    const server = createServer();
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", () => done()));
    onTestFinished(() => new Promise<void>((done) => server.close(() => done())));
    const address = server.address();
    const port = typeof address === "object" ? String(address?.port) : "";
    const folder = folderOf({});
    const data = join(folder, "data");
    const { status, stderr } = await watchfire(["dev", "--functions", folder, "--data", data, "--port", port]);
    expect(stderr).toMatch(/^WF_OBSERVE_LISTEN/m);
    expect(status).toBe(1);
  });

  it("dev whose data folder is taken away ends with the next event, and says so", async () => {
    const folder = folderOf({
      "f/function.yaml": manifest("f", "  triggers: [{ watch: { apiVersion: v1, kind: Namespace } }]"),
      "f/handler.ts": "export default () => {};",
    });
    const data = join(folderOf({}), "data");
    const dev = new Session(["dev", "--functions", folder, "--data", data]);
    await dev.says(/Added v1\/Namespace default {2}ok/);
    const admin = new Client(await accessOf(join(data, "kubeconfig")));
    rmSync(data, { recursive: true });
    await admin.post("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: "late" } });
    await dev.says(/^WF_CHECKPOINT_GONE \S+checkpoint\.db: it was removed or replaced; start it again/m);
    expect(await dev.end()).toBe(1);
    expect(dev.output).not.toContain("    at ");
  });

  it("dev whose data folder is taken away says so at its end, though nothing happened in between", async () => {
    const folder = folderOf({
      "f/function.yaml": manifest("f", "  triggers: [{ watch: { apiVersion: v1, kind: Namespace } }]"),
      "f/handler.ts": "export default () => {};",
    });
    const data = join(folderOf({}), "data");
    const dev = new Session(["dev", "--functions", folder, "--data", data]);
    await dev.says(/Added v1\/Namespace default {2}ok/);
    for (const name of readdirSync(data)) rmSync(join(data, name), { recursive: true });
    dev.signal("SIGINT");
    expect(await dev.end()).toBe(1);
    expect(dev.output).toMatch(/^WF_CHECKPOINT_GONE \S+checkpoint\.db: it was removed or replaced; start it again/m);
    expect(dev.output).not.toContain("    at ");
  });

  it("dev's data folder ignores itself", async () => {
    const folder = folderOf({});
    const data = join(folder, "data");
    const dev = new Session(["dev", "--functions", folder, "--data", data]);
    await dev.says(/Ctrl-C/);
    expect(readFileSync(join(data, ".gitignore"), "utf8")).toBe("*\n");
    dev.signal("SIGINT");
    expect(await dev.end()).toBe(0);
  });

  it("dev may step over the usual port, and over none that was named", () => {
    expect(endpointsAt(dev.options.port.default, false).spare).toBeGreaterThan(0);
    expect(endpointsAt("8080", true)).toEqual({ host: "127.0.0.1", port: 8080, spare: 0 });
  });
});
