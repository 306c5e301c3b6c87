// A cluster that is restored to an earlier state by each supported recipe, with a runtime on it.
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import type { Client } from "../../target/client.ts";
import { describeHistory, startOwn } from "../../target/fixture.ts";
import { type Recipe, recipesOf } from "../../target/recipe.ts";
import type { OwnTarget } from "../../target/target.ts";
import { Installation } from "../../tools/installation.ts";

const path = "/api/v1/namespaces/restored/configmaps";
const watch = {
  apiVersion: "v1",
  kind: "ConfigMap",
  namespaceSelector: { matchNames: ["restored"] },
  fieldSelector: "metadata.name!=kube-root-ca.crt",
};
const reads = [{ apiVersion: "v1", kind: "ConfigMap", namespaceSelector: { matchNames: ["restored"] } }];
/** Fails if a read state is from another time than the event. */
const compare = `
  const { type, object } = event;
  const { name, namespace } = object.metadata;
  const seen = ctx.cache.get({ apiVersion: "v1", kind: "ConfigMap", name, namespace });
  ctx.log.info("told", { line: "sees " + name + "=" + seen?.data.v });
`;

/** The functions, with the number of lines that each writes for the undone changes. */
const counts: Readonly<Record<string, number>> = { all: 4, latest: 4, fields: 3, reader: 8 };
const names = Object.keys(counts);

describeHistory.each(recipesOf(inject("target")))("a cluster that is put back by the recipe `%s`", (recipe: Recipe) => {
  let target: OwnTarget & { readonly admin: Client };
  let runtime: Installation;
  const heard = new Map<string, number>();
  /** The deliveries since `begin`. After a kill more of them may be flagged than before, so the flag is removed. */
  const news = (name: string) =>
    runtime
      .told(name)
      .slice(heard.get(name))
      .map((line) => line.replace(" redelivered", ""))
      .toSorted();
  const make = (name: string) => target.admin.post(path, { metadata: { name }, data: { v: "1" } });
  const patch = (name: string, body: object) => target.admin.patch(`${path}/${name}`, body);
  const set = (name: string, v: number) => patch(name, { data: { v: String(v) } });
  const remove = (name: string) => target.admin.delete(`${path}/${name}`);

  /** Waits until all changes are delivered, and starts a new count. */
  async function begin(): Promise<void> {
    await runtime.quiet();
    for (const name of names) heard.set(name, runtime.told(name).length);
  }

  /** Changes after the backup: changes, a creation and a deletion. Ends with the source well past the backup. */
  async function afterBackUp(): Promise<void> {
    await set("kept", 2);
    await make("deleted-since");
    await target.backUp();
    await set("kept", 7);
    await patch("labelled", { metadata: { labels: { since: "backup" } } });
    await make("made-since");
    await remove("deleted-since");
    // A starting API server writes as well, so the earlier resourceVersions must be out of its reach.
    const secrets = "/api/v1/namespaces/default/secrets";
    for (let times = 0; times < 200; times++)
      await target.admin.post(secrets, { metadata: { generateName: "other-" } });
    await set("kept", 8);
    await runtime.hears("all", (heard.get("all") ?? 0) + 7);
    // A function that has not received a change need not receive its undoing.
    for (const name of names) {
      const hasHeard = () => news(name).includes("Modified kept=8");
      await runtime.sees(`${name} is told of the last change`, hasHeard);
    }
    await begin();
  }

  async function tellsWhatWasUndone(): Promise<void> {
    const netChanges = (last: string) => [
      "Added deleted-since=1 synthetic (rv-rewind)",
      expect.stringMatching(`^Deleted made-since=${last} synthetic finalStateUnknown \\(rv-rewind\\)$`),
      "Modified kept=2 synthetic (rv-rewind)",
    ];
    for (const name of names) await runtime.hears(name, (heard.get(name) ?? 0) + (counts[name] ?? 0));
    await runtime.quiet();
    expect(news("all")).toEqual([...netChanges("1"), "Modified labelled=1 synthetic (rv-rewind)"]);
    expect(news("latest")).toEqual([...netChanges("1"), "Modified labelled=1 synthetic (rv-rewind)"]);
    // The last delivered state of `labelled` equals the restored one.
    expect(news("fields")).toEqual(netChanges("1"));
    expect(news("reader").filter((line) => line.startsWith("sees"))).toEqual([
      "sees deleted-since=1",
      "sees kept=2",
      "sees labelled=1",
      "sees made-since=undefined",
    ]);
    expect(await runtime.metric("watchfire_watch_reconnects_total", { cause: "rewind" })).toBeGreaterThan(0);
  }

  /** Ids of a function that stand for more than one event. A second attempt would be flagged. */
  function repeatedIds(): string[] {
    const seen = new Set<string>();
    return runtime.lines.flatMap(({ function: name, fields }) => {
      const { id, line } = fields ?? {};
      if (id === undefined || line?.includes("redelivered")) return [];
      const its = `${name} ${id}`;
      const again = seen.has(its);
      seen.add(its);
      return again ? [`${its}: ${line}`] : [];
    });
  }

  beforeAll(async () => {
    target = await startOwn();
    const { url, ca, token } = target.access;
    runtime = await Installation.on({ server: url, ca, token });
    await target.admin.post("/api/v1/namespaces", { metadata: { name: "restored" } });
    await make("kept");
    await make("labelled");
    await runtime.define("all", { watch });
    await runtime.define("latest", { watch, spec: { delivery: { mode: "Latest" } } });
    await runtime.define("fields", { watch: { ...watch, changedFields: [".data"] } });
    await runtime.define("reader", { watch, spec: { reads }, work: compare });
    await runtime.start();
    await runtime.hears("all", 2);
  });
  afterAll(() => runtime?.[Symbol.asyncDispose]());

  test("while a runtime runs on it: each net change is told once, flagged, and reads are of the same time", async () => {
    await begin();
    await afterBackUp();
    await target.rewind(recipe);
    await tellsWhatWasUndone();
    await set("kept", 9);
    await runtime.hears("all", (heard.get("all") ?? 0) + 5);
    expect(runtime.told("all").at(-1)).toBe("Modified kept=9");
    expect(repeatedIds()).toEqual([]);
  });

  test("while a runtime is down: the same is told when it starts", async () => {
    await remove("deleted-since");
    await runtime.hears("all", runtime.told("all").length + 1);
    await begin();
    await afterBackUp();
    await runtime.kill();
    await target.rewind(recipe);
    await runtime.start();
    await tellsWhatWasUndone();
    await set("kept", 9);
    await runtime.hears("all", (heard.get("all") ?? 0) + 5);
    expect(runtime.told("all").at(-1)).toBe("Modified kept=9");
    expect(repeatedIds()).toEqual([]);
  });
});
