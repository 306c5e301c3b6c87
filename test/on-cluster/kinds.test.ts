// Any names of kinds that definitions allow: whatever `kubectl api-resources` lists can be watched, stored and called.
import { expect, inject, onTestFinished, test } from "vitest";
import { Client } from "../target/client.ts";
import { createNamespace, eventually, removeAtEnd, unique } from "../target/fixture.ts";
import { Installation } from "../tools/installation.ts";

const { access } = inject("shared");
const admin = new Client(access);
const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/** Defines a namespaced kind in a new group. Returns its API version. */
async function define(version: string, kind: string): Promise<string> {
  const group = `${unique("2group")}.v1.example.dev`;
  const plural = `${kind.toLowerCase()}x`;
  const name = `${plural}.${group}`;
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  const versions = [{ name: version, served: true, storage: true, schema }];
  await admin.post(definitions, {
    metadata: { name },
    spec: { group, scope: "Namespaced", names: { kind, plural }, versions },
  });
  removeAtEnd(`${definitions}/${name}`);
  const namespace = "default";
  await eventually(
    () => admin.reply("GET", `/apis/${group}/${version}/namespaces/${namespace}/${plural}`),
    ({ status }) => status === 200,
  );
  return `${group}/${version}`;
}

test.each([
  ["stable", "Widget"],
  ["v1-beta", "With-Dash"],
  ["v1", "camelCase"],
  ["a", "x"],
  ["v".repeat(63), "K".repeat(59)],
])("an object of version %s and kind %s reaches the handler, its cache and its calls", async (version, kind) => {
  const namespace = await createNamespace();
  const apiVersion = await define(version, kind);
  const group = apiVersion.slice(0, apiVersion.indexOf("/"));
  const selection = { apiVersion, kind, namespaceSelector: { matchNames: [namespace] } };
  const runtime = await Installation.on({ server: access.url, ca: access.ca, token: access.token });
  onTestFinished(() => runtime[Symbol.asyncDispose]());
  await runtime.define("f", {
    watch: { ...selection, events: ["Added"] },
    spec: {
      reads: [selection],
      permissions: [{ apiGroups: [group], resources: [`${kind.toLowerCase()}x`], verbs: ["get", "create"] }],
    },
    work: `
      const { apiVersion, kind, metadata: { name, namespace } } = event.object;
      const ref = { apiVersion, kind, name, namespace };
      const read = await ctx.kube.get(ref);
      if (name === "a") await ctx.kube.create({ apiVersion, kind, metadata: { name: "b", namespace } });
      ctx.log.info("told", { line: JSON.stringify([name, read.kind, ctx.cache.get(ref)?.kind]) });`,
  });
  await runtime.start();
  await admin.post(`/apis/${apiVersion}/namespaces/${namespace}/${kind.toLowerCase()}x`, {
    apiVersion,
    kind,
    metadata: { name: "a" },
  });
  for (const name of ["a", "b"]) await runtime.hears("f", JSON.stringify([name, kind, kind]));
  expect((await runtime.function("f"))?.ready).toBe(true);
});
