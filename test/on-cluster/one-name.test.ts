// Rights to one object by its name: the requests that the API server accepts for them, and those that the runtime sends with
// them.
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { lookAt } from "../../runtime/control/explain/live-look.ts";
import { ObjectIdentity } from "../../runtime/informer/fanout/source-spec.ts";
import { currentVersion } from "../../runtime/informer/stream/current-version.ts";
import { connectDirect, type DirectConnection } from "../../runtime/kube/direct.ts";
import { Discovery } from "../../runtime/kube/discovery.ts";
import { requiredName } from "../../runtime/kube/field-selector.ts";
import type { Resource } from "../../runtime/kube/resource.ts";
import type { SharedTransport } from "../../runtime/kube/transport.ts";
import type { Client } from "../target/client.ts";
import { admin, asServiceAccount, createNamespace, eventually } from "../target/fixture.ts";

const { access } = inject("shared");
const group = "rbac.authorization.k8s.io";
const roles: Resource = {
  ...{ group, version: "v1", kind: "Role", plural: "roles", namespaced: true },
  ...{ verbs: ["list", "watch"], subresources: [] },
};
/** Includes a name that a selector has to escape, and one that is not a DNS name. */
const names = ["one", "a,b=c\\d", "Dev Team"];
let namespace: string;
let path: string;
let client: Client;
let transport: SharedTransport;

beforeAll(async () => {
  namespace = await createNamespace();
  path = `/apis/${group}/v1/namespaces/${namespace}/roles`;
  const metadata = { name: "by-name" };
  await admin.post(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata });
  const rules = [{ apiGroups: [group], resources: ["roles"], verbs: ["list", "watch"], resourceNames: names }];
  await admin.post(path, { metadata, rules });
  for (const name of [...names, "two"]) await admin.post(path, { metadata: { name }, rules: [] });
  await admin.post(`/apis/${group}/v1/namespaces/${namespace}/rolebindings`, {
    metadata,
    roleRef: { apiGroup: group, kind: "Role", name: "by-name" },
    subjects: [{ kind: "ServiceAccount", name: "by-name", namespace }],
  });
  client = await asServiceAccount(namespace, "by-name");
  const { status } = await admin.post(`/api/v1/namespaces/${namespace}/serviceaccounts/by-name/token`, { spec: {} });
  const connection: DirectConnection = { server: access.url, ca: access.ca, token: status.token };
  transport = connectDirect(connection);
  afterAll(() => transport.close());
  await eventually(
    () => client.reply("GET", path, { query: { fieldSelector: "metadata.name=one" } }),
    (reply) => reply.status === 200,
  );
});

test.each([
  ["metadata.name=one", ["one"]],
  ["metadata.name==one", ["one"]],
  ["metadata.namespace!=x,metadata.name=one", ["one"]],
  ["metadata.name!=two,metadata.name=one", ["one"]],
  ["metadata.name!=one,metadata.name=one", []],
  ["metadata.name=a\\,b\\=c\\\\d", ["a,b=c\\d"]],
  ["metadata.name=Dev Team", ["Dev Team"]],
  ["metadata.name=two,metadata.name=one", []],
  ["metadata.name=two", undefined],
  ["metadata.name!=two", undefined],
  ["metadata.name=zero,metadata.name=two", undefined],
  ["metadata.name=", undefined],
  ["metadata.name=a/b", undefined],
  ["metadata.namespace=one", undefined],
  ["", undefined],
] as const)(
  "a list or a watch by the selector %j is granted where it is about a name of the rule",
  async (selector, found) => {
    const list = await client.reply("GET", path, { query: { fieldSelector: selector } });
    expect(list.status).toBe(found ? 200 : 403);
    if (found) expect(list.body.items.map(({ metadata }) => metadata.name)).toEqual(found);
    using watch = await client.watch(path, { fieldSelector: selector, timeoutSeconds: 1 });
    expect(watch.status).toBe(found ? 200 : 403);
    expect(names.includes(requiredName(selector) ?? "")).toBe(found !== undefined);
  },
);

test.each([true, false])(
  "the newest version is learnt by the right to one name (by a watch: %s)",
  async (watchList) => {
    const ask = (name: string | undefined) =>
      currentVersion({
        ...{ transport, clock: systemClock, path, identity: new ObjectIdentity(roles), name, watchList },
        signal: new AbortController().signal,
      });
    const { body } = await admin.reply("GET", path);
    for (const name of names)
      expect(Number((await ask(name)).version)).toBeGreaterThanOrEqual(Number(body.metadata.resourceVersion));
    expect(await ask(undefined)).toMatchObject({ refused: true });
  },
);

test("an object is looked for by the right to its name, and of others it is said that nobody knows", async () => {
  const parts = { transport, discovery: new Discovery(transport, systemClock), clock: systemClock };
  const spec = { apiVersion: `${group}/v1`, kind: "Role", namespace, fieldSelector: "metadata.name=one" };
  expect(await lookAt({ spec, name: "one" }, parts)).toMatchObject({ type: "there", fields: true });
  expect(await lookAt({ spec, name: "absent" }, parts)).toMatchObject({ type: "unknown" });
});
