// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are placeholders of manifests
// `deploy --values` fills the manifests of a folder for one stage.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { watchfire } from "../cli/run.ts";
import { createTeam } from "../scenarios/cluster.ts";
import { CatalogFixture } from "./fixture.ts";

// Each test runs the command line several times, as processes.
vi.setConfig({ testTimeout: 90_000 });

/** A folder whose function watches the namespace of a stage, with a value for it. */
async function staged() {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  await fixture.define("greet", { watch: team.watch(), work: "ctx.log.info('stage ' + ctx.env.STAGE);" });
  const manifest = `apiVersion: watchfire.dev/v1alpha1
kind: Function
metadata: { name: greet }
spec:
  handler: ./handler.ts
  triggers:
    - watch:
        apiVersion: v1
        kind: ConfigMap
        namespaceSelector: { matchNames: ["\${namespace}"] }
        labelSelector: ${JSON.stringify((team.watch() as { labelSelector?: object }).labelSelector ?? {})}
  delivery:
    concurrency: \${workers}
  env:
    - name: STAGE
      value: \${stage} of $\${stage}
`;
  await writeFile(join(fixture.functions, "greet", "function.yaml"), manifest);
  const values = async (name: string, text: string) => {
    const file = join(fixture.folder, `${name}.yaml`);
    await writeFile(file, text);
    return ["--values", file];
  };
  return { team, fixture, values };
}

test("the filled manifest is deployed and runs, a dry run shows the values, and a rollback needs no values", async () => {
  const { team, fixture, values } = await staged();
  const test = await values("test", `namespace: ${team.name}\nworkers: 4\nstage: test\n`);
  const shown = await fixture.tryDeploy(...test, "--dry-run");
  expect([shown.status, shown.stderr]).toEqual([3, ""]);
  expect(shown.stdout).toMatch(/^filled \$\{workers\} at \S+greet\/function\.yaml:13:18 with 4$/m);
  expect(shown.stdout).toMatch(/^filled \$\{stage\} at \S+greet\/function\.yaml:16:14 with "test"$/m);
  await fixture.deploy(...test);
  const runtime = await fixture.install();
  await runtime.start();
  await team.make("a");
  await runtime.sees("the value is used", () => runtime.lines.some(({ msg }) => msg === "stage test of ${stage}"));
  expect((await fixture.configMapOf("greet")).data["function.yaml"]).toContain("    concurrency: 4\n");
  const prod = await values("prod", `namespace: ${team.name}\nworkers: 8\nstage: prod\n`);
  const json = JSON.parse((await fixture.tryDeploy(...prod, "--dry-run", "-o", "json")).stdout);
  expect(json).toMatchObject({ functions: [{ name: "greet", fate: "changed" }], changes: true });
  expect(json.values).toContainEqual({
    name: "workers",
    value: "8",
    place: { file: expect.stringMatching(/greet\/function\.yaml$/), line: 13, column: 18 },
  });
  await fixture.deploy(...prod);
  await runtime.sees("the new value is loaded", () => runtime.lines.some(({ msg }) => msg === "change loaded"));
  expect((await fixture.run("rollback", "--set", "default")).stdout).toMatch(/^greet +changed/);
  expect((await fixture.configMapOf("greet")).data["function.yaml"]).toContain("    concurrency: 4\n");
});

test("built functions are filled when they are built, and deploy as their filled sources do", async () => {
  const { team, fixture, values } = await staged();
  const stage = await values("stage", `namespace: ${team.name}\nworkers: 4\nstage: test\n`);
  const out = join(fixture.folder, "build");
  const built = await watchfire(["build", "--functions", fixture.functions, "--out", out, ...stage]);
  expect([built.status, built.stderr]).toEqual([0, ""]);
  expect(await fixture.deploy("--functions", out)).toEqual({ greet: "created" });
  expect(await fixture.deploy(...stage)).toEqual({ greet: "unchanged" });
});

test("unknown and unused names and a wrong type are refused with their places, and nothing is written", async () => {
  const { team, fixture, values } = await staged();
  const wrong = await values("wrong", `namespaces: ${team.name}\nworkers: many\nstage: a\n`);
  const unknown = await fixture.tryDeploy(...wrong);
  expect([unknown.status, unknown.stdout]).toEqual([1, ""]);
  expect(unknown.stderr).toMatch(
    /^WF_MANIFEST_VALUE_UNKNOWN \S+greet\/function\.yaml:10:43: there is no value for \$\{namespace\}; did you mean \$\{namespaces\}\?\n$/,
  );
  const type = await fixture.tryDeploy(...(await values("type", `namespace: ${team.name}\nworkers: many\nstage: a\n`)));
  expect(type.stderr).toMatch(/^WF_MANIFEST_WRONG_TYPE \S+greet\/function\.yaml:13:18 spec\.delivery\.concurrency: /);
  const more = await values("more", `namespace: ${team.name}\nworkers: 2\nstage: a\nother: 1\n`);
  for (const command of ["deploy", "validate", "rbac"]) {
    const of = command === "validate" ? [] : ["--namespace", "default"];
    const { status, stdout, stderr } = await watchfire([command, "--functions", fixture.functions, ...of, ...more]);
    expect([command, status]).toEqual([command, 1]);
    expect(stdout + stderr).toMatch(/WF_MANIFEST_VALUE_UNUSED \S+more\.yaml:4:1: no manifest has \$\{other\}/);
  }
  const gone = await fixture.tryDeploy("--values", join(fixture.folder, "gone.yaml"));
  expect(gone.stderr).toMatch(/^WF_MANIFEST_UNREADABLE \S+gone\.yaml: there is no such file/);
  expect(await fixture.objects()).toEqual([]);
});

test("without --values a placeholder is plain text, as it always was", async () => {
  const team = await createTeam();
  const fixture = await CatalogFixture.create();
  const spec = { env: [{ name: "A", value: "${a} $${b} ${" }] };
  await fixture.define("greet", { watch: team.watch(), spec, work: "ctx.log.info(ctx.env.A);" });
  await fixture.deploy();
  const runtime = await fixture.install();
  await runtime.start();
  await team.make("a");
  await runtime.sees("the text is as it is", () => runtime.lines.some(({ msg }) => msg === "${a} $${b} ${"));
});
