import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { natsProgram } from "../../tools/assets.ts";
import { until } from "../../tools/until.ts";
import { VirtualClock } from "../../virtual-clock.ts";
import { spilledEvent } from "../store-contract.ts";
import { Place } from "./place.ts";
import { commit, row } from "./rows.ts";

describe.skipIf(!natsProgram)("bodies on NATS JetStream (NATS_SERVER names the server's program)", () => {
  test("bodies and commits larger than a message are kept whole, and leave nothing behind", async () => {
    const place = await Place.make();
    const store = await place.open({ cacheBytes: 0 });
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const large = randomBytes(3 * 1024 * 1024);
    const event = spilledEvent(id, 1, { body: large });
    await commit(store, { known: [row(id, "a/x", 1, large)], spill: [event] });
    await store.close(false);
    const next = await place.open({ cacheBytes: 0 });
    const found = await next.body(id, "a/x");
    expect(found?.bytes.equals(large) && !found.isOlder).toBe(true);
    expect((await next.spilled("copy", 0, 1))[0]?.body.equals(large)).toBe(true);
    await commit(next, { known: [row(id, "a/x", 2, Buffer.from("small"))], unspill: [event] });
    expect(String((await next.body(id, "a/x"))?.bytes)).toBe("small");
    await commit(next, { known: [row(id, "a/y", 2, large)] });
    await commit(next, { known: [{ view: id, key: "a/y", state: undefined }] });
    await next.journal.snapshot();
    await next.close(true);
    const names = (await place.nats.objects.list()).map(({ name }) => name.split("/")[1]);
    expect(names).toEqual(["snapshot"]);
    const { state } = await place.nats.jsm.streams.info(place.nats.bodyStream);
    expect(state.messages).toBe(1);
  });

  test("what is no longer needed of bodies goes, also where the process was killed before it could take it away", async () => {
    const place = await Place.make();
    const { nats } = place;
    const store = await place.open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const goes = await store.openView("other", "settings", "/ConfigMap");
    const put = (view: number) => ["a/x", "a/y", "a/z"].map((key) => row(view, key, 1, Buffer.from("{}")));
    await commit(store, { known: [...put(id), ...put(goes.id)] });
    await commit(store, { known: [{ view: id, key: "a/z", state: undefined }] });
    const bodies = async () => (await nats.jsm.streams.info(nats.bodyStream)).state.messages;
    await until("it goes", 10_000, async () => (await bodies()) === 5);
    const purge = nats.jsm.streams.purge;
    nats.jsm.streams.purge = () => Promise.reject(new Error("the process is gone"));
    await commit(store, { known: [{ view: id, key: "a/x", state: undefined }] });
    await store.retire([goes.id], 1);
    await store.purge(2);
    await store.close(false);
    nats.jsm.streams.purge = purge;
    expect(await bodies()).toBe(5);
    await (await place.open()).close(true);
    expect(await bodies()).toBe(1);
  });

  test("the bodies of a function that was removed long ago go while the process runs", async () => {
    const place = await Place.make();
    const { nats } = place;
    const store = await place.open();
    const [stays, goes] = [await store.openView("copy", "s", "/ConfigMap"), await store.openView("other", "s", "/Pod")];
    const put = (view: number) => ["a/x", "a/y"].map((key) => row(view, key, 1, Buffer.from("{}")));
    await commit(store, { known: [...put(stays.id), ...put(goes.id)] });
    await store.retire([goes.id], 1);
    expect(await store.purge(2)).toBe(1);
    const bodies = async () => (await nats.jsm.streams.info(nats.bodyStream)).state.messages;
    await until("they go", 10_000, async () => (await bodies()) === 2);
    expect(String((await store.body(stays.id, "a/x"))?.bytes)).toBe("{}");
    await store.close(true);
  });

  test("a replica that wakes up late takes no body away that whoever has the slot now has written", async () => {
    const place = await Place.make();
    const { streams } = place.nats.jsm;
    const clock = new VirtualClock();
    const stale = await place.open({ clock });
    const { id } = await stale.openView("copy", "settings", "/ConfigMap");
    await commit(stale, { known: [row(id, "a/x", 1, Buffer.from("before"))] });
    const purge = streams.purge.bind(streams);
    streams.purge = () => Promise.reject(new Error("the server is away"));
    await commit(stale, { known: [{ view: id, key: "a/x", state: undefined }] });
    streams.purge = purge;
    const owner = await place.open({ cacheBytes: 0 });
    await commit(owner, { known: [row(id, "a/x", 2, Buffer.from("now"))] });
    const late = Promise.withResolvers<void>();
    streams.purge = async (...of) => {
      const answer = await purge(...of);
      late.resolve();
      return answer;
    };
    await clock.advance(2_000);
    await late.promise;
    expect(String((await owner.body(id, "a/x"))?.bytes)).toBe("now");
    await owner.close(true);
    await stale.close(false);
  });

  test("nor does it take away or write over a large one", async () => {
    const place = await Place.make();
    const { streams } = place.nats.jsm;
    const { objects } = place.nats;
    const clock = new VirtualClock();
    const stale = await place.open({ clock });
    const { id } = await stale.openView("copy", "settings", "/ConfigMap");
    const [before, now] = [randomBytes(2 * 1024 * 1024), randomBytes(2 * 1024 * 1024)];
    await commit(stale, { known: [row(id, "a/x", 1, before), row(id, "a/y", 1, before)] });
    const away = () => Promise.reject(new Error("the server is away"));
    const put = objects.putBlob.bind(objects);
    const purge = streams.purge.bind(streams);
    streams.purge = objects.putBlob = away;
    await commit(stale, { known: [{ view: id, key: "a/x", state: undefined }] });
    const late = commit(stale, { known: [row(id, "a/y", 2, before)] }).catch(() => undefined);
    await clock.advance(600);
    streams.purge = purge;
    objects.putBlob = put;
    const owner = await place.open({ cacheBytes: 0 });
    await commit(owner, { known: [row(id, "a/x", 3, now), row(id, "a/y", 3, now)] });
    const written = Promise.withResolvers<void>();
    const purged = Promise.withResolvers<void>();
    objects.putBlob = (...of) => put(...of).finally(() => written.resolve());
    streams.purge = (...of) => purge(...of).finally(() => purged.resolve());
    await clock.advance(2_000);
    await Promise.all([written.promise, purged.promise]);
    await stale.close(false);
    await late;
    const found = await owner.body(id, "a/x");
    expect([found?.bytes.equals(now), found?.isOlder]).toEqual([true, false]);
    const names = (await objects.list()).map(({ name }) => name);
    const blobs = await Promise.all(names.map((name) => objects.getBlob(name)));
    expect(blobs.filter((blob) => blob && now.equals(blob))).toHaveLength(2);
    await owner.close(true);
    const next = await place.open();
    await commit(next, { known: ["a/x", "a/y"].map((key) => ({ view: id, key, state: undefined })) });
    await next.close(true);
    expect(await objects.list()).toEqual([]);
  });

  test("a large body that could not be taken away is taken away later", async () => {
    const place = await Place.make();
    const { objects } = place.nats;
    const clock = new VirtualClock();
    const store = await place.open({ clock });
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const large = randomBytes(2 * 1024 * 1024);
    await commit(store, { known: [row(id, "a/x", 1, large), row(id, "a/y", 1, large)] });
    const remove = objects.delete.bind(objects);
    let refused = 0;
    objects.delete = (name) => (refused++ < 2 ? Promise.reject(new Error("the server is away")) : remove(name));
    const smaller = commit(store, {
      known: [row(id, "a/x", 2, Buffer.from("small")), { view: id, key: "a/y", state: undefined }],
    });
    await until("nothing of the large bodies is left", 10_000, async () => {
      await clock.advance(500);
      return (await objects.list()).length === 0;
    });
    await smaller;
    await store.close(true);
  });
});
