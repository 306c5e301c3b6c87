import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";

const root = join(import.meta.dirname, "../..");
const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

interface Step {
  readonly uses?: string;
  readonly run?: string;
}

interface Job {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly needs?: string | readonly string[];
  readonly steps: readonly Step[];
}

const workflows = globSync(".github/workflows/*.yaml", { cwd: root }).map((file) => {
  const text = readFileSync(join(root, file), "utf8");
  return { file, text, ...(parse(text) as { permissions: object; jobs: Readonly<Record<string, Job>> }) };
});
const release = workflows.find(({ file }) => file.endsWith("release.yaml"));
const commands = (job: Job | undefined): string[] => (job?.steps ?? []).flatMap(({ run }) => run ?? []);

describe.each(workflows)("the workflow $file", ({ text, permissions, jobs }) => {
  it("runs no npm script that is not there", () => {
    const all = Object.values(jobs).flatMap(commands);
    const named = all.flatMap((run) => [...run.matchAll(/npm (?:run )?([\w:]+)/g)].map(([, name]) => name));
    expect(named.length).toBeGreaterThan(4);
    expect(named.filter((name) => name !== "ci" && !(name ?? "").match(/^test$/) && !scripts[name ?? ""])).toEqual([]);
  });

  it("runs no program beside npm that its runner or a step before does not have", () => {
    for (const job of Object.values(jobs)) {
      const programs = commands(job).map((run) => run.split(" ")[0] ?? "");
      const installed = job.steps.some(({ uses }) => uses?.includes("cosign-installer")) ? ["cosign"] : [];
      const known = ["npm", "docker", "helm", "gh", "cp", "echo", "go", ...installed];
      expect(programs.filter((program) => !known.includes(program))).toEqual([]);
    }
  });

  it("takes each action by its commit, beside which its version stands", () => {
    const uses = [...text.matchAll(/uses: (.*)$/gm)].map(([, action]) => action);
    for (const action of uses) expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  it("may only read, but for jobs that say what they write", () => {
    expect(permissions).toEqual({ contents: "read" });
    expect(text).not.toMatch(/secrets\.|pull_request_target/);
    for (const { steps } of Object.values(jobs))
      for (const { run } of steps) expect(run ?? "").not.toMatch(/\$\{\{ *github\.(?:event|head_ref|ref_name)/);
  });
});

describe("a release", () => {
  it("publishes nothing that the tests have not passed", () => {
    const jobs = release?.jobs ?? {};
    const upstream = (name: string): string[] =>
      [jobs[name]?.needs ?? []].flat().flatMap((each) => [each, ...upstream(each)]);
    for (const name of Object.keys(jobs).filter((each) => each !== "check")) expect(upstream(name)).toContain("check");
    expect(commands(jobs.check)).toEqual(
      expect.arrayContaining(["npm run check", "npm test", "npm run test:packages"]),
    );
  });

  it("publishes packages with provenance, by a token that lives as long as the job", () => {
    expect(release?.jobs.packages?.permissions).toEqual({ contents: "read", "id-token": "write" });
    expect(commands(release?.jobs.packages)).toContain("npm run release:publish -- --provenance");
  });

  it("signs each image, their index and the chart by digest, and attests what is in each image", () => {
    for (const name of ["image", "index", "chart"]) {
      const signed = commands(release?.jobs[name]).filter((run) => run.startsWith("cosign sign --yes"));
      expect(signed, name).toHaveLength(1);
      expect(signed[0]).toContain("@$");
    }
    expect(commands(release?.jobs.image).filter((run) => run.startsWith("cosign attest"))).toEqual([
      expect.stringContaining("--type cyclonedx --predicate deploy/.image/sbom.cdx.json"),
    ]);
  });
});
