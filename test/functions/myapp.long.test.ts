import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Body } from "../target/client.ts";
import { until } from "../tools/until.ts";
import { configMapPath, FunctionsFixture, manifest } from "./fixture.ts";

const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const myapps = "/apis/my.domain/v1/namespaces/default/myapps";
const myapp = (name: string, version = "1.0"): object => ({
  apiVersion: "my.domain/v1",
  kind: "MyApp",
  metadata: { name },
  spec: { appName: "shop", version },
});
const crd = (): Body => {
  const [document] = manifest("myapp/crd.yaml");
  if (!document) throw new Error("crd.yaml is empty");
  return document;
};
/** Creates the object as soon as the API server serves its kind. */
const create = (fixture: FunctionsFixture, object: object) =>
  until("MyApp is served", 10_000, async () => {
    const { status, body } = await fixture.client.reply("POST", myapps, { body: object });
    return status === 201 && body;
  });
const ready = (object: Body) =>
  object.status?.conditions?.find((condition: { type: string }) => condition.type === "Ready");
const settled = (fixture: FunctionsFixture, name: string, generation: number) =>
  fixture.object(`${myapps}/${name}`, ({ status }) => status?.observedGeneration === generation);

describe("with the CRD that ships beside it, installed after the runtime has started", () => {
  let fixture: FunctionsFixture;
  beforeAll(async () => {
    fixture = await FunctionsFixture.start();
    await fixture.client.post(crds, crd());
  });
  afterAll(() => fixture?.close());

  test("the sample gets a ConfigMap that it owns, and a status", async () => {
    const [sample] = manifest("myapp/myapp.yaml");
    const app = await create(fixture, sample ?? {});
    const { data, metadata } = await fixture.object(configMapPath("default", "my-sample"));
    expect(data).toEqual({ appName: sample?.spec.appName, version: sample?.spec.version, replicas: "1" });
    expect(metadata.ownerReferences).toEqual([
      { apiVersion: "my.domain/v1", kind: "MyApp", name: "my-sample", uid: app.metadata.uid, controller: true },
    ]);
    const { status } = await settled(fixture, "my-sample", 1);
    expect(status.conditions).toHaveLength(1);
    expect(status.conditions[0]).toMatchObject({ type: "Ready", status: "True", observedGeneration: 1 });
    expect(status.conditions[0].lastTransitionTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  });

  test("the ConfigMap and the status follow the spec, and the transition time stays", async () => {
    await create(fixture, myapp("follows"));
    const before = ready(await settled(fixture, "follows", 1));
    await fixture.client.patch(`${myapps}/follows`, { spec: { version: "2.0" } });
    await fixture.object(configMapPath("default", "follows"), ({ data }) => data.version === "2.0");
    const after = ready(await settled(fixture, "follows", 2));
    expect(after).toMatchObject({ status: "True", observedGeneration: 2 });
    expect(after.lastTransitionTime).toBe(before.lastTransitionTime);
  });

  test("its own status fires nothing", async () => {
    await create(fixture, myapp("quiet"));
    const { metadata } = await settled(fixture, "quiet", 1);
    const reconciled = async () =>
      (await fixture.log()).filter(
        ({ object, msg, fields }) =>
          object === "default/quiet" && msg === "reconciled" && JSON.stringify(fields).includes(`"trigger":"myapps"`),
      );
    // An event that the write of the status caused would be handled before a later change of the same object.
    await fixture.client.patch(`${myapps}/quiet`, { spec: { version: "2.0" } });
    await settled(fixture, "quiet", 2);
    expect(metadata.generation).toBe(1);
    await until("both are told", 5000, async () => (await reconciled()).length >= 2);
    expect(await reconciled()).toHaveLength(2);
  });

  test("a ConfigMap that someone deletes or edits is put back", async () => {
    await create(fixture, myapp("kept"));
    const first = await fixture.object(configMapPath("default", "kept"));
    await fixture.client.delete(configMapPath("default", "kept"));
    await fixture.object(configMapPath("default", "kept"), ({ metadata }) => metadata.uid !== first.metadata.uid);
    await fixture.client.patch(configMapPath("default", "kept"), { data: { version: "tampered" } });
    await fixture.object(configMapPath("default", "kept"), ({ data }) => data.version === "1.0");
  });

  test("a ConfigMap of someone else's is left alone until its name is free", async () => {
    await fixture.configMap("default", "taken", { mine: "yes" });
    await create(fixture, myapp("taken"));
    expect(ready(await settled(fixture, "taken", 1))).toMatchObject({ status: "False", reason: "NameTaken" });
    await fixture.event("default", "taken", "NameTaken");
    expect((await fixture.object(configMapPath("default", "taken"))).data).toEqual({ mine: "yes" });

    await fixture.client.delete(configMapPath("default", "taken"));
    await fixture.object(`${myapps}/taken`, (app) => ready(app)?.status === "True");
    expect((await fixture.object(configMapPath("default", "taken"))).data).toEqual({
      appName: "shop",
      version: "1.0",
      replicas: "1",
    });
  });

  test("kubectl scale sets the replicas, and the ConfigMap and the status follow", async () => {
    await create(fixture, myapp("scaled"));
    await settled(fixture, "scaled", 1);
    const scale = await fixture.client.get(`${myapps}/scaled/scale`);
    expect(scale).toMatchObject({ spec: { replicas: 1 }, status: { replicas: 1 } });
    await fixture.kubectl("scale", "myapps/scaled", "--namespace=default", "--replicas=3");
    await fixture.object(configMapPath("default", "scaled"), ({ data }) => data.replicas === "3");
    const { status } = await settled(fixture, "scaled", 2);
    expect(status.replicas).toBe(3);
  });

  test("a MyApp that is deleted stays until its ConfigMap is gone, and takes no other's with it", async () => {
    await create(fixture, myapp("brief"));
    const { metadata } = await settled(fixture, "brief", 1);
    expect(metadata.finalizers).toEqual(["my.domain/config-map"]);
    await fixture.configMap("default", "others", { mine: "yes" });
    await create(fixture, myapp("others"));
    await settled(fixture, "others", 1);
    for (const name of ["brief", "others"]) await fixture.client.delete(`${myapps}/${name}`);
    for (const name of ["brief", "others"]) await fixture.gone(`${myapps}/${name}`);
    expect((await fixture.client.reply("GET", configMapPath("default", "brief"))).status).toBe(404);
    expect((await fixture.object(configMapPath("default", "others"))).data).toEqual({ mine: "yes" });
  });

  test("the ConfigMap goes with its MyApp", async () => {
    await create(fixture, myapp("owned"));
    await fixture.object(configMapPath("default", "owned"));
    await fixture.client.delete(`${myapps}/owned`);
    await fixture.gone(configMapPath("default", "owned"));
  });
});

describe("with a CRD that lacks", () => {
  let fixture: FunctionsFixture;
  beforeAll(async () => {
    fixture = await FunctionsFixture.start();
  });
  afterAll(() => fixture?.close());

  test.each([
    { lack: "the status subresource and a status schema", subresources: undefined, says: "no status subresource" },
    { lack: "a status schema", subresources: { status: {} }, says: "no schema for `status`" },
  ])("$lack, the ConfigMap is kept all the same and an Event says what is missing", async ({ subresources, says }) => {
    const form = crd();
    const [version] = form.spec.versions;
    version.subresources = subresources;
    version.schema.openAPIV3Schema.properties.status = undefined;
    version.additionalPrinterColumns = undefined;
    await until(
      "the CRD is taken",
      10_000,
      async () => (await fixture.client.reply("POST", crds, { body: form })).status === 201,
    );

    const name = subresources ? "no-schema" : "tutorial";
    await create(fixture, myapp(name));
    await fixture.object(configMapPath("default", name), ({ data }) => data.version === "1.0");
    const event = await fixture.event("default", name, "StatusMissing");
    expect(event.message).toContain(says);
    expect(event.type).toBe("Warning");
    expect(event.involvedObject).toMatchObject({ apiVersion: "my.domain/v1", kind: "MyApp", name });

    await fixture.client.delete(`${crds}/myapps.my.domain`);
    await fixture.gone(`${crds}/myapps.my.domain`);
  });
});
