// Integers beyond 2^53, through a whole runtime and its handlers to an API server and back.
import { beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { type Definition, defineWidgets } from "../target/crd.ts";
import { admin, createNamespace, eventually } from "../target/fixture.ts";
import { Installation } from "../tools/installation.ts";

const { access } = inject("shared");
/** An integer beyond 2^53, and the number to which JavaScript rounds it. */
const odd = "9007199254740993";
const even = "9007199254740992";

const number = { type: "integer", format: "int64" };
const properties = { id: number, ids: { type: "array", items: number }, by: { type: "string" } };
const schema = {
  type: "object",
  properties: { spec: { type: "object", properties }, status: { type: "object", properties: { id: number } } },
};
const version = {
  name: "v1",
  served: true,
  storage: true,
  schema: { openAPIV3Schema: schema },
  subresources: { status: {} },
};

let widgets: Definition;
beforeAll(async () => {
  widgets = await defineWidgets({ versions: [version] });
});

/** A runtime with one function, which watches the Widgets of a namespace and does `work` for each. */
async function running(work: string) {
  const namespace = await createNamespace();
  const runtime = await Installation.on({ server: access.url, ca: access.ca, token: access.token });
  onTestFinished(() => runtime[Symbol.asyncDispose]());
  const events = ["Added"];
  const watch = {
    apiVersion: widgets.apiVersion,
    kind: "Widget",
    namespaceSelector: { matchNames: [namespace] },
    events,
  };
  const permissions = [
    { apiGroups: [widgets.group], resources: ["widgets", "widgets/status"], verbs: ["*"], namespaces: [namespace] },
  ];
  const ref = `const { apiVersion, kind, metadata: { name, namespace } } = event.object;
    const ref = { apiVersion, kind, name, namespace };`;
  await runtime.define("f", {
    watch,
    work: ref + work,
    spec: { permissions, delivery: { retry: { maxAttempts: 1 } } },
  });
  await runtime.start();
  const path = `${widgets.in(namespace)}/a`;
  const make = () => {
    const head = `"apiVersion":"${widgets.apiVersion}","kind":"Widget","metadata":{"name":"a","labels":{"own":"yes"}}`;
    const body = `{${head},"spec":{"id":${odd},"ids":[${even},${odd}]}}`;
    return admin.reply("POST", widgets.in(namespace), { body });
  };
  /** The object as text, once the function has labelled it. */
  const labelled = async (at = path) => {
    const isLabelled = ({ body }: { body: { metadata?: { labels?: object } } }) =>
      "seen" in (body.metadata?.labels ?? {});
    return (await eventually(() => admin.reply("GET", at), isLabelled)).text;
  };
  return { runtime, namespace, path, make, labelled };
}

const asItCame = expect.stringMatching(`"spec":{"id":${odd},"ids":\\[${even},${odd}\\]}`);

describe("whole numbers beyond 2^53", () => {
  test.each([
    ["update", "event.object.metadata.labels = { seen: 'yes' }; await ctx.kube.update(event.object);"],
    ["retryOnConflict", "await ctx.kube.retryOnConflict(ref, (x) => { x.metadata.labels = { seen: 'yes' }; });"],
    [
      "apply",
      `const { spec } = event.object;
       await ctx.kube.apply({ apiVersion, kind, metadata: { name, namespace, labels: { seen: "yes" } }, spec }, { force: true });`,
    ],
    [
      "patch",
      `const { spec } = await ctx.kube.get(ref);
       await ctx.kube.patch(ref, { metadata: { labels: { seen: "yes" } }, spec });`,
    ],
    [
      "update with a spread",
      `const { metadata } = event.object;
       await ctx.kube.update({ ...event.object, metadata: { ...metadata, labels: { seen: "yes" } } });`,
    ],
  ])("are as they were after %s of an object whose label alone changes", async (_, work) => {
    const { make, labelled } = await running(work);
    await make();
    expect(await labelled()).toEqual(asItCame);
  });

  test("are as they were in a copy that is created", async () => {
    const { make, labelled, path } = await running(`
      if (name === "b") return;
      await ctx.kube.create({ apiVersion, kind, metadata: { name: "b", namespace, labels: { seen: "yes" } }, spec: event.object.spec });`);
    await make();
    expect(await labelled(path.replace(/a$/, "b"))).toEqual(asItCame);
  });

  test("are written from BigInts, by update and by updateStatus", async () => {
    const { make, labelled } = await running(`
      const object = await ctx.kube.updateStatus({ ...event.object, status: { id: 9223372036854775807n } });
      object.metadata.labels = { seen: "yes" };
      object.spec.ids = [-9223372036854775808n, 1n];
      await ctx.kube.update(object);`);
    await make();
    const text = await labelled();
    expect(text).toContain('"status":{"id":9223372036854775807}');
    expect(text).toContain(`"spec":{"id":${odd},"ids":[-9223372036854775808,1]}`);
  });

  test("are refused where they may be rounded: the object stays, and the error says which field", async () => {
    const { runtime, make, path } = await running(`
      await ctx.kube.patch(ref, { spec: { id: event.object.spec.id * 2 } }).catch((error) => {
        ctx.log.info("told", { line: error.name + " " + error.message });
        throw error;
      });`);
    await make();
    await runtime.sees("the refusal is told", () => runtime.told("f").some((line) => line.includes("patch.spec.id")));
    expect(runtime.told("f").at(-1)).toMatch(/^InvalidError WF_ACCESS_INEXACT_NUMBER: kube.patch: patch.spec.id is /);
    expect((await admin.reply("GET", path)).text).toEqual(asItCame);
  });

  test("are as they were in a dead letter, where it is shown and once it is replayed", async () => {
    const { runtime, make, labelled } = await running(`
      if (!event.redelivered) throw new Error("not yet");
      event.object.metadata.labels = { seen: "yes" };
      await ctx.kube.update(event.object);`);
    await make();
    await runtime.sees("it is a dead letter", async () => (await runtime.deadLetters()).length === 1);
    const [letter] = await runtime.deadLetters();
    expect(await runtime.shown(letter?.id ?? "")).toEqual(asItCame);
    await runtime.replay(letter?.id ?? "");
    expect(await labelled()).toEqual(asItCame);
  });
});
