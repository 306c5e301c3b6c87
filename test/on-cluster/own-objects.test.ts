// Checks on an API server that no request which the runtime allows modifies its own objects by a detour that the runtime's parser
// misses.
import fc from "fast-check";
import { pino } from "pino";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { Access } from "../../runtime/access/access.ts";
import { OwnObjects } from "../../runtime/access/own-objects.ts";
import { systemClock } from "../../runtime/base/clock.ts";
import { connectDirect, type DirectConnection } from "../../runtime/kube/direct.ts";
import { Discovery } from "../../runtime/kube/discovery.ts";
import type { KubeTransport } from "../../runtime/kube/transport.ts";
import { caller, everything, manifestOf } from "../access/api-server.ts";
import { admin, createNamespace } from "../target/fixture.ts";

const { access: administrator } = inject("shared");
const account = "watchfire";
let home: string;
let transport: KubeTransport;
let access: Access;

beforeAll(async () => {
  home = await createNamespace();
  const connection: DirectConnection = { ...administrator, server: administrator.url };
  transport = connectDirect(connection);
  access = new Access({
    transport,
    own: new OwnObjects({ namespace: home, account }),
    discovery: new Discovery(transport, systemClock),
    functions: new Map([["f", manifestOf({ permissions: [everything] })]]),
    clock: systemClock,
    random: Math.random,
    log: pino({ level: "silent" }),
  });
});
afterAll(async () => {
  await access?.close();
  await transport?.close();
});

const call = (operation: string, args: object) =>
  access.call(caller, operation, JSON.stringify(args), new AbortController().signal);

test("no patch that is let through gives an object a label of the runtime's", async () => {
  const path = `/api/v1/namespaces/${home}/configmaps`;
  const ref = { apiVersion: "v1", kind: "ConfigMap", name: "notes", namespace: home };
  const own = { "watchfire.dev/runtime": account };
  await admin.post(path, { metadata: { name: "notes", annotations: own }, data: { a: "x" } });
  const detours = fc.constantFrom(
    ...[
      "/metadata/labels",
      "metadata/labels",
      "x/metadata/labels",
      "/metadata/labels/watchfire.dev~1runtime",
      "/metadata",
    ],
  );
  const odd = fc.constantFrom(
    ...[
      "",
      "/",
      "//metadata/labels",
      "/metadata/labels/watchfire.dev/runtime",
      "/metadata/labels/watchfire.dev~01runtime",
    ],
    ...["/data", "/metadata/labels/", "/Metadata/Labels", "/metadata/./labels", "/metadata/labels/a"],
  );
  const from = fc.constantFrom(
    "/metadata/annotations",
    "/metadata/annotations/watchfire.dev~1runtime",
    "/data",
    "/data/a",
  );
  const value = fc.constantFrom<unknown>(
    own,
    "x",
    {},
    { labels: own },
    { metadata: { labels: own } },
    { name: "notes", labels: own },
  );
  const op = fc.constantFrom("add", "replace", "copy", "move", "remove", "Add");
  const operation = fc.record({ op, path: fc.oneof({ weight: 2, arbitrary: detours }, odd), from, value });
  const json = fc.array(operation, { minLength: 1, maxLength: 2 }).map((patch) => ({ ref, patch, type: "json" }));
  const field = fc.constantFrom("metadata", "Metadata", "labels", "$patch");
  const merge = fc
    .record({ type: fc.constantFrom("merge", "strategic"), patch: fc.dictionary(field, value) })
    .map((each) => ({ ref, ...each }));
  let through = 0;
  await fc.assert(
    fc.asyncProperty(fc.oneof({ weight: 3, arbitrary: json }, merge), async (args) => {
      await admin.patch(`${path}/notes`, { metadata: { annotations: own }, data: { a: "x" } });
      if ((await call("kube.patch", args)).ok) through++;
      const { metadata } = await admin.get(`${path}/notes`);
      expect(Object.keys(metadata.labels ?? {}).filter((key) => key.startsWith("watchfire.dev/"))).toEqual([]);
    }),
    {
      numRuns: 250,
      examples: [
        [
          {
            ref,
            type: "json",
            patch: [{ op: "copy", from: "/metadata/annotations", path: "/metadata/labels", value: "x" }],
          },
        ],
        [{ ref, type: "json", patch: [{ op: "add", from: "/data", path: "x/metadata/labels", value: own }] }],
        [
          {
            ref,
            type: "json",
            patch: [{ op: "replace", from: "/data", path: "", value: { name: "notes", labels: own } }],
          },
        ],
      ],
    },
  );
  // A runtime that refused everything would pass the test, too.
  expect(through).toBeGreaterThan(5);
});

test("no list of Secrets shows the runtime's own, whatever its selectors are", async () => {
  const path = `/api/v1/namespaces/${home}/secrets`;
  for (const name of [`${account}-checkpoint-0`, "slack"])
    await admin.post(path, { metadata: { name }, data: { x: "AA==" } });
  const part = fc.constantFrom(
    "metadata.name",
    "type",
    "=",
    "!=",
    "==",
    ",",
    "\\",
    "slack",
    `${account}-checkpoint-0`,
    "Opaque",
    "",
  );
  const fieldSelector = fc.array(part, { maxLength: 6 }).map((parts) => parts.join(""));
  const namespace = fc.constantFrom({ namespace: home }, {});
  let shown = 0;
  await fc.assert(
    fc.asyncProperty(fieldSelector, namespace, async (selector, where) => {
      const reply = await call("kube.list", { apiVersion: "v1", kind: "Secret", fieldSelector: selector, ...where });
      if (!reply.ok) return;
      const names = JSON.parse(reply.json).items.map(({ metadata }: { metadata: { name: string } }) => metadata.name);
      expect(names.filter((name: string) => name.startsWith(`${account}-checkpoint-`))).toEqual([]);
      if (names.includes("slack")) shown++;
    }),
    { numRuns: 200 },
  );
  expect(shown).toBeGreaterThan(0);
});
