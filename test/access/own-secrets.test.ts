// The runtime never shows its own Secrets to a function.
import { describe, expect, it } from "vitest";
import { indexName } from "../../runtime/catalog/names.ts";
import { checkpointSecrets } from "../../runtime/journal/secrets/names.ts";
import { accessWithAll, account, at, expectRefused, expectSent, home } from "./own-fixture.ts";

describe("a function that is granted everything", () => {
  it("reads none of the runtime's Secrets, and every other", async () => {
    const secrets = [...checkpointSecrets(account), "mounted"].map((name) => at("v1", "Secret", name, home));
    await expectRefused(...secrets.map((ref) => ["kube.get", { ref }] as const));
    await expectSent(
      ["kube.get", { ref: at("v1", "Secret", "watchfire-slack", home) }],
      ["kube.get", { ref: at("v1", "Secret", "watchfire-checkpoint-0", "team-a") }],
      ["kube.get", { ref: at("v1", "ConfigMap", indexName(account, "default"), home) }],
    );
  });

  it.each([home, undefined])(
    "lists Secrets without the runtime's own, whatever selector it sends (%s)",
    async (namespace) => {
      const { call, received } = await accessWithAll();
      const hidden = [...checkpointSecrets(account), "mounted"].map((name) => `metadata.name!=${name}`).join(",");
      const list = { apiVersion: "v1", kind: "Secret", ...(namespace && { namespace }) };
      await call("kube.list", list);
      await call("kube.list", { ...list, fieldSelector: "metadata.name=watchfire-checkpoint-0" });
      await call("kube.list", { ...list, fieldSelector: "type!=x\\" });
      expect(received.map(({ query }) => query.get("fieldSelector"))).toEqual([
        hidden,
        `${hidden},metadata.name=watchfire-checkpoint-0`,
        `${hidden},type!=x\\`,
      ]);
    },
  );

  it("lists of other kinds and namespaces as it asks", async () => {
    const { call, received } = await accessWithAll();
    await call("kube.list", { apiVersion: "v1", kind: "ConfigMap", namespace: home });
    await call("kube.list", { apiVersion: "v1", kind: "Secret", namespace: "team-a", fieldSelector: "type=x" });
    expect(received.map(({ query }) => query.get("fieldSelector"))).toEqual([null, "type=x"]);
  });
});
