import { describe, expect, test } from "vitest";
import { natsProgram } from "../../tools/assets.ts";
import { ImpatientClock } from "../../tools/impatient-clock.ts";
import { until } from "../../tools/until.ts";
import { Place } from "./place.ts";
import { commit, cursor, markOf, row } from "./rows.ts";

describe.skipIf(!natsProgram)("what was lost on NATS JetStream (NATS_SERVER names the server's program)", () => {
  test("a server that was started again may have lost the last commits: what comes then is in doubt until a clean end", async () => {
    const place = await Place.make();
    const store = await place.open();
    await store.openView("copy", "settings", "/ConfigMap");
    await store.close(false);
    await place.server.kill();
    await place.server.start();
    const doubting = await until("it is back", 20_000, () => place.open());
    expect(doubting.previousEnd).toBe("power-loss");
    await doubting.close(false);
    const still = await place.open();
    expect(still.previousEnd).toBe("power-loss");
    await still.close(true);
    expect((await place.open()).previousEnd).toBe("clean");
  }, 60_000);

  test("an older copy of the server's files is noticed at the next commit, and at the next start", async () => {
    const place = await Place.make();
    const first = await place.open();
    const { id } = await first.openView("copy", "settings", "/ConfigMap");
    await commit(first, { cursors: [cursor(id, 1)] });
    await first.close(true);
    await place.server.kill();
    const copy = place.server.copy();
    await place.server.start();
    const second = await until("it is back", 20_000, () => place.open());
    await commit(second, { cursors: [cursor(id, 2)] });
    await place.server.kill();
    place.server.restore(copy);
    await place.server.start();
    await until("it is noticed", 20_000, () =>
      commit(second, { cursors: [cursor(id, 3)] }).then(
        () => false,
        () => place.lost.length > 0,
      ),
    );
    expect(place.lost).toEqual(["WF_CHECKPOINT_REWOUND"]);
    await second.close(true);
    // The last message of the copy marks a clean end.
    const third = await place.open();
    expect([third.previousEnd, await markOf(third)]).toEqual(["power-loss", 1]);
    expect(place.said.join()).toContain("WF_CHECKPOINT_REWOUND");
  }, 60_000);

  test("a loss that was noticed while it ran is in doubt at the next start, however little is gone", async () => {
    const place = await Place.make();
    const first = await place.open();
    const { id } = await first.openView("copy", "settings", "/ConfigMap");
    await commit(first, { cursors: [cursor(id, 1)] });
    await commit(first, { cursors: [cursor(id, 2)] });
    const { state } = await place.nats.jsm.streams.info(place.nats.logStream);
    await place.nats.jsm.streams.deleteMessage(place.nats.logStream, state.last_seq);
    await expect(commit(first, { cursors: [cursor(id, 3)] })).rejects.toMatchObject({ code: "WF_CHECKPOINT_REWOUND" });
    await first.close(false);
    const second = await place.open();
    expect([second.previousEnd, await markOf(second)]).toEqual(["power-loss", 1]);
  });

  test("an older copy is noticed by slots that commit nothing, also where their witness heard of them long ago", async () => {
    const place = await Place.make();
    const marks = ["", ""];
    const openSlot = (slot: number) => {
      const write = async (mark: string) => {
        marks[slot] = mark;
      };
      return place.open({ slot: String(slot), witness: { read: () => marks[slot] ?? "", write } });
    };
    const stores = [await openSlot(0), await openSlot(1)];
    for (const store of stores) await store.openView("copy", "settings", "/ConfigMap");
    await place.server.kill();
    const copy = place.server.copy();
    await place.server.start();
    for (const store of stores)
      await until("it commits again", 20_000, () => store.setCluster("cluster").then(() => true));
    await place.server.kill();
    place.server.restore(copy);
    await place.server.start();
    await until("both have noticed it", 20_000, async () => place.lost.length === stores.length);
    expect(place.lost).toEqual(stores.map(() => "WF_CHECKPOINT_REWOUND"));
    for (const store of stores) await store.close(false);
    for (const slot of [0, 1]) expect((await openSlot(slot)).previousEnd).toBe("power-loss");
  }, 60_000);

  test("once one slot notices a loss, every slot that is opened later is in doubt, also one whose messages are all there", async () => {
    const place = await Place.make();
    const witness = { read: () => "", write: async () => {} };
    const other = await place.open({ slot: "1", witness });
    await other.close(false);
    const first = await place.open();
    await first.openView("copy", "settings", "/ConfigMap");
    await place.nats.jsm.streams.purge(place.nats.logStream, { filter: `${place.nats.logSubject}.0` });
    await expect(first.setCluster("cluster")).rejects.toMatchObject({ code: "WF_CHECKPOINT_REWOUND" });
    const opened = await place.open({ slot: "1", witness });
    expect(opened.previousEnd).toBe("power-loss");
    await opened.close(true);
    expect((await place.open({ slot: "1", witness })).previousEnd).toBe("clean");
  });

  test("a slot that is opened while another replica records a loss is in doubt", async () => {
    const place = await Place.make();
    const before = await place.nats.identity();
    const { identity } = place.nats;
    let asked = 0;
    place.nats.identity = async () => {
      if (++asked === 2) {
        place.nats.identity = identity;
        await place.nats.rewound(before);
      }
      return identity.call(place.nats);
    };
    expect((await place.open()).previousEnd).toBe("power-loss");
    expect(asked).toBe(2);
  });

  test("a slot is opened only once the open slots have checked the servers that came back", async () => {
    const place = await Place.make();
    const { nats } = place;
    const before = await nats.identity();
    const ended = await place.open();
    await ended.close(true);
    const back = Promise.withResolvers<void>();
    const checked = Promise.withResolvers<void>();
    const returned = async () => {
      back.resolve();
      await checked.promise;
      await nats.rewound(before);
    };
    nats.users.add({ left: () => {}, returned });
    await place.server.kill();
    await place.server.start();
    await back.promise;
    await until("it answers", 20_000, () => nats.identity());
    const opening = place.open();
    // Opening takes about ten requests, each of which is answered before these.
    for (let request = 0; request < 50; request++) await nats.jsm.streams.info(nats.logStream);
    checked.resolve();
    expect((await opening).previousEnd).toBe("power-loss");
  }, 60_000);

  test("no commit is refused for a loss before it is recorded, for that may end the process", async () => {
    const place = await Place.make();
    const order: string[] = [];
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    const first = await place.open();
    await first.openView("copy", "settings", "/ConfigMap");
    await place.nats.jsm.streams.purge(place.nats.logStream, { filter: `${place.nats.logSubject}.0` });
    const { rewound } = place.nats;
    place.nats.rewound = async (before) => {
      asked.resolve();
      await answer.promise;
      await rewound.call(place.nats, before);
      order.push("recorded");
    };
    const refused = () => void order.push("refused");
    const notices = first.setCluster("cluster").catch(refused);
    await asked.promise;
    const later = [commit(first, {}), first.setCluster("cluster"), first.sync()].map((each) => each.catch(refused));
    // A caller that does not wait is refused in this turn.
    await new Promise((resolve) => setImmediate(resolve));
    answer.resolve();
    await Promise.all([notices, ...later]);
    expect(order).toEqual(["recorded", ...Array(4).fill("refused")]);
  });

  test("of the snapshots before one that succeeds none is left, also where one of them failed at its end", async () => {
    const place = await Place.make();
    const store = await place.open();
    await store.openView("copy", "settings", "/ConfigMap");
    await store.journal.snapshot();
    const { streams } = place.nats.jsm;
    const purge = streams.purge.bind(streams);
    streams.purge = () => Promise.reject(new Error("TIMEOUT"));
    await store.journal.snapshot();
    expect(place.said.join()).toContain("TIMEOUT");
    streams.purge = purge;
    await store.journal.snapshot();
    const left = (await place.nats.objects.list()).filter(({ name }) => name.startsWith("0/snapshot/"));
    expect(left).toHaveLength(1);
    // No record of their existence is left either.
    const bucket = place.nats.logStream.replace(/-log$/, "");
    const { state } = await streams.info(`OBJ_${bucket}`, { subjects_filter: `$O.${bucket}.M.>` });
    expect(Object.keys(state.subjects ?? {})).toHaveLength(1);
    await store.close(false);
    expect(await (await place.open()).views("copy")).toHaveLength(1);
  });

  test.each([
    ["is gone", async () => {}],
    ["has made room for another's", ({ nats }: Place) => nats.js.publish(`${nats.logSubject}.0`)],
  ])(
    "an opening whose own first message %s ends with a code, and what was read by then is no store",
    async (_, befalls) => {
      const place = await Place.make();
      const before = await place.open();
      await before.openView("copy", "settings", "/ConfigMap");
      await before.close(true);
      const { js, jsm, logStream } = place.nats;
      const get = js.consumers.get.bind(js.consumers);
      const reading = Promise.withResolvers<void>();
      js.consumers.get = async (...args) => {
        await jsm.streams.purge(logStream);
        await befalls(place);
        reading.resolve();
        return get(...args);
      };
      const clock = new ImpatientClock();
      let ended = "";
      const end = (how: string) => {
        ended = how;
      };
      place.open({ clock }).then(
        () => end("open"),
        ({ code }) => end(code),
      );
      await reading.promise;
      await until("it has waited long", 5_000, async () => {
        clock.cutShort(10_000, 20_000);
        return ended !== "";
      });
      expect(ended).toBe("WF_CHECKPOINT_NATS_AWAY");
    },
  );

  test("a message that is missing amid the log ends the start with a code, and is not passed over", async () => {
    const place = await Place.make();
    const first = await place.open();
    const { id } = await first.openView("copy", "settings", "/ConfigMap");
    await commit(first, { known: [row(id, "a/x", 1)] });
    const { state } = await place.nats.jsm.streams.info(place.nats.logStream);
    await commit(first, { known: [row(id, "a/y", 1)] });
    await first.close(true);
    await place.nats.jsm.streams.deleteMessage(place.nats.logStream, state.last_seq);
    await expect(place.open()).rejects.toMatchObject({ code: "WF_CHECKPOINT_CORRUPT" });
  });

  test("streams that were deleted are noticed while it runs, and made anew at the next start, in doubt", async () => {
    const place = await Place.make();
    const first = await place.open();
    await first.openView("copy", "settings", "/ConfigMap");
    await place.nats.jsm.streams.delete(place.nats.logStream);
    await expect(first.openView("other", "settings", "/ConfigMap")).rejects.toMatchObject({
      code: "WF_CHECKPOINT_REWOUND",
    });
    expect(place.lost).toEqual(["WF_CHECKPOINT_REWOUND"]);
    const second = await place.open();
    expect([second.previousEnd, await second.views()]).toEqual(["power-loss", []]);
    const { id } = await second.openView("copy", "settings", "/ConfigMap");
    await place.nats.jsm.streams.delete(place.nats.bodyStream);
    const body = Buffer.from("{}");
    await expect(commit(second, { known: [row(id, "a/x", 1, body)] })).rejects.toMatchObject({
      code: "WF_CHECKPOINT_REWOUND",
    });
    expect((await place.open()).previousEnd).toBe("power-loss");
  });

  test("streams that were emptied are noticed at the next start", async () => {
    const place = await Place.make();
    const first = await place.open();
    await first.openView("copy", "settings", "/ConfigMap");
    await first.close(true);
    await place.nats.jsm.streams.purge(place.nats.logStream);
    const second = await place.open();
    expect([second.previousEnd, await second.views(), place.said.join()]).toEqual([
      "power-loss",
      [],
      expect.stringContaining("WF_CHECKPOINT_REWOUND"),
    ]);
  });
});
