// Objects whose names are not DNS names, which RBAC's kinds allow: every part of the runtime accepts what the API server accepts.
import { expect, inject, onTestFinished, test } from "vitest";
import { Client } from "../target/client.ts";
import { createNamespace } from "../target/fixture.ts";
import { Installation } from "../tools/installation.ts";

const { access } = inject("shared");
const admin = new Client(access);
const group = "rbac.authorization.k8s.io";
const names = [
  "Dev Team",
  "grüppe",
  "a#b",
  "system:x?y",
  "a<b>&c",
  'a "quote"',
  "back\\slash",
  "a,b=c",
  "tab\there",
  "...",
  "😀",
  "x".repeat(300),
];

test("a handler can do to an object of any name what it is told of it, and its name stays what it is", async () => {
  const namespace = await createNamespace();
  const roles = `/apis/${group}/v1/namespaces/${namespace}/roles`;
  const kind = { apiVersion: `${group}/v1`, kind: "Role" };
  const chosen = { namespaceSelector: { matchNames: [namespace] } };
  const runtime = await Installation.on({ server: access.url, ca: access.ca, token: access.token });
  onTestFinished(() => runtime[Symbol.asyncDispose]());
  await runtime.define("f", {
    watch: { ...kind, ...chosen, events: ["Added", "Deleted"] },
    spec: {
      reads: [{ ...kind, ...chosen }],
      permissions: [
        { apiGroups: [group], resources: ["roles"], verbs: ["get", "patch", "delete"], resourceNames: names },
        { apiGroups: [group], resources: ["roles"], verbs: ["list"], namespaces: [namespace] },
      ],
    },
    work: `
      const { name, namespace } = event.object.metadata;
      const ref = { apiVersion: event.object.apiVersion, kind: event.object.kind, name, namespace };
      if (event.type === "Deleted") return ctx.log.info("told", { line: JSON.stringify([name, "deleted"]) });
      const fieldSelector = "metadata.name=" + name.replace(/[\\\\,=]/g, "\\\\$&");
      const listed = await ctx.kube.list({ apiVersion: ref.apiVersion, kind: ref.kind, namespace, fieldSelector });
      await ctx.kube.patch(ref, { metadata: { annotations: { seen: "1" } } });
      await ctx.kube.apply({ ...kindOf(ref), metadata: { name, namespace, labels: { applied: "1" } } });
      await ctx.events.emit(event.object, { type: "Normal", reason: "Seen", message: "seen" });
      const { metadata } = await ctx.kube.get(ref);
      const seen = [metadata.annotations?.seen, metadata.labels?.applied, listed.items.length, ctx.cache.get(ref)?.metadata.name];
      ctx.log.info("told", { line: JSON.stringify([name, metadata.name, ...seen]) });
      await ctx.kube.delete(ref);
      function kindOf({ apiVersion, kind }) { return { apiVersion, kind }; }`,
  });
  await runtime.start();
  for (const name of names) await admin.post(roles, { metadata: { name }, rules: [] });
  for (const name of names) {
    await runtime.hears("f", JSON.stringify([name, name, "1", "1", 1, name]));
    await runtime.hears("f", JSON.stringify([name, "deleted"]));
    expect(await runtime.explain("f", namespace, name)).toMatchObject({ reason: "fired" });
  }
  const { items } = await admin.get(`/api/v1/namespaces/${namespace}/events`);
  const about = items.map(({ involvedObject }) => involvedObject.name);
  expect(about.toSorted()).toEqual(names.toSorted());
});
