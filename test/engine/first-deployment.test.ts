import { describe, expect, it } from "vitest";
import { resourceVersion } from "../../runtime/base/resource-version.ts";
import type { Change } from "../../runtime/informer/scan/change.ts";
import { change, DispatchFixture, manifest, quiet, trigger } from "./fixture.ts";

const modes = ["Skip", "Deliver"] as const;
const byLabel = (initialEvents: (typeof modes)[number]) =>
  manifest({}, [trigger({ initialEvents, namespaces: { type: "labels", labelSelector: "team" } })]);

/** A function whose namespaces are not known yet; no selection of it includes `elsewhere`. */
const deployed = (initialEvents: (typeof modes)[number]) =>
  DispatchFixture.open({ manifest: byLabel(initialEvents), namespace: "elsewhere" });

async function listed(it: DispatchFixture, namespace: string, items: readonly Change[], rv = 500): Promise<void> {
  const receiver = it.function.subscription("settings", { selection: "all", namespace }).list("initial", undefined);
  for (const item of items) receiver.item(item);
  receiver.end(resourceVersion(String(rv)));
  await quiet(it.runner);
}

const told = (it: DispatchFixture) =>
  it.runner.deliveries.map(({ object, flags }) => `${object.name} ${flags.initial ?? false}`);
const inTeam = (namespace: string, name: string) => change("Added", name, 400, { namespace });

describe.each(modes)("with initialEvents: %s", (initialEvents) => {
  const there = initialEvents === "Deliver" ? ["there true"] : [];

  it("objects in a namespace that is created after a deployment to no namespace are not initial", async () => {
    const it = await deployed(initialEvents);
    it.function.retain("settings", []);
    await listed(it, "team-a", [inTeam("team-a", "late")]);
    expect(told(it)).toEqual(["late false"]);
  });

  it("it is news also where the process died before that namespace came", async () => {
    const first = await deployed(initialEvents);
    first.function.retain("settings", []);
    await first.clock.advance(1_000);
    const it = await first.restart({ manifest: byLabel(initialEvents), namespace: "elsewhere" });
    it.function.retain("settings", []);
    await listed(it, "team-a", [inTeam("team-a", "late")]);
    expect(told(it)).toEqual(["late false"]);
  });

  it("what is in the namespaces of the first choice was there, whichever lists first", async () => {
    const it = await deployed(initialEvents);
    it.function.subscription("settings", { selection: "all", namespace: "team-a" });
    it.function.retain("settings", ["team-a", "team-b"]);
    await listed(it, "team-c", [inTeam("team-c", "late")]);
    await listed(it, "team-a", [inTeam("team-a", "there")]);
    expect(told(it).toSorted()).toEqual(["late false", ...there]);
  });

  it("what is in a namespace of the first choice was there, also where the process died before its list", async () => {
    const first = await deployed(initialEvents);
    first.function.retain("settings", ["team-a"]);
    await first.clock.advance(1_000);
    const it = await first.restart({ manifest: byLabel(initialEvents), namespace: "elsewhere" });
    await listed(it, "team-b", [inTeam("team-b", "late")]);
    await listed(it, "team-a", [inTeam("team-a", "there")]);
    expect(told(it).toSorted()).toEqual(["late false", ...there]);
  });

  it("objects of a kind that was not served at the deployment are news, also after a restart", async () => {
    for (const dies of [false, true]) {
      const first = await DispatchFixture.open({ manifest: manifest({}, [trigger({ initialEvents })]) });
      first.subscription.kindIsMissing();
      await first.clock.advance(1_000);
      const it = dies ? await first.restart({ manifest: manifest({}, [trigger({ initialEvents })]) }) : first;
      await it.list(500, [change("Added", "late", 400)], "initial");
      await quiet(it.runner);
      expect(told(it)).toEqual(["late false"]);
    }
  });

  it("a kind that is not served for a while takes nothing back", async () => {
    const it = await DispatchFixture.open({ manifest: manifest({}, [trigger({ initialEvents })]) });
    await it.list(500, [change("Added", "there", 400)], "initial");
    it.subscription.kindIsMissing();
    await it.list(600, [change("Added", "there", 400)]);
    await quiet(it.runner);
    expect(told(it)).toEqual(there);
  });
});
