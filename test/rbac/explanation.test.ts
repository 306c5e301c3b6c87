import { describe, expect, it } from "vitest";
import type { FunctionManifest } from "../../runtime/manifest/function.ts";
import { explanationOf, explanationText } from "../../runtime/rbac/explanation.ts";
import { manifestOf } from "../access/api-server.ts";
import { schedule } from "../engine/schedule/fixture.ts";
import { trigger } from "./trigger.ts";

const runtime = { namespace: "watchfire", account: "watchfire" };

const explain = (...of: Parameters<typeof explanationOf>): string => explanationText(explanationOf(...of));

/** The lines below a title of the explanation. */
function said(manifest: Partial<FunctionManifest>, title: string, of = runtime): string[] {
  const lines = explain(manifestOf(manifest), of).split("\n");
  const at = lines.findIndex((line) => line.startsWith(`  ${title}`));
  expect(at).toBeGreaterThan(0);
  if (lines[at]?.endsWith(": nothing")) return [];
  const end = lines.findIndex((line, index) => index > at && !line.startsWith("    "));
  return lines.slice(at + 1, end).map((line) => line.trim());
}

describe("the explanation of a function", () => {
  it("tells each kind that a trigger shows, where, how much of it, and by which selectors", () => {
    const triggers = [
      trigger({ name: "a", kind: "Secret", namespaces: { type: "names", names: ["x", "y"] } }),
      trigger({
        name: "b",
        apiVersion: "apps/v1",
        kind: "Deployment",
        object: "Metadata",
        labelSelector: "app=web",
        fieldSelector: "metadata.name!=z",
      }),
      trigger({ name: "c", namespaces: { type: "labels", labelSelector: "team=a" } }),
    ];
    expect(said({ triggers, schedules: [schedule({ name: "tick" })] }, "is shown, by its triggers")).toEqual([
      "a: each Secret (v1) in namespaces x, y, with its data",
      "b: each Deployment (apps/v1) everywhere, only its metadata, selected by labels app=web and fields metadata.name!=z",
      "c: each ConfigMap (v1) in namespaces with the labels team=a, as a whole",
      expect.stringMatching(/^tick: no object, on a schedule: \S/),
    ]);
  });

  it("tells what its reads show", () => {
    const { name: _, ...read } = trigger({ kind: "Pod" });
    expect(said({ reads: [{ ...read, indexes: [] }] }, "is shown, by its reads")).toEqual([
      "each Pod (v1) everywhere, as a whole",
    ]);
  });

  it("tells what its permissions let it see apart from what they let it do, each with its place and names", () => {
    const permissions = [
      { apiGroups: [""], resources: ["configmaps"], verbs: ["get", "patch"], namespaces: ["x"] },
      { apiGroups: ["apps", ""], resources: ["deployments/scale"], verbs: ["*"], resourceNames: ["web"] },
      { apiGroups: ["*"], resources: ["*"], verbs: ["list"] },
      { apiGroups: [""], resources: ["secrets"], verbs: ["create", "patch"], resourceNames: ["mine"] },
    ];
    expect(said({ permissions }, "may see, by its calls")).toEqual([
      "get configmaps in namespace x",
      "get, list deployments.apps/scale, deployments/scale named web everywhere",
      "list all resources of every API group everywhere",
    ]);
    expect(said({ permissions, triggers: [] }, "may do, by its calls")).toEqual([
      "patch configmaps in namespace x",
      "create, update, patch, delete deployments.apps/scale, deployments/scale named web everywhere",
      "create, patch secrets named mine everywhere",
    ]);
    expect(said({ triggers: [trigger()] }, "may do, by its calls")).toEqual([
      "write Events about the objects of its triggers",
    ]);
  });

  it("tells all powers that a permission has, though a warning names three", () => {
    const permissions = [{ apiGroups: [""], resources: ["secrets", "pods", "nodes/proxy"], verbs: ["*"] }];
    const lines = said({ permissions }, "reaches further than its permissions say");
    expect(lines.length).toBeGreaterThan(3);
    expect(lines).toContainEqual(expect.stringMatching(/of nodes\/proxy reaches commands in every pod/));
    expect(said({}, "reaches further")).toEqual([]);
  });

  it("tells which Secrets its env holds, and where it may send them, and no value", () => {
    const env = [
      { name: "TOKEN", secretKeyRef: { name: "slack", key: "token", optional: false } },
      { name: "MODE", value: "s3cr3t" },
    ];
    const egress = [
      { host: "hooks.slack.com", ports: [443], network: "Public" as const },
      { host: "db.internal", ports: [80, 5432], network: "Private" as const },
    ];
    expect(said({ env }, "is given, by its env")).toEqual(["TOKEN: the key token of the Secret slack"]);
    expect(said({ egress }, "may send requests to")).toEqual([
      "hooks.slack.com, port 443, at public addresses",
      "db.internal, ports 80, 5432, at private addresses too",
    ]);
    expect(explain(manifestOf({ env }), runtime)).not.toContain("s3cr3t");
  });

  it("is one line for each thing, whatever a selector holds", () => {
    const fieldSelector = "metadata.name=x\n  reaches further than its permissions say: nothing\u001b[2K";
    expect(said({ triggers: [trigger({ fieldSelector })] }, "is shown, by its triggers")).toEqual([
      expect.stringMatching(/=x\\u000a {2}reaches .* nothing\\u001b\[2K$/),
    ]);
  });

  it("says of a function that may do nothing that it is nothing, and as whom it acts", () => {
    const text = explain(manifestOf({ name: "f", triggers: [], permissions: [], env: [], egress: [] }), runtime);
    expect(text).toContain("as the ServiceAccount watchfire-f in watchfire\n");
    expect(text.match(/: nothing$/gm)).toHaveLength(7);
    expect(explain(manifestOf({ name: "f" }), { ...runtime, namespace: undefined })).toContain(
      "watchfire-f in the runtime's namespace\n",
    );
  });
});
