import { describe, expect, it } from "vitest";
import { createKube } from "../../sdk/client.ts";
import { ConflictError, NotFoundError } from "../../sdk/errors.ts";
import type { KubeObject } from "../../sdk/object.ts";
import type { Call } from "../../sdk/operations.ts";

const ref = { apiVersion: "v1", kind: "ConfigMap", name: "a", namespace: "n" };

/** A client whose updates conflict so many times before one succeeds. */
function contested(conflicts: number, error: Error = new ConflictError("changed", { status: 409 })) {
  const pauses: number[] = [];
  const operations: string[] = [];
  let version = 0;
  const call = (async (operation: string, args: { object: KubeObject }) => {
    operations.push(operation);
    if (operation === "kube.get") return { ...ref, metadata: { resourceVersion: String(++version) } };
    if (conflicts-- > 0) throw error;
    return args.object;
  }) as unknown as Call;
  const kube = createKube({ call, pause: async (ms) => void pauses.push(ms), random: () => 0.5 });
  return { kube, pauses, operations };
}

describe("retryOnConflict", () => {
  it("reads anew before each try, and waits longer each time", async () => {
    const { kube, pauses, operations } = contested(3);
    const seen: unknown[] = [];
    const result = await kube.retryOnConflict(ref, (object) => {
      seen.push(object.metadata?.resourceVersion);
    });
    expect(result.metadata?.resourceVersion).toBe("4");
    expect(seen).toEqual(["1", "2", "3", "4"]);
    expect(operations.filter((operation) => operation === "kube.get").length).toBe(4);
    expect(pauses).toEqual([...pauses].sort((a, b) => a - b));
    expect(pauses.every((ms) => ms > 0 && ms < 1000)).toBe(true);
  });

  it("gives up after five tries with the conflict, and at once with any other error", async () => {
    const lost = contested(9);
    await expect(lost.kube.retryOnConflict(ref, () => {})).rejects.toBeInstanceOf(ConflictError);
    expect(lost.operations.filter((operation) => operation === "kube.update").length).toBe(5);
    const gone = contested(9, new NotFoundError("gone", { status: 404 }));
    await expect(gone.kube.retryOnConflict(ref, () => {})).rejects.toBeInstanceOf(NotFoundError);
    expect(gone.pauses).toEqual([]);
  });

  it("updates what the change returns in the object's place", async () => {
    const { kube } = contested(0);
    const other = { apiVersion: "v1", kind: "ConfigMap", data: { a: "1" } };
    expect(await kube.retryOnConflict(ref, () => other)).toEqual(other);
  });
});

describe("a list", () => {
  it("gives each item the kind that the API leaves out", async () => {
    const call = (async () => ({ items: [{ metadata: { name: "a" } }], metadata: {} })) as unknown as Call;
    const { items } = await createKube({ call, pause: async () => {} }).list({ apiVersion: "v1", kind: "ConfigMap" });
    expect(items).toEqual([{ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" } }]);
  });
});
