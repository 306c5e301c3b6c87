import { readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { expect, inject, it } from "vitest";
import { until } from "../tools/until.ts";
import { Project } from "./project.ts";

const [tarball = ""] = inject("tarballs").filter((each) => each.includes("create-watchfire"));
const packages = dirname(tarball);
const comparison = readFileSync(join(import.meta.dirname, "../../runtime/docs/comparison.md"), "utf8");

/** The output of `npm run dev` once a template's sample has been handled. */
const firstEvents = {
  hello: /hello {2}Added v1\/ConfigMap demo\/app-settings {2}ok/,
  controller: /greeting {2}Reconcile example\.com\/v1\/Greeting demo\/morning {2}ok/,
  sync: /sync {2}Added v1\/ConfigMap team-a\/settings {2}ok/,
  notifier: /notifier {2}Added v1\/Event default\/web\.1 {2}ok/,
};

it.each(Object.entries(firstEvents))(
  "a project of the template %s, begun from the tarball: first event in a minute; its tests, types and build pass",
  async (template, firstEvent) => {
    const bare = Project.empty();
    const words = ["--name", "mine", "--template", template, "--packages", packages, "--yes"];
    bare.run("npm", "exec", "--yes", "--package", tarball, "--", "create-watchfire", ...words);
    const mine = bare.below("mine");
    const begun = performance.now();
    mine.run("npm", "install", "--prefer-offline");
    const dev = mine.start("npm", "run", "dev", "--", "--port", "0");
    await dev.says(firstEvent);
    expect(performance.now() - begun).toBeLessThan(60_000);
    dev.signalAlone("SIGTERM");
    await dev.end();
    await until("it has drained", 20_000, async () => dev.output.includes("drained"));

    const [, megabytes] = /\| a new project, installed \| (\d+) MB,/.exec(comparison) ?? [];
    expect(Math.abs(mine.installed().megabytes / Number(megabytes) - 1)).toBeLessThan(0.1);
    expect(stripVTControlCharacters(mine.run("npm", "test"))).toMatch(/Tests {2}\d passed[\s\S]*^1 passed, 0 failed$/m);
    mine.run("npm", "run", "check");
    const hasTypes = template === "controller";
    expect(readFileSync(join(mine.folder, "README.md"), "utf8").includes("npm run types")).toBe(hasTypes);
    if (hasTypes) {
      const types = join(mine.folder, "types/greetings.example.com.ts");
      const made = readFileSync(types, "utf8");
      rmSync(types);
      mine.run("npm", "run", "types");
      expect(readFileSync(types, "utf8")).toBe(made);
    }
    mine.run("npx", "tsc", "--noEmit", "--module", "esnext", "--moduleResolution", "bundler");
    expect(mine.run("npm", "run", "validate")).toContain("1 valid, 0 faults\n");
    mine.run("npm", "run", "build");
    // The file that the Dockerfile copies.
    expect(readFileSync(join(mine.folder, "Dockerfile"), "utf8")).toContain("COPY build/ ./");
    expect(readdirSync(join(mine.folder, "build"))).toContain("watchfire.lock.json");
    // The steps of the workflow are the project's own scripts.
    const workflow = readFileSync(join(mine.folder, ".github/workflows/ci.yaml"), "utf8");
    const { scripts } = JSON.parse(readFileSync(join(mine.folder, "package.json"), "utf8"));
    const steps = [...workflow.matchAll(/run: npm (?:run )?(\w+)$/gm)].map(([, name]) => name);
    expect(steps).toEqual(["ci", "validate", "check", "test", "build"]);
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(steps.slice(1)));
  },
);

it("`watchfire init` begins the same project", () => {
  const project = Project.empty();
  project.run("npm", "install", "--prefer-offline", "--ignore-scripts", ...inject("tarballs"));
  const words = ["--template", "sync", "--packages", packages, "--yes"];
  project.run("npx", "watchfire", "init", "--name", "one", ...words);
  project.run("npx", "create-watchfire", "--name", "two", ...words);
  const [one, two] = ["one", "two"].map((name) => readdirSync(join(project.folder, name), { recursive: true }).sort());
  expect(one).toEqual(two);
  expect(one).toEqual(expect.arrayContaining([".gitignore", "functions/sync/handler.ts", "README.md"]));
});

it("--help is that of `watchfire init`", () => {
  const project = Project.empty();
  project.run("npm", "install", "--prefer-offline", "--ignore-scripts", ...inject("tarballs"));
  const said = project.run("npx", "create-watchfire", "--help");
  expect(said).toBe(project.run("npx", "watchfire", "init", "--help"));
  expect(said).toContain("--template NAME");
});

it("a mistake is said in one line, and nothing is written", () => {
  const project = Project.empty();
  project.run("npm", "install", "--prefer-offline", "--ignore-scripts", tarball);
  const create = (...words: string[]) => project.run("npx", "create-watchfire", "--yes", ...words);
  expect(() => create("--name", "mine")).toThrow(/^WF_CLI_USAGE: name the folder .* --packages DIR; /m);
  expect(() => create("--template", "helo", "--packages", packages)).toThrow(/no template helo; there are hello, /);
  expect(() => create("--name", "Mine!", "--packages", packages)).toThrow(/Mine! is not a name for a package/);
  expect(() => create("--name", "mine", "--packages", ".")).toThrow(/\. has no watchfire-runtime-[\d.]+\.tgz/);
  expect(() => create("--name", ".", "--packages", packages)).toThrow(/is not empty|is not a name/);
  expect(readdirSync(project.folder).sort()).toEqual(["node_modules", "package-lock.json", "package.json"]);
});
