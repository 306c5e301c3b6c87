import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import {
  applyDefaults,
  builtInSchema,
  type Json,
  type JsonObject,
  jsonPatch,
  PatchError,
  prune,
  type Schema,
  serverSideApply,
  statusCauses,
  strategicMergePatch,
  structuralSchema,
  trackUpdate,
  validate,
} from "../../../runtime/cluster/schema/index.ts";
import { Client, patchType, type Reply } from "../../target/client.ts";
import { start } from "../../target/real-target.ts";
import type { OwnTarget } from "../../target/target.ts";
import { assetsFolder } from "../../tools/assets.ts";
import * as cases from "./real-server-cases.ts";
import { schemaOf, structural } from "./widget.ts";

const probeSchema: JsonObject = {
  type: "object",
  properties: { spec: { type: "object", properties: cases.probeFields } },
};
const probe = (name: string, spec: JsonObject): JsonObject => ({
  apiVersion: "a.b/v1",
  kind: "Probe",
  metadata: { name },
  spec,
});
const crd = (schema: JsonObject, kind = "Probe"): JsonObject => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `${kind.toLowerCase()}s.a.b` },
  spec: {
    group: "a.b",
    scope: "Namespaced",
    names: { kind, plural: `${kind.toLowerCase()}s` },
    versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema } }],
  },
});
const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const probes = "/apis/a.b/v1/namespaces/default/probes";
const dryRun = { dryRun: "All" };

/** A 422's causes as sorted text, because the real server's order is that of a Go map. */
const causes = (all: unknown): string[] =>
  ((all ?? []) as { reason: string; field: string; message: string }[])
    .map(({ reason, field, message }) => `${reason} ${field}: ${message}`)
    .sort();
/** managedFields by manager, without times. */
const owners = (object: unknown): unknown => {
  const { managedFields = [] } = (object as { metadata: { managedFields?: { manager: string; operation: string }[] } })
    .metadata;
  return Object.fromEntries(
    managedFields.map((entry) => [`${entry.manager} ${entry.operation}`, { ...entry, time: undefined }]),
  );
};

const folder = assetsFolder();
if (!folder)
  process.stdout.write("schemas are not compared with a real kube-apiserver: KUBEBUILDER_ASSETS is not set\n");

describe.skipIf(!folder)("a real kube-apiserver", () => {
  let target: OwnTarget;
  let client: Client;
  beforeAll(async () => {
    target = await start([]);
    client = new Client(target.access);
    await client.post(definitions, crd(probeSchema));
    const served = async () => expect((await client.reply("GET", probes)).status).toBe(200);
    await vi.waitFor(served, { timeout: 30_000, interval: 100 });
  }, 120_000);
  afterAll(async () => {
    await client?.close();
    await target?.close();
  });

  const schema = structural(probeSchema);
  const stored = (object: JsonObject): JsonObject => applyDefaults(schema, prune(schema, object).object);

  it.each(cases.probes.map((spec) => [JSON.stringify(spec), spec] as const))(
    "answers to %s as we do",
    async (_, spec) => {
      const { body } = await client.reply("POST", probes, { body: probe("probe", spec), query: dryRun });
      const ours = validate(schema, stored(probe("probe", spec)));
      expect(causes(statusCauses(ours))).toEqual(causes(body.details?.causes));
      if (ours.length === 0) expect(stored(probe("probe", spec)).spec).toEqual(body.spec);
    },
  );

  it.each(cases.probeUpdates)("answers to the update of %j to %j as we do", async (from, to) => {
    const made = await client.post(probes, probe("updated", from));
    const next = probe("updated", to);
    next.metadata = { name: "updated", resourceVersion: made.metadata.resourceVersion };
    const { body } = await client.reply("PUT", `${probes}/updated`, { body: next, query: dryRun });
    await client.delete(`${probes}/updated`);
    const ours = validate(schema, stored(next), stored(probe("updated", from)));
    expect(causes(statusCauses(ours))).toEqual(causes(body.details?.causes));
  });

  it.each(cases.fieldSchemas.map((field) => [JSON.stringify(field), field] as const))(
    "takes or refuses a field of %s as we do",
    async (_, field) => {
      const { body } = await client.reply("POST", definitions, { body: crd(schemaOf(field), "Other"), query: dryRun });
      const ours = structuralSchema(schemaOf(field)).errors ?? [];
      expect(causes(statusCauses(ours))).toEqual(causes(body.details?.causes));
    },
  );

  const comparePatch = async (
    path: string,
    schemaOfIt: Schema,
    patch: Json,
    type: "json" | "strategic",
  ): Promise<void> => {
    const live = (await client.get(path)) as unknown as JsonObject;
    const reply: Reply = await client.reply("PATCH", path, { body: patch, type: patchType[type], query: dryRun });
    let ours: JsonObject | [number, string];
    try {
      const patched = type === "json" ? jsonPatch(live, patch) : strategicMergePatch(live, patch, schemaOfIt);
      ours = prune(schemaOfIt, patched).object;
    } catch (error) {
      if (!(error instanceof PatchError)) throw error;
      ours = [error.code, error.message];
    }
    if (reply.status >= 300) expect(ours).toEqual([reply.status, reply.body.message]);
    else
      expect(withoutSystemFields(ours as JsonObject)).toEqual(withoutSystemFields(reply.body as unknown as JsonObject));
  };

  it("answers to JSON patches as we do", async () => {
    const path = "/api/v1/namespaces/default/configmaps";
    await client.post(path, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "patched" }, data: { a: "1" } });
    const type = builtInSchema("", "v1", "ConfigMap") ?? {};
    for (const patch of cases.jsonPatches) await comparePatch(`${path}/patched`, type, patch, "json");
  });

  it("answers to strategic merge patches as we do", async () => {
    const path = "/apis/apps/v1/namespaces/default/deployments";
    await client.post(path, cases.deployment);
    const type = builtInSchema("apps", "v1", "Deployment") ?? {};
    for (const patch of cases.strategicPatches) await comparePatch(`${path}/patched`, type, patch, "strategic");
  });

  it("makes of a history of applies and updates what we do, and gives it the same owners", async () => {
    const path = `${probes}/applied`;
    let live: JsonObject | undefined;
    for (const { by, spec, force, update } of cases.history) {
      const body = update ? { spec } : probe("applied", spec);
      const query = { fieldManager: by, ...(force ? { force: true } : {}) };
      const reply = await client.reply("PATCH", path, {
        body,
        type: update ? patchType.merge : patchType.apply,
        query,
      });
      const after = reply.body as unknown as JsonObject;
      const shared = { manager: by, apiVersion: "a.b/v1", schema, now: Date.now() } as const;
      if (update) {
        const ours = trackUpdate({
          ...shared,
          before: live,
          after: { ...after, metadata: live?.metadata ?? {} },
          operation: "Update",
        });
        expect(owners({ metadata: { managedFields: ours } }), by).toEqual(owners(after));
      } else {
        const ours = serverSideApply({ ...shared, live, applied: probe("applied", spec), force: force ?? false });
        const refusal = ours.error?.message ?? (ours.conflicts ? ours.message : undefined);
        expect(refusal, JSON.stringify(spec)).toBe(reply.status < 300 ? undefined : after.message);
        if (ours.error || ours.conflicts) continue;
        expect(applyDefaults(schema, ours.object).spec).toEqual(after.spec);
        expect(owners(ours.object)).toEqual(owners(after));
      }
      live = after;
    }
  });
});

/** The parts of an object that a patch changes: the spec, the data and the metadata that clients write. */
function withoutSystemFields(object: JsonObject): JsonObject {
  const { labels, annotations, finalizers } = (object.metadata ?? {}) as JsonObject;
  return JSON.parse(
    JSON.stringify({ spec: withoutEmpty(object.spec ?? null), data: object.data, labels, annotations, finalizers }),
  );
}

/** Fields of a container whose defaults come from the server's code, not from the schema. */
const computed = ["imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy"];

/** Removes what Go does not write (optional empty lists and maps), and what the server computes. */
function withoutEmpty(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (typeof value !== "object" || value === null) return value;
  const isEmpty = (child: Json) => typeof child === "object" && child !== null && Object.keys(child).length === 0;
  const kept = Object.entries(value).map(([name, child]): [string, Json] => [name, withoutEmpty(child)]);
  return Object.fromEntries(kept.filter(([name, child]) => !isEmpty(child) && !computed.includes(name)));
}
