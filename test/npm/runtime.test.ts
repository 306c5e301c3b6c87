import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, inject, it } from "vitest";
import { until } from "../tools/until.ts";
import { Project } from "./project.ts";

const example = join(import.meta.dirname, "../../functions/hello");
let project: Project;

beforeAll(() => {
  project = Project.empty();
  const tarballs = inject("tarballs").filter((each) => !each.includes("create-watchfire"));
  project.run("npm", "install", "--prefer-offline", "--ignore-scripts", ...tarballs);
  cpSync(example, join(project.folder, "functions/hello"), { recursive: true });
});

/** The descendants of a process: `pid name`. */
function startedBy(pid: number): string[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return children === "" ? [] : children.split(" ").flatMap((child) => [child, ...startedBy(Number(child))]);
}

/**
 * Builds the project's functions and starts them on a cluster by `command`. Returns the process once it is ready, and the address
 * of its endpoints.
 */
async function startBuilt(...command: readonly [string, ...string[]]) {
  project.run("npx", "watchfire", "build");
  const cluster = project.start("npx", "watchfire", "cluster", "--kubeconfig", "kubeconfig");
  await cluster.says(/cluster ready/);
  const data = mkdtempSync(join(project.folder, "data-"));
  const words = ["--functions", "build", "--data", data, "--kubeconfig", "kubeconfig", "--listen", "127.0.0.1:0"];
  const runtime = project.start(...command, "start", ...words);
  const [, url] = /"url":"(http[^"]+)"/.exec(await runtime.says(/"msg":"started"/)) ?? [];
  await runtime.says(/"msg":"ready"/);
  return { runtime, url };
}

const nameOf = (pid: string): string => readFileSync(`/proc/${pid}/cmdline`, "utf8");

describe("the runtime's package, installed in an empty folder", () => {
  it("validates and builds a function that imports the SDK from that folder's node_modules", () => {
    expect(project.run("npx", "watchfire", "validate")).toBe("1 valid, 0 faults\n");
    expect(project.run("npx", "watchfire", "build")).toMatch(/^hello {2}[0-9a-f]{16} {2}\d KiB\n$/);
    expect(readdirSync(join(project.folder, "build")).sort()).toEqual(["hello", "watchfire.lock.json"]);
  });

  it("is as large as the page on other tools says, with the two other packages and all that they need", () => {
    const comparison = readFileSync(join(import.meta.dirname, "../../runtime/docs/comparison.md"), "utf8");
    const [, megabytes, packages] = /\| (\d+) MB on disk, (\d+) packages,/.exec(comparison) ?? [];
    const installed = project.installed();
    expect(Math.abs(installed.megabytes / Number(megabytes) - 1)).toBeLessThan(0.1);
    expect(installed.packages).toBe(Number(packages));
  });

  it("runs a function on the cluster that it brings along; SIGTERM to npx alone ends all of it", async () => {
    const dev = project.start("npx", "watchfire", "dev", "--port", "0");
    await dev.says(/hello {2}Added v1\/ConfigMap demo\/app-settings {2}ok/);
    const processes = startedBy(dev.pid);
    expect(processes.map(nameOf).filter((name) => name.startsWith("watchfire executor"))).not.toEqual([]);
    dev.signalAlone("SIGTERM");
    await dev.end();
    await until("all its processes are gone", 20_000, async () => !processes.some((pid) => existsSync(`/proc/${pid}`)));
    expect(dev.output).toContain("drained");
  });

  it("starts what was built on a cluster of a kubeconfig", async () => {
    const { runtime } = await startBuilt("npx", "watchfire");
    runtime.signal("SIGINT");
    await runtime.says(/"clean":true/);
  });

  it("answers at its endpoints without the undici that is inside Node", async () => {
    const report = `import { writeFileSync } from "node:fs";
      process.once("exit", () => writeFileSync("loaded", process.moduleLoadList.join("\\n")));`;
    writeFileSync(join(project.folder, "report.mjs"), report);
    const program = "node_modules/@watchfire/runtime/bin/watchfire.js";
    const { runtime, url } = await startBuilt("node", "--import", "./report.mjs", program);
    expect(await (await fetch(`${url}/livez`)).text()).toBe("ok\n");
    runtime.signal("SIGINT");
    await runtime.end();
    const loaded = readFileSync(join(project.folder, "loaded"), "utf8").split("\n");
    expect(loaded).toContain("NativeModule http");
    expect(loaded.filter((name) => name.includes("undici"))).toEqual([]);
  });

  it("has the manifest's schema for editors, every command, and no source", () => {
    const folder = join(project.folder, "node_modules/@watchfire/runtime");
    const schema = JSON.parse(readFileSync(join(folder, "function.schema.json"), "utf8"));
    expect(schema.title).toBe("Watchfire Function");
    expect(existsSync(join(folder, "THIRD-PARTY-LICENSES"))).toBe(true);
    const names = [...project.run("npx", "watchfire", "--help").matchAll(/^ {2}([\w-]+)/gm)].map(([, name]) => name);
    expect(names).toEqual(expect.arrayContaining(["dev", "start", "build", "deploy", "cluster", "rbac", "doctor"]));
    for (const name of names)
      expect(project.run("npx", "watchfire", name ?? "", "--help")).toContain(`watchfire ${name}`);
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
    expect(files.filter((file) => file.endsWith(".ts"))).toEqual([]);
  });

  it("builds a function of packages that are installed beside it, copied or linked", () => {
    for (const name of ["copied", "linked"]) {
      const folder = join(project.folder, "lib", name);
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, "package.json"), JSON.stringify({ name, version: "1.0.0", main: "index.js" }));
      writeFileSync(join(folder, "index.js"), `module.exports = "of the ${name} package";\n`);
    }
    const tarball = project.run("npm", "pack", "./lib/copied").trim();
    project.run("npm", "install", "--prefer-offline", "--ignore-scripts", `./${tarball}`, "./lib/linked");
    const handler = `import copied from "copied";\nimport linked from "linked";\n${readFileSync(join(example, "handler.ts"), "utf8")}`;
    writeFileSync(
      join(project.folder, "functions/hello/handler.ts"),
      `${handler}\nexport const said = [copied, linked];\n`,
    );
    expect(project.run("npx", "watchfire", "validate")).toBe("1 valid, 0 faults\n");
    project.run("npx", "watchfire", "build");
    const files = readdirSync(join(project.folder, "build/hello")).map((file) =>
      join(project.folder, "build/hello", file),
    );
    const built = files.map((file) => readFileSync(file, "utf8")).join("");
    expect(built).toContain("of the copied package");
    expect(built).toContain("of the linked package");
  });

  describe("on a machine whose Node is older", () => {
    let older: string;

    beforeAll(() => {
      const words = ["--yes", "--package=node@22", "--", "node", "--print", "process.execPath"];
      older = project.run("npx", ...words).trim();
    });

    it("says in one line what is needed, before it is installed and when it is called", () => {
      const { folder } = project;
      for (const program of ["preinstall.js", "watchfire.js"]) {
        const call = () => new Project(folder, older).run("node", `node_modules/@watchfire/runtime/bin/${program}`);
        expect(call).toThrow(
          /^WF_CLI_NODE: Node 24 or newer is needed, got 22\.[\d.]+; .*install --save-dev node@24`$/m,
        );
      }
    });

    it("runs on the Node that the project depends on", () => {
      const own = Project.empty(older);
      own.run("npm", "install", "--prefer-offline", "--save-dev", "node@24", ...inject("tarballs"));
      expect(own.run("npx", "watchfire", "--version")).toMatch(/^\d+\.\d+\.\d+\n$/);
    });
  });
});
