// The ownership of the streams of a NATS, on a real nats-server.
import { describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { Checkpoint } from "../../runtime/journal/checkpoint.ts";
import type { Nats } from "../../runtime/journal/nats/connection.ts";
import { JetstreamJournal } from "../../runtime/journal/nats/journal.ts";
import { sweepSlots } from "../../runtime/journal/nats/sweep.ts";
import { connectNats } from "../../runtime/migrate/open-journal.ts";
import { createLog } from "../../runtime/observe/log.ts";
import { natsProgram } from "../tools/assets.ts";
import { startNats } from "../tools/nats.ts";

const refused = { code: "WF_CHECKPOINT_OTHER_CLUSTER" };
const stream = "watchfire-apps_watchfire-log";

/**
 * A server, with the connections of one runtime per cluster; `undefined` is an older runtime that does not know its cluster.
 */
async function place() {
  const server = await startNats();
  const said: string[] = [];
  const log = createLog("warn", { write: (line: string) => void said.push(line) });
  const place = { nats: { servers: [server.url] }, namespace: "apps", clock: systemClock, log };
  const connect = async (cluster: string | undefined): Promise<Nats> => {
    const nats = await connectNats({ ...place, cluster });
    onTestFinished(() => nats.close());
    return nats;
  };
  const older = await connect(undefined);
  const open = (slot: string) =>
    JetstreamJournal.open({ nats: older, slot, clock: systemClock, log, onLost: () => {} }).then(
      (journal) => new Checkpoint(journal),
    );
  /** A slot with checkpoints of a cluster, as an older runtime left it. */
  const fill = async (slot: string, cluster: string | undefined) => {
    const store = await open(slot);
    if (cluster !== undefined) await store.setCluster(cluster);
    await store.openView("copy", "settings", "/ConfigMap");
    await store.close(true);
  };
  /** Everything that a runtime might change. */
  const state = async () => {
    const { config, state } = await older.jsm.streams.info(stream);
    return { metadata: config.metadata?.["watchfire.dev/cluster"], last: state.last_seq };
  };
  return { older, connect, fill, open, state, said };
}

const streamsOf = async ({ jsm }: Nats) => (await jsm.streams.list().next()).map(({ config }) => config.name);

describe.skipIf(!natsProgram)("streams on NATS (NATS_SERVER names the server's program)", () => {
  test("say whose they are from the first on, to another cluster too; what it finds it leaves", async () => {
    const { older, connect, state } = await place();
    for (const name of await streamsOf(older)) await older.jsm.streams.delete(name);
    expect((await connect("ours")).owner).toBe("ours");
    await older.jsm.streams.delete("watchfire-apps_watchfire-body");
    const before = await state();
    const refusal = await connect("theirs").catch((error) => error);
    expect(refusal).toMatchObject(refused);
    expect(refusal.message).toMatch(/watchfire-apps_watchfire-log on NATS .* has the uid ours.*theirs/s);
    expect([await state(), await streamsOf(older)]).toEqual([
      before,
      ["OBJ_watchfire-apps_watchfire", "watchfire-apps_watchfire-log"],
    ]);
    expect((await connect("ours")).owner).toBe("ours");
    expect((await connect(undefined)).owner).toBe("ours");
  });

  test("of an older runtime are its cluster's once their positions were read, and another's are refused as they are", async () => {
    const { connect, fill, state } = await place();
    await fill("lease-3_1", "ours");
    const before = await state();
    await expect(connect("theirs")).rejects.toMatchObject(refused);
    expect(await state()).toEqual(before);
    await connect("ours");
    expect(await state()).toEqual({ ...before, metadata: "ours" });
    await expect(connect("theirs")).rejects.toMatchObject(refused);
  });

  test("whose positions say nothing of a cluster are whose runtime comes first", async () => {
    const { connect, fill, state } = await place();
    await fill("0", undefined);
    await connect("ours");
    expect((await state()).metadata).toBe("ours");
  });

  test("that an older runtime let two clusters into are refused to neither of them, and to a third", async () => {
    const { connect, fill, state, said } = await place();
    await fill("lease-1_0", "ours");
    await fill("other-1_0", "theirs");
    for (const cluster of ["ours", "theirs"]) expect((await connect(cluster)).owner).toBeUndefined();
    await expect(connect("third")).rejects.toMatchObject(refused);
    expect([(await state()).metadata, said.length]).toEqual([undefined, 2]);
  });

  test("with a damaged slot are known by the others; where none says it, they are nobody's until it is repaired", async () => {
    const { older, connect, fill, open, state, said } = await place();
    await fill("0", "ours");
    const damaged = await open("0");
    await damaged.openView("audit", "settings", "/ConfigMap");
    await damaged.openView("label", "settings", "/ConfigMap");
    await damaged.close(true);
    await older.jsm.streams.deleteMessage(stream, 3);
    await expect(open("0")).rejects.toMatchObject({ code: "WF_CHECKPOINT_CORRUPT" });
    for (const cluster of ["theirs", "ours"]) expect((await connect(cluster)).owner).toBeUndefined();
    expect(said.filter((line) => line.includes("WF_CHECKPOINT_CORRUPT"))).toHaveLength(2);
    await fill("1", "ours");
    await expect(connect("theirs")).rejects.toMatchObject(refused);
    await connect("ours");
    expect((await state()).metadata).toBe("ours");
  });

  test("that became another cluster's since are refused to each slot that is opened, before it is fenced", async () => {
    const { older, connect, state } = await place();
    const ours = await connect("ours");
    await older.jsm.streams.update(stream, { metadata: { "watchfire.dev/cluster": "theirs" } });
    const before = await state();
    const log = createLog("error", { write: () => {} });
    const opened = JetstreamJournal.open({ nats: ours, slot: "0", clock: systemClock, log, onLost: () => {} }).then(
      (journal) => new Checkpoint(journal),
    );
    await expect(opened).rejects.toMatchObject(refused);
    expect(await state()).toEqual(before);
  });

  test("that are deleted are free for another cluster, which begins anew; those that are merely emptied are not", async () => {
    const { older, connect } = await place();
    await connect("ours");
    await sweepSlots(older, () => true);
    await older.jsm.streams.purge(stream);
    await expect(connect("theirs")).rejects.toMatchObject(refused);
    for (const name of await streamsOf(older)) await older.jsm.streams.delete(name);
    expect((await connect("theirs")).owner).toBe("theirs");
  });
});
