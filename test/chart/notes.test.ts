import { expect, test } from "vitest";
import { namespace, release } from "./helm.ts";
import { notes } from "./notes.ts";

const selector = `-l app.kubernetes.io/instance=${release},app.kubernetes.io/name=watchfire`;

test.each(["replicas=1", "replicas=2"])(
  "with %s the notes say how to remove Secrets, Lease and claims",
  async (set) => {
    const said = await notes("--set", set);
    expect(said).toContain(
      `kubectl -n ${namespace} delete secret ${selector}        # ${release}-checkpoint-0 to -7\n`,
    );
    expect(said).toContain(`kubectl -n ${namespace} delete lease ${release} --ignore-not-found\n`);
    expect(said).toContain(`kubectl -n ${namespace} delete persistentvolumeclaim ${selector}\n`);
  },
);

test("the notes name no claims where there are none, and the definition where it is installed", async () => {
  expect(await notes("--set", "persistence.enabled=false")).not.toContain("persistentvolumeclaim");
  expect(await notes()).not.toContain("delete crd");
  expect(await notes("--set", "crds.enabled=true")).toContain("kubectl delete crd functions.watchfire.dev");
});

test("with one replica the notes say when Secrets of more can go", async () => {
  expect(await notes("--set", "replicas=1")).toContain("as soon as the pod is ready");
  expect(await notes("--set", "replicas=2")).not.toContain("as soon as the pod is ready");
});
