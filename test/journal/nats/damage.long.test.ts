// Unreadable parts of a slot on a real nats-server, and the remedy that the error names.
import { describe, expect, test } from "vitest";
import { systemClock } from "../../../runtime/base/clock.ts";
import { readSlot } from "../../../runtime/journal/nats/slot.ts";
import { natsProgram } from "../../tools/assets.ts";
import { until } from "../../tools/until.ts";
import { letter } from "../store-contract.ts";
import { Place } from "./place.ts";
import { commit, row } from "./rows.ts";

/** A slot with a snapshot, a log after it, and a commit that is larger than a message. */
async function filled() {
  const place = await Place.make();
  const store = await place.open();
  const { id } = await store.openView("copy", "settings", "/ConfigMap");
  await commit(store, { known: [row(id, "a/x", 1)] });
  await store.journal.snapshot();
  await commit(store, { known: [row(id, "a/y", 1)] });
  const noise = Buffer.from(crypto.getRandomValues(new Uint8Array(60_000)));
  const large = Buffer.concat(Array.from({ length: 24 }, () => Buffer.from(crypto.getRandomValues(noise))));
  await commit(store, { deadLetters: [{ ...letter(id), body: large }] });
  await store.close(true);
  const { nats } = place;
  const { logStream, logSubject, objects, jsm } = nats;
  const bucket = logStream.replace(/-log$/, "");
  const named = async (part: string) => (await objects.list()).find(({ name }) => name.includes(part));
  const partsOf = async (part: string) => `$O.${bucket}.C.${(await named(part))?.nuid}`;
  return { place, nats, logStream, subject: `${logSubject}.0`, bucket: `OBJ_${bucket}`, jsm, named, partsOf };
}

type Filled = Awaited<ReturnType<typeof filled>>;

const damages: Readonly<Record<string, (of: Filled) => Promise<unknown>>> = {
  "a message that is none of ours": ({ nats, subject }) => nats.js.publish(subject, "{}"),
  "a message whose rows are none": async ({ nats, logStream, subject, jsm }) => {
    const { header } = (await jsm.streams.getMessage(logStream, { last_by_subj: subject })) ?? {};
    const { seq } = (await jsm.streams.getMessage(logStream, { last_by_subj: subject })) ?? {};
    const note = { ...JSON.parse(header?.get("Watchfire") ?? ""), after: seq };
    await nats.js.publish(subject, "no rows", { headers: nats.headers({ Watchfire: JSON.stringify(note) }) });
  },
  "a message amid the log that is gone": async ({ logStream, jsm, subject }) => {
    const { seq = 0 } = (await jsm.streams.getMessage(logStream, { last_by_subj: subject })) ?? {};
    await jsm.streams.deleteMessage(logStream, seq - 1);
  },
  "a snapshot that is gone": async ({ nats, named }) => nats.deleteObject((await named("/snapshot/"))?.name ?? ""),
  "a snapshot without its parts": async ({ jsm, bucket, partsOf }) =>
    jsm.streams.purge(bucket, { filter: await partsOf("/snapshot/") }),
  "a snapshot of other bytes": async ({ nats, jsm, bucket, partsOf }) => {
    const filter = await partsOf("/snapshot/");
    await jsm.streams.purge(bucket, { filter });
    await nats.js.publish(filter, "other bytes");
  },
  "a snapshot that is none": async ({ nats, named }) =>
    nats.objects.putBlob({ name: (await named("/snapshot/"))?.name ?? "" }, Buffer.from("\0\0\0\x04none")),
  "a commit whose object is gone": async ({ nats, named }) => nats.deleteObject((await named("/entry/"))?.name ?? ""),
  "a commit whose object lacks a part": async ({ jsm, bucket, partsOf }) => {
    const { seq = 0 } = (await jsm.streams.getMessage(bucket, { last_by_subj: await partsOf("/entry/") })) ?? {};
    await jsm.streams.deleteMessage(bucket, seq);
  },
};

describe.skipIf(!natsProgram)("damage on NATS JetStream (NATS_SERVER names the server's program)", () => {
  test.each(Object.entries(damages))(
    "%s is said with a code and a remedy for the slot alone, which works",
    async (_, damage) => {
      const world = await filled();
      const { place, nats, logStream, subject, jsm } = world;
      await damage(world);
      const read = () => readSlot({ nats, slot: "0", clock: systemClock });
      for (const tried of [read, () => place.open(), read, () => place.open()]) {
        const fault = await tried().catch((error) => error);
        expect(fault).toMatchObject({ code: "WF_CHECKPOINT_CORRUPT" });
        expect(fault.message).toContain(`the checkpoints of ${subject} on NATS cannot be used: `);
        expect(fault.message).toContain(`\`nats stream purge ${logStream} --subject ${subject}\``);
      }
      await jsm.streams.purge(logStream, { filter: subject });
      expect((await read()).views.size).toBe(0);
      const again = await place.open();
      expect([again.previousEnd, await again.views()]).toEqual(["power-loss", []]);
      await again.close(true);
      const names = (await nats.objects.list()).map(({ name }) => name);
      expect(names).toEqual([]);
    },
  );

  test("a slot that is looked at while NATS is away says so: that passes, and ends nobody", async () => {
    const { place, nats } = await filled();
    const read = () => readSlot({ nats, slot: "0", clock: systemClock });
    await place.server.kill();
    expect(await read().catch((error) => error)).toMatchObject({ code: "WF_CHECKPOINT_NATS_AWAY" });
    await place.server.start();
    await until("it is back", 20_000, () =>
      read().then(
        ({ views }) => views.size === 1,
        () => false,
      ),
    );
  }, 40_000);

  test.each([
    [
      "lacks a part",
      async ({ jsm, bucket, partsOf }: Filled) => {
        const { seq = 0 } = (await jsm.streams.getMessage(bucket, { last_by_subj: await partsOf("/body/") })) ?? {};
        await jsm.streams.deleteMessage(bucket, seq);
      },
    ],
    [
      "is of other bytes",
      async ({ nats, jsm, bucket, partsOf }: Filled) => {
        const filter = await partsOf("/body/");
        await jsm.streams.purge(bucket, { filter });
        for (let part = 0; part < 9; part++) await nats.js.publish(filter, "other bytes");
      },
    ],
  ])("a large last body that %s is gone, and nobody waits for it", async (_, damage) => {
    const world = await filled();
    const store = await world.place.open({ cacheBytes: 0 });
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const body = Buffer.alloc(1024 * 1024, "x");
    await commit(store, { known: [row(id, "a/z", 1, body)] });
    expect((await store.body(id, "a/z"))?.bytes.equals(body)).toBe(true);
    await damage(world);
    expect(await store.body(id, "a/z")).toBeUndefined();
    await store.close(true);
  });

  test("an object that goes while it is read is gone, not empty", async () => {
    const { nats, named } = await filled();
    const name = (await named("/snapshot/"))?.name ?? "";
    const { objects } = nats;
    const goes = {
      info: (of: string) => objects.info(of),
      getBlob: async (of: string) => {
        await nats.deleteObject(of);
        return objects.getBlob(of);
      },
    };
    const racing = Object.create(nats, { objects: { value: goes } });
    await expect(readSlot({ nats: racing, slot: "0", clock: systemClock })).rejects.toMatchObject({
      code: "WF_CHECKPOINT_CORRUPT",
      message: expect.stringContaining(`its object ${name} is gone`),
    });
  });
});
