import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { UserMetrics } from "../../runtime/observe/user-metrics.ts";

describe("a handler's metrics", () => {
  it("appear under watchfire_user_ with the function's name", async () => {
    const registry = new Registry();
    const metrics = new UserMetrics(registry);
    metrics.record("greet", "increment", "greetings", 2, { language: "fr" });
    expect(await registry.metrics()).toContain('watchfire_user_greetings{function="greet",language="fr"} 2');
  });

  it("a function that makes series without end is stopped, and no other function with it", () => {
    const metrics = new UserMetrics(new Registry());
    const refused = Array.from({ length: 1000 }, (_, i) => metrics.record("loud", "increment", "n", 1, { i: `${i}` }));
    expect(refused.filter((why) => why === undefined).length).toBeLessThan(1000);
    expect(refused.at(-1)).toContain("series already");
    expect(metrics.record("quiet", "increment", "n", 1, { i: "0" })).toBeUndefined();
  });

  it("cannot pose as another function's", () => {
    const metrics = new UserMetrics(new Registry());
    expect(metrics.record("loud", "increment", "n", 1, { function: "quiet" })).toContain("cannot be used");
  });

  it.each([["9lives"], ["a b"], [""]])("a name that Prometheus does not take is refused: %j", (name) => {
    expect(new UserMetrics(new Registry()).record("f", "increment", name, 1, {})).toBeDefined();
  });

  it("one name keeps one type and one set of labels", () => {
    const metrics = new UserMetrics(new Registry());
    metrics.record("f", "increment", "n", 1, {});
    expect(metrics.record("f", "observe", "n", 1, {})).toBeDefined();
    expect(metrics.record("f", "increment", "n", 1, { more: "x" })).toBeDefined();
  });
});
