import { describe, expect, it } from "vitest";
import { placeOfWatch } from "../../runtime/manifest/schedule.ts";
import { loadSpec } from "./manifest.ts";

const schedule = (fields: string) => loadSpec(`  triggers: [{ schedule: { ${fields} } }]`);

describe("a schedule", () => {
  it("is a time of day in a zone, or an interval, with what becomes of missed times", async () => {
    const { functions } = await loadSpec(
      `  triggers:
    - { name: nightly, schedule: { cron: "0 3 * * *", timeZone: Europe/Berlin, missed: All } }
    - watch: { apiVersion: v1, kind: Pod }
    - schedule: { every: 10m, jitter: 30s }`,
    );
    expect(functions[0]?.triggers.map(({ name }) => name)).toEqual(["pod"]);
    expect(functions[0]?.schedules).toEqual([
      {
        name: "nightly",
        index: 0,
        times: { cron: "0 3 * * *", timeZone: "Europe/Berlin" },
        jitterMs: 0,
        missed: "All",
      },
      { name: "schedule", index: 2, times: { everyMs: 600_000 }, jitterMs: 30_000, missed: "Once" },
    ]);
    expect(functions[0] && placeOfWatch(functions[0], 0)).toBe(1);
  });

  it("is in UTC where it names no zone", async () => {
    const { functions } = await schedule('cron: "*/5 * * * *"');
    expect(functions[0]?.schedules[0]?.times).toEqual({ cron: "*/5 * * * *", timeZone: "UTC" });
  });

  it.each([
    ['cron: "0 3 * * *", every: 1h', "every", "exclude each other"],
    ["missed: Once", "schedule", "cron or every is missing"],
    ['cron: "61 3 * * *"', "cron", "Invalid value for minute: 61"],
    ['cron: "0 3 * *"', "cron", "five fields"],
    ['cron: "* * * * * *"', "cron", "five fields"],
    ['cron: "@daily"', "cron", "five fields"],
    ['cron: "0 3 31 2 *"', "cron", "no day has such a time"],
    ['cron: "0 3 * * *", timeZone: Europe/Berln', "timeZone", "did you mean Europe/Berlin?"],
    ['cron: "0 3 * * *", timeZone: Atlantis', "timeZone", "there is no such time zone"],
    ["every: 1h, timeZone: UTC", "timeZone", "`every` has no time zone"],
    ["every: 500ms", "every", "at least 1s"],
    ["every: 1m, jitter: 1m", "jitter", "not less than every"],
    ["every: 1m, missed: Never", "missed", "expected"],
    ["evry: 1m, every: 1m", "evry", "did you mean every?"],
  ])("with { %s } is refused at %s", async (fields, path, what) => {
    const { faults } = await schedule(fields);
    expect(faults).toHaveLength(1);
    expect(faults[0]?.message).toContain(what);
    expect(faults[0]?.detail.path).toMatch(new RegExp(`${path}$`));
  });
});

describe("a trigger", () => {
  it("has watch or schedule, and not both", async () => {
    const neither = await loadSpec("  triggers: [{ name: a }]");
    expect(neither.faults.map(({ code }) => code)).toEqual(["WF_MANIFEST_MISSING_FIELD"]);
    expect(neither.faults[0]?.message).toContain("`watch` or `schedule`");
    const both = await loadSpec("  triggers: [{ watch: { apiVersion: v1, kind: Pod }, schedule: { every: 1m } }]");
    expect(both.faults.map(({ message }) => message).join()).toContain("watch and schedule exclude each other");
  });

  it("of each sort has a name of its own", async () => {
    const { faults } = await loadSpec("  triggers: [{ schedule: { every: 1m } }, { schedule: { every: 2m } }]");
    expect(faults.map(({ code }) => code)).toEqual(["WF_MANIFEST_DUPLICATE_NAME"]);
  });
});
