// Functions from a mounted image, with a runtime image that contains no functions.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../tools/until.ts";
import { functionFolders, images } from "./images.ts";
import { ensureNamespace, kubectl, Release } from "./release.ts";

describe("a release whose functions come from an image volume", () => {
  let release: Release;

  beforeAll(async () => {
    release = await Release.into("image-volume");
    for (const name of ["demo", "audit", "audit-records", "gluttony", "trespass"]) await ensureNamespace(name);
    // Removes the object of another scenario that would put the glutton into quarantine here, too.
    await kubectl(["-n", "gluttony", "delete", "configmap", "feast", "--ignore-not-found"]);
    for (const folder of functionFolders) await release.grant(folder);
  });
  afterAll(() => release?.uninstall());

  test("runs them all", async () => {
    const { repository, tag } = images.volume;
    const volume = [`functions.oci.reference=${repository}:${tag}`, "functions.oci.pullPolicy=Never"];
    await release.helm("install", "runtime", "functions.source=oci", ...volume, "persistence.enabled=false");
    const functions = await until("all are ready", 60_000, async () => {
      const { functions } = await release.status();
      return functions.every(({ ready }) => ready) && functions;
    });
    expect(functions.map(({ name }) => name)).toContain("recorder");
  });
});
