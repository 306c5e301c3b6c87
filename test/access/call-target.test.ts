import { expect, test } from "vitest";
import { describeTarget } from "../../runtime/access/call-target.ts";

test("a call is named by its object, its kind, its host, or the key of the state", () => {
  const ref = { apiVersion: "v1", kind: "ConfigMap", namespace: "team-a", name: "settings" };
  expect(describeTarget("kube.get", { ref })).toBe("ConfigMap team-a/settings");
  expect(describeTarget("kube.list", { apiVersion: "v1", kind: "Pod", namespace: "team-a" } as never)).toBe(
    "Pod team-a",
  );
  expect(describeTarget("fetch", { url: "https://hooks.example.com/t/secret", method: "POST" } as never)).toBe(
    "POST hooks.example.com",
  );
  expect(describeTarget("state.get", { key: "seen/ada" })).toBe("seen/ada");
  expect(describeTarget("state.set", { key: "seen/ada", value: 1 } as never)).toBe("seen/ada");
  expect(describeTarget("state.keys", { prefix: "seen/" })).toBe("seen/*");
});
