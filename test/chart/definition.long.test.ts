// The definitions of Function and FunctionSet are cluster-wide and belong to one Helm release; other releases do not install them.
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Client } from "../target/client.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import { type OwnTarget, startTarget } from "../target/target.ts";
import { assetsFolder } from "../tools/assets.ts";
import { chart, helm } from "./helm.ts";

const kinds = ["embedded", ...(assetsFolder() === undefined ? [] : ["real" as const])] as const;
const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/functions.watchfire.dev";
const setsPath = path.replace("functions.", "functionsets.");

describe.each(kinds)("the definition of Function, on the %s API server", (kind) => {
  let target: OwnTarget;
  let admin: Client;
  let where: readonly string[];

  beforeAll(async () => {
    target = await startTarget(kind);
    admin = new Client(target.access);
    const kubeconfig = join(await mkdtemp(join(tmpdir(), "watchfire-helm-")), "kubeconfig");
    await writeFile(kubeconfig, kubeconfigOf(target.access));
    where = ["--kubeconfig", kubeconfig];
  });
  afterAll(async () => {
    await admin?.close();
    await target?.close();
  });

  const upgrade = (name: string, ...sets: readonly string[]) =>
    helm(
      ...["upgrade", "--install", name, chart, ...where, "--namespace", `of-${name}`, "--create-namespace"],
      ...["--set", "crds.enabled=true", ...sets],
    );
  const ownerOf = async (of: string) => (await admin.get(of)).metadata.annotations?.["meta.helm.sh/release-name"];
  const owner = async () => {
    const [one, other] = [await ownerOf(path), await ownerOf(setsPath)];
    return one === other ? one : `${one} and ${other}`;
  };

  test("a second release is installed without it, and says whose it is", async () => {
    expect(await upgrade("one")).toContain("kubectl delete crd functions.watchfire.dev");
    const said = await upgrade("two");
    expect(said).toContain("functions.watchfire.dev belongs to the release one in of-one");
    expect(said).not.toContain("delete crd");
    expect(await owner()).toBe("one");
  });

  test("its own release keeps it up to date", async () => {
    await admin.patch(path, { spec: { names: { shortNames: [] } } }, "merge", { fieldManager: "helm" });
    await upgrade("one", "--force-conflicts");
    expect((await admin.get(path)).spec.names.shortNames).toEqual(["wfn"]);
  });

  test("it outlives its release, and goes over to another as the notes say", async () => {
    await helm("uninstall", "one", ...where, "--namespace", "of-one");
    const said = await upgrade("two");
    const command =
      said.match(/kubectl annotate crd functions\.watchfire\.dev functionsets\.watchfire\.dev --overwrite (.+)/)?.[1] ??
      "";
    const annotations = Object.fromEntries(command.split(" ").map((each) => each.split("=")));
    for (const each of [path, setsPath]) await admin.patch(each, { metadata: { annotations } }, "merge");
    expect(await upgrade("two")).toContain("kubectl delete crd functions.watchfire.dev");
    expect(await owner()).toBe("two");
  });
});
