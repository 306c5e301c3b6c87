// Only signed deployments are loaded, and no function may write the pod's configuration.
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { TrustedKeys } from "../../runtime/catalog/signature.ts";
import { parse } from "../../runtime/cli/command.ts";
import { start } from "../../runtime/cli/start.ts";
import type { Body } from "../target/client.ts";
import { containers, only, render, valuesOf } from "./helm.ts";

const annotation = "watchfire.dev/trusted-keys";

const folder = mkdtempSync(join(tmpdir(), "watchfire-trust-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function publicKey(name: string): string {
  const file = join(folder, name);
  const { publicKey: key } = generateKeyPairSync("ed25519");
  writeFileSync(file, key.export({ type: "spki", format: "pem" }));
  return file;
}

/** The runtime's options, parsed from the arguments of its container. */
const optionsOf = (objects: Body[]) => parse(start, containers(objects).watchfire.args.slice(1)).options;
const podOf = (objects: Body[]) => only(objects, "StatefulSet").spec.template;

describe("a chart that is given keys", () => {
  test("mounts them from the pod's own annotations, and has the runtime trust those and no others", async () => {
    const files = [publicKey("one.pub"), publicKey("two.pub")];
    const objects = await render(
      ...files.flatMap((file, index) => ["--set-file", `deployed.trust.keys[${index}]=${file}`]),
    );
    const { metadata, spec } = podOf(objects);
    const volume = spec.volumes.find(({ name }: Body) => name === "trust");
    expect(volume.projected.sources).toEqual([
      {
        downwardAPI: {
          items: [{ path: "keys.pem", fieldRef: { fieldPath: `metadata.annotations['${annotation}']` } }],
        },
      },
    ]);
    const mount = containers(objects).watchfire.volumeMounts.find(({ name }: Body) => name === "trust");
    expect(mount).toEqual({ name: "trust", mountPath: "/etc/watchfire/trust", readOnly: true });
    expect(optionsOf(objects).trust).toEqual([`${mount.mountPath}/keys.pem`]);
    const mounted = join(folder, "mounted.pem");
    writeFileSync(mounted, metadata.annotations[annotation]);
    expect(TrustedKeys.read([mounted]).fingerprints).toEqual(TrustedKeys.read(files).fingerprints);
  });

  test("keeps the pod's other annotations", async () => {
    const key = ["--set-file", `deployed.trust.keys[0]=${publicKey("three.pub")}`];
    const { metadata } = podOf(await render(...key, "--set", "podAnnotations.a=b"));
    expect(metadata.annotations).toMatchObject({ a: "b", [annotation]: expect.stringContaining("PUBLIC KEY") });
    const common = String.raw`commonAnnotations.watchfire\.dev/trusted-keys=OTHER`;
    expect(podOf(await render(...key, "--set-string", common)).metadata.annotations[annotation]).not.toContain("OTHER");
  });

  test("lets no annotation of the user's stand for them", async () => {
    const key = ["--set-file", `deployed.trust.keys[0]=${publicKey("four.pub")}`];
    const other = ["--set-string", String.raw`podAnnotations.watchfire\.dev/trusted-keys=OTHER`];
    const refusal = /podAnnotations: watchfire\.dev\/trusted-keys is the chart's own.*deployed\.trust\.keys/;
    await expect(render(...key, ...other)).rejects.toThrow(refusal);
    await expect(render(...other)).rejects.toThrow(refusal);
  });

  test("takes them from a Secret, too, which no function may then write", async () => {
    const objects = await render(...valuesOf("surroundings"));
    const volume = podOf(objects).spec.volumes.find(({ name }: Body) => name === "trust");
    expect(volume.projected.sources).toEqual([
      { secret: { name: "trusted", items: [{ key: "keys.pem", path: "secret.pem" }] } },
    ]);
    expect(optionsOf(objects)).toMatchObject({ trust: ["/etc/watchfire/trust/secret.pem"] });
    expect(optionsOf(objects).reserve).toContain("trusted");
  });

  test("counts for the functions folder where nothing is deployed", async () => {
    const sets = "deployed.enabled=false,deployed.trust.existingSecret.name=trusted";
    expect(optionsOf(await render("--set", sets))).toMatchObject({ trust: ["/etc/watchfire/trust/secret.pem"] });
  });

  test("refuses what is no public key", async () => {
    const secret = join(folder, "private.pem");
    writeFileSync(secret, generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }));
    await expect(render("--set-file", `deployed.trust.keys[0]=${secret}`)).rejects.toThrow("/deployed/trust/keys/0");
  });
});

test("without keys nothing is mounted, annotated or trusted", async () => {
  const objects = await render();
  const { metadata, spec } = podOf(objects);
  expect(metadata.annotations).not.toHaveProperty([annotation]);
  expect(spec.volumes.map(({ name }: Body) => name)).not.toContain("trust");
  expect(optionsOf(objects)).toMatchObject({ trust: [], reserve: [] });
});

test("what the values give the pod is reserved, each by its name and once", async () => {
  const values = join(folder, "values.json");
  const given = {
    imagePullSecrets: [{ name: "pull" }],
    extraVolumes: [
      { name: "a", secret: { secretName: "a-secret" } },
      { name: "b", configMap: { name: "a-map" } },
      { name: "c", projected: { sources: [{ secret: { name: "projected" } }, { configMap: { name: "a-map" } }] } },
      { name: "d", emptyDir: {} },
    ],
    extraEnvFrom: [{ secretRef: { name: "from-secret" } }, { configMapRef: { name: "from-map" } }],
    extraEnv: [
      { name: "A", value: "1" },
      { name: "B", valueFrom: { secretKeyRef: { name: "env-secret", key: "x" } } },
    ],
  };
  writeFileSync(values, JSON.stringify(given));
  const names = ["a-map", "a-secret", "env-secret", "from-map", "from-secret", "projected", "pull"];
  expect(optionsOf(await render("--values", values)).reserve).toEqual(names);
});
