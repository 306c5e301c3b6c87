import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Client, patchType } from "../target/client.ts";
import { accessOf } from "../target/kubeconfig.ts";
import { typedProject } from "../tools/typed-project.ts";
import { until } from "../tools/until.ts";
import { manifest, Session, write } from "./session.ts";

const handler = (field: string) => `
import { defineHandler } from "@watchfire/sdk";
import type { V1ConfigMap } from "@watchfire/sdk/kubernetes";
export default defineHandler<V1ConfigMap>((event) => {
  return event.object.${field};
});
`;
const files = (field: string) => ({
  "functions/copy/function.yaml": manifest("copy", "", "{ apiVersion: v1, kind: ConfigMap }"),
  "functions/copy/handler.ts": handler(field),
});

test("`dev` runs code whose types are wrong, warns of it afterwards with place and code, and tells when it is mended", async () => {
  const folder = typedProject(files("dta"));
  const dev = new Session(["dev"], {}, folder);
  expect(await dev.says(/copy {2}Added v1\/ConfigMap default\/kube-root-ca\.crt {2}ok/)).not.toContain("WF_TYPES");
  await dev.says(/copy {2}type errors found, the code runs anyway/);
  expect(await dev.says(/> 5 \|.*\n.*\^/)).toMatch(
    /^ {2}WF_TYPES_HANDLER functions\/copy\/handler\.ts:5:23: TS2551: Property 'dta' does not exist[\s\S]*> 5 \| {3}return event\.object\.dta;\n {6}\| {23}\^/,
  );
  write(join(folder, "functions/copy/handler.ts"), handler("data"));
  await dev.says(/no type errors any more/);
  write(join(folder, "functions/copy/handler.ts"), handler("kin"));
  await dev.says(/handler\.ts:5:23: TS2551: Property 'kin'/);
  dev.signal("SIGINT");
  expect(await dev.end()).toBe(0);
});

test("`dev` warns of what `validate` finds in a handler and its manifest, and once of each", async () => {
  const calling = (more = "") => `import { defineHandler, type Triggers } from "@watchfire/sdk";
import type { V1Pod } from "@watchfire/sdk/kubernetes";
export default defineHandler<Triggers<{ pods: V1Pod }>>(async (event, ctx) => {
  if (event.type === "Deleted") await ctx.kube.get({ apiVersion: "v1", kind: "Secret", name: "s", namespace: "a" });${more}
});
`;
  const folder = typedProject({
    "functions/copy/function.yaml": manifest("copy", "", "{ apiVersion: v1, kind: Namespace }"),
    "functions/copy/handler.ts": calling(),
    "functions/stray/handler.ts": "export default () => {};",
  });
  const dev = new Session(["dev"], {}, folder);
  await dev.says(/warning: WF_MANIFEST_STRAY \S*stray\/handler\.ts: /);
  await dev.says(/warning: WF_RBAC_CALL functions\/copy\/handler\.ts:4:\d+: kube\.get needs .*resources: \[secrets\]/);
  await dev.says(/WF_TYPES_TRIGGER functions\/copy\/handler\.ts:3:\d+: the manifest has no trigger pods; /);
  const added = '\n  await ctx.kube.delete({ apiVersion: "v1", kind: "Node", name: "n" });';
  write(join(folder, "functions/copy/handler.ts"), calling(added));
  await dev.says(/warning: WF_RBAC_CALL .*handler\.ts:5:\d+: kube\.delete needs /);
  expect(dev.output.match(/kube\.get needs/g)).toHaveLength(1);
  dev.signal("SIGINT");
  expect(await dev.end()).toBe(0);
});

test("`dev` rewrites a function.d.ts when it starts and when the manifest changes, and creates none", async () => {
  const folder = typedProject({
    ...files("data"),
    "functions/copy/function.d.ts": "stale",
    "functions/other/function.yaml": manifest("other", "", "{ apiVersion: v1, kind: Namespace }"),
    "functions/other/handler.ts": handler("data"),
  });
  const types = () => readFileSync(join(folder, "functions/copy/function.d.ts"), "utf8");
  const dev = new Session(["dev"], {}, folder);
  await until("the types are fresh", 10_000, async () => types().includes('sdk.ObjectOf<"v1", "ConfigMap">'));
  write(join(folder, "functions/copy/function.yaml"), manifest("copy", "", "{ apiVersion: v1, kind: Pod }"));
  await until("they are again", 10_000, async () => types().includes('sdk.ObjectOf<"v1", "Pod">'));
  expect(existsSync(join(folder, "functions/other/function.d.ts"))).toBe(false);
  dev.signal("SIGINT");
  expect(await dev.end()).toBe(0);
});

test("`dev` applies an edited definition again, while it runs and at its next start, and rewrites its types", async () => {
  const definition = (field: string) =>
    JSON.stringify({
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: "sites.web.example" },
      spec: {
        ...{ group: "web.example", scope: "Namespaced", names: { kind: "Site", plural: "sites" } },
        versions: [
          {
            ...{ name: "v1", served: true, storage: true },
            schema: {
              openAPIV3Schema: {
                type: "object",
                properties: { spec: { type: "object", properties: { [field]: { type: "string" } } } },
              },
            },
          },
        ],
      },
    });
  const folder = typedProject({
    "functions/site/function.yaml": manifest("site", "", "{ apiVersion: web.example/v1, kind: Site }"),
    "functions/site/handler.ts": `export default (event: any, ctx: any) => ctx.log.info("has " + Object.keys(event.object.spec));`,
    "functions/site/crd.yaml": definition("url"),
    "types/sites.web.example.ts": "// Made by `watchfire types`, long ago",
  });
  const types = () => readFileSync(join(folder, "types/sites.web.example.ts"), "utf8");
  /** Applies an object with the field as soon as the definition has it. */
  const apply = async (field: string) => {
    const object = { apiVersion: "web.example/v1", kind: "Site", metadata: { name: "a" }, spec: { [field]: "x" } };
    const body = JSON.stringify(object);
    const query = { fieldManager: "me", force: true };
    const path = "/apis/web.example/v1/namespaces/default/sites/a";
    const client = new Client(await accessOf(join(folder, ".watchfire/kubeconfig")));
    await until(`${field} is a field`, 60_000, async () => {
      return (await client.reply("PATCH", path, { query, body, type: patchType.apply })).status < 300;
    });
  };
  const dev = new Session(["dev"], {}, folder);
  await dev.says(/ready in/);
  await apply("url");
  await dev.says(/site {2}has url/);
  await until("the types are fresh", 60_000, async () => types().includes("url?: string"));
  write(join(folder, "functions/site/crd.yaml"), definition("tone"));
  await dev.says(/definition applied again .*functions\/site\/crd\.yaml/);
  await apply("tone");
  await dev.says(/site {2}has tone/);
  await until("the types are fresh again", 60_000, async () => types().includes("tone?: string"));
  dev.signal("SIGINT");
  expect(await dev.end()).toBe(0);
  write(join(folder, "functions/site/crd.yaml"), definition("size"));
  const next = new Session(["dev"], {}, folder);
  await next.says(/ready in/);
  await apply("size");
  await next.says(/site {2}has size/);
  next.signal("SIGINT");
  expect(await next.end()).toBe(0);
});

test("a compiler that is at work ends with `dev`", async () => {
  const folder = typedProject(files("data"), { typescript: false });
  const own = join(folder, "node_modules/typescript");
  const running = join(folder, "running");
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, "package.json"), `{ "bin": { "tsc": "tsc.cjs" } }`);
  const endless = `require("node:fs").writeFileSync(${JSON.stringify(running)}, String(process.pid)); setInterval(() => {}, 1e6);`;
  writeFileSync(join(own, "tsc.cjs"), endless);
  const dev = new Session(["dev"], {}, folder);
  await until(
    "the compiler is at work",
    15_000,
    async () => existsSync(running) && readFileSync(running, "utf8") !== "",
  );
  const pid = Number(readFileSync(running, "utf8"));
  dev.signalAlone("SIGINT");
  expect(await dev.end()).toBe(0);
  await until("the compiler is gone", 5_000, async () => !isAlive(pid));
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
