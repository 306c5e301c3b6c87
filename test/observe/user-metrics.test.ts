import { describe, expect, it } from "vitest";
import { Redactor } from "../../runtime/access/redactor.ts";
import { guestOutput } from "../../runtime/observe/guest-output.ts";
import { createLog } from "../../runtime/observe/log.ts";
import { MetricRegistry } from "../../runtime/observe/metric-registry.ts";
import { UserMetrics } from "../../runtime/observe/user-metrics.ts";

/** Lines of a page with this beginning. */
const lines = async (page: MetricRegistry, beginning: string): Promise<string[]> =>
  (await page.text()).split("\n").filter((line) => line.startsWith(beginning));

describe("a handler's metrics", () => {
  it("appear under watchfire_user_ with the function's name", async () => {
    const page = new MetricRegistry();
    const metrics = new UserMetrics(page);
    metrics.record("greet", "increment", "greetings_total", 2, { language: "fr" });
    metrics.record("greet", "observe", "seconds", 2, {});
    expect(await lines(page, "watchfire_user_greetings")).toEqual([
      'watchfire_user_greetings_total{function="greet",language="fr"} 2',
    ]);
    expect(await lines(page, "watchfire_user_seconds_sum")).toEqual(['watchfire_user_seconds_sum{function="greet"} 2']);
    expect(await lines(page, "# TYPE")).toEqual([
      "# TYPE watchfire_user_greetings_total counter",
      "# TYPE watchfire_user_seconds histogram",
    ]);
  });

  it.each(["labels", "names"])(
    "a function that makes series without end, by %s, is stopped, and no other with it",
    async (by) => {
      const page = new MetricRegistry();
      const metrics = new UserMetrics(page);
      const refused = Array.from({ length: 1000 }, (_, i) =>
        metrics.record("loud", "increment", by === "names" ? `n${i}` : "n", 1, { i: by === "names" ? "" : `${i}` }),
      );
      expect(refused.filter((why) => why === undefined).length).toBeLessThan(1000);
      expect(refused.at(-1)).toContain("series already");
      expect(metrics.record("quiet", "increment", "n", 1, { i: "0" })).toBeUndefined();
      const families = await lines(page, "# TYPE");
      const shown = await lines(page, "watchfire_user_");
      expect(families.length).toBeLessThan(300);
      expect(shown.length).toBe(refused.filter((why) => why === undefined).length + 1);
    },
  );

  it("are counted as series by their labels, whatever these hold", () => {
    const metrics = new UserMetrics(new MetricRegistry());
    const xs = (length: number) => Array(length).fill("x").join(",b=");
    const texts = Array.from({ length: 100 }, (_, i) => [xs(i + 1), xs(100 - i)] as const);
    const refused = texts.flatMap(([a, b]) =>
      ["y", "z", "w"].map((c) => metrics.record("f", "increment", "n", 1, { a, b, c })),
    );
    expect(refused.at(-1)).toContain("series already");
  });

  it("cannot pose as another function's, nor as Prometheus's own", () => {
    const metrics = new UserMetrics(new MetricRegistry());
    for (const label of ["function", "le", "__name__", "__proto__", "__address__"]) {
      expect(metrics.record("loud", "increment", "n", 1, JSON.parse(`{"${label}":"up"}`))).toContain("cannot be used");
    }
    for (const ending of ["total", "bucket", "count", "sum"]) {
      expect(metrics.record("loud", "observe", `n_${ending}`, 1, {})).toContain(`n_${ending}`);
    }
  });

  it("have labels of a bounded length", () => {
    const metrics = new UserMetrics(new MetricRegistry());
    expect(metrics.record("f", "increment", "n", 1, { a: "x".repeat(5000) })).toContain("5001 characters");
  });

  it.each([["9lives"], ["a b"], [""]])("a name that Prometheus does not take is refused: %j", (name) => {
    expect(new UserMetrics(new MetricRegistry()).record("f", "increment", name, 1, {})).toBeDefined();
  });

  it("one name keeps one set of labels", () => {
    const metrics = new UserMetrics(new MetricRegistry());
    metrics.record("f", "increment", "n", 1, {});
    expect(metrics.record("f", "increment", "n", 1, { more: "x" })).toContain("first used");
  });

  it("no function takes a name from another: both count, with labels and types of their own, in one family each", async () => {
    const page = new MetricRegistry();
    const metrics = new UserMetrics(page);
    expect(metrics.record("first", "observe", "done", 1, { hi: "x" })).toBeUndefined();
    expect(metrics.record("first", "increment", "done_total", 1, { hi: "x" })).toBeUndefined();
    expect(metrics.record("second", "increment", "done", 3, { kind: "a" })).toBeUndefined();
    expect(metrics.record("third", "increment", "done_total", 4, {})).toBeUndefined();
    expect(await lines(page, "watchfire_user_done_total")).toEqual([
      'watchfire_user_done_total{function="first",hi="x"} 1',
      'watchfire_user_done_total{function="second",kind="a"} 3',
      'watchfire_user_done_total{function="third"} 4',
    ]);
    expect(await lines(page, "# TYPE")).toEqual([
      "# TYPE watchfire_user_done histogram",
      "# TYPE watchfire_user_done_total counter",
    ]);
  });

  it("go with their function, and nobody else's do", async () => {
    const page = new MetricRegistry();
    const metrics = new UserMetrics(page);
    metrics.record("gone", "increment", "both", 1, {});
    metrics.record("gone", "increment", "own", 1, {});
    metrics.record("stays", "increment", "both", 1, {});
    metrics.forget("gone");
    expect(await lines(page, "watchfire_user_")).toEqual(['watchfire_user_both_total{function="stays"} 1']);
    expect(await lines(page, "# TYPE")).toEqual(["# TYPE watchfire_user_both_total counter"]);
    expect(metrics.record("other", "observe", "own", 1, {})).toBeUndefined();
  });
});

describe("a metric that is refused", () => {
  const caller = (name: string) => ({
    function: name,
    trigger: "t",
    id: "1",
    object: { apiVersion: "v1", kind: "ConfigMap", namespace: "a", name: "b", uid: "u" },
    attempt: 1,
  });
  const secret = "xoxb-0123456789";

  it("is told of once a name, for some names of a function, and of other functions all the same", () => {
    const lines: string[] = [];
    const log = createLog("debug", { write: (line: string) => lines.push(line) });
    const output = guestOutput(log, new UserMetrics(new MetricRegistry()), new Redactor());
    for (let i = 0; i < 1000; i++) output.metric(caller("loud"), "increment", `bad name ${i % 500}`, 1, {});
    expect(lines.length).toBeLessThan(50);
    output.metric(caller("quiet"), "increment", "bad name", 1, {});
    expect(lines.at(-1)).toContain('"function":"quiet"');
  });

  it.each([
    ["its name", `bad ${secret}`, {}],
    ["a label's name", "n", { [secret]: "x" }],
    ["a label", "n", { a: secret.repeat(100) }],
  ])("does not tell the secret in %s", async (_, name, labels) => {
    const lines: string[] = [];
    const log = createLog("debug", { write: (line: string) => lines.push(line) });
    const redactor = new Redactor();
    redactor.learn("f", { secrets: [secret], configuration: [] });
    const page = new MetricRegistry();
    guestOutput(log, new UserMetrics(page), redactor).metric(caller("f"), "increment", name, 1, labels);
    expect(lines.length).toBe(1);
    expect(lines.join("") + (await page.text())).not.toContain("0123456789");
  });
});
