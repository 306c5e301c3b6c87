import { join } from "node:path";
import { jetstreamManager, type StreamConfig } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { describe, expect, test } from "vitest";
import type { WatchfireError } from "../../../runtime/base/errors.ts";
import { emptyBatch } from "../../../runtime/journal/batch.ts";
import { Nats } from "../../../runtime/journal/nats/connection.ts";
import { natsProgram } from "../../tools/assets.ts";
import { folderOf } from "../../tools/folder.ts";
import { startNats } from "../../tools/nats.ts";
import type { NatsServer } from "../../tools/nats-server.ts";
import { until } from "../../tools/until.ts";
import { Place } from "./place.ts";
import { cursor, row } from "./rows.ts";

const name = "apps_watchfire";
const log = { warn: () => {}, info: () => {} };

/** A server whose only account has these settings. */
const startAccount = (jetstream: string): Promise<NatsServer> => {
  const text = `accounts { W { ${jetstream} users: [{ user: a, password: b }] } }\nno_auth_user: a\n`;
  return startNats(["-c", join(folderOf({ "nats.conf": text }), "nats.conf")]);
};

/** The error of a connection, or of opening a slot. */
async function refusal(server: NatsServer, over: { replicas?: number; name?: string } = {}): Promise<WatchfireError> {
  const made = Nats.connect({ servers: [server.url], name, log, ...over });
  return made.then(
    async (nats) => {
      await nats.close();
      throw new Error("it connects");
    },
    (error: unknown) => error as WatchfireError,
  );
}

/** The streams of a runtime with this name, and their subjects. */
const logOf = (of: string) => ({ stream: `watchfire-${of}-log`, subject: `watchfire.${of}.log.*` });
const streamsOf = (of: string) => [
  logOf(of),
  { stream: `watchfire-${of}-body`, subject: `watchfire.${of}.body.>` },
  { stream: `OBJ_watchfire-${of}`, subject: `$O.watchfire-${of}.>` },
];

/** Creates or changes streams from outside the runtime. */
async function byHand(server: NatsServer, change: (streams: Streams) => Promise<unknown>): Promise<void> {
  const connection = await connect({ servers: server.url });
  await change((await jetstreamManager(connection)).streams);
  await connection.close();
}

type Streams = Awaited<ReturnType<typeof jetstreamManager>>["streams"];

/** Commits incompressible bodies until a commit is refused. Returns the refusal. */
async function fill(place: Place): Promise<{ error: WatchfireError; mend: () => Promise<unknown> }> {
  const store = await place.open();
  const { id } = await store.openView("copy", "settings", "/ConfigMap");
  for (let index = 0; index < 100; index++) {
    const body = Buffer.from(crypto.getRandomValues(new Uint8Array(60_000)));
    const batch = { ...emptyBatch, known: [row(id, `a/${index}`, 1, body)] };
    const error = await store.commit(batch).then(
      () => undefined,
      (fault: WatchfireError) => fault,
    );
    if (!error) continue;
    expect(store.trouble?.code).toBe(error.code);
    return { error, mend: () => until("the commit is taken", 20_000, () => store.commit(batch).then(() => true)) };
  }
  throw new Error("nothing is refused");
}

describe.skipIf(!natsProgram)("a JetStream that takes nothing (NATS_SERVER names the server's program)", () => {
  test("one that is not enabled, on the server or for the account, is told as that", async () => {
    const server = await startNats();
    await server.kill();
    await server.start({ jetstream: false });
    for (const each of [server, await startAccount("")]) {
      expect(await refusal(each)).toMatchObject({ code: "WF_CHECKPOINT_NATS_JETSTREAM" });
    }
  });

  test("one that is switched off under a runtime is told as that, and commits go on once it is back", async () => {
    const place = await Place.make();
    const store = await place.open();
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    await place.server.kill();
    await place.server.start({ jetstream: false });
    const batch = { ...emptyBatch, cursors: [cursor(id, 1)] };
    await until("it is told", 20_000, async () => {
      await store.commit(batch).catch(() => undefined);
      return store.trouble?.code === "WF_CHECKPOINT_NATS_JETSTREAM";
    });
    await place.server.kill();
    await place.server.start();
    await until("the commit is taken", 20_000, () => store.commit(batch).then(() => true));
    await store.close(true);
  }, 60_000);

  test.each([
    ["the account", () => startAccount("jetstream: { max_file: 1M },"), "max_file"],
    [
      "the server",
      () => startNats(["-c", join(folderOf({ "nats.conf": "jetstream { max_file_store: 1M }" }), "nats.conf")]),
      "max_file_store",
    ],
  ])("a limit of %s that is reached is told as that, with what is to be raised", async (_, start, setting) => {
    const { error } = await fill(await Place.make(await start()));
    expect([error.code, error.message]).toEqual(["WF_CHECKPOINT_NATS_FULL", expect.stringContaining(setting)]);
    expect(error.message).toContain("nothing is lost");
  });

  test("a limit of a stream that refuses what is new is told as that, and the commit is taken once it is raised", async () => {
    const place = await Place.make();
    const limit = (max_bytes: number) =>
      byHand(place.server, (streams) => streams.update(place.nats.bodyStream, { max_bytes }));
    await limit(500_000);
    const { error, mend } = await fill(place);
    expect([error.code, error.message]).toEqual(["WF_CHECKPOINT_NATS_FULL", expect.stringContaining("max_bytes")]);
    await limit(-1);
    await mend();
  });

  test.each([
    ["more streams than the account may have", () => startAccount("jetstream: { max_streams: 2 },"), {}, "max_streams"],
    [
      "streams without a limit where the account asks for one",
      () => startAccount("jetstream: { max_bytes_required: true },"),
      {},
      "max_bytes_required",
    ],
    ["more replicas than there are servers", () => startNats(), { replicas: 3 }, "--nats-replicas"],
  ])("%s are refused with what is to be changed", async (_, start, over, setting) => {
    const { code, message } = await refusal(await start(), over);
    expect([code, message]).toEqual(["WF_CHECKPOINT_NATS", expect.stringContaining(setting)]);
  });

  const forgetful: [string, Partial<StreamConfig>][] = [
    ["max_age", { max_age: 60_000_000_000 }],
    ["max_bytes", { max_bytes: 1_000_000, discard: "old" }],
    ["max_msgs", { max_msgs: 1_000, discard: "old" }],
    ["retention", { retention: "interest" }],
  ];
  test.each(forgetful)(
    "a stream that forgets by its %s is refused, with its name, before it is used",
    async (setting, over) => {
      const server = await startNats();
      for (const [index, { stream, subject }] of streamsOf("apps").entries()) {
        // Each runtime has another name, so that it creates its missing streams.
        const of = `apps${index}`;
        const config = { name: stream.replace("apps", of), subjects: [subject.replace("apps", of)], ...over };
        await byHand(server, (all) => all.add(config));
        const { code, message } = await refusal(server, { name: of });
        expect([code, message]).toEqual([
          "WF_CHECKPOINT_NATS_FORGETS",
          expect.stringContaining(`${config.name} has ${setting}`),
        ]);
      }
    },
  );

  test.each([
    ["log's stream may not keep a number of messages for each slot: a slot's log is", 0],
    ["objects' stream may not keep a number of messages for each object: the parts of one are", 2],
  ])("the %s many", async (_, which) => {
    const server = await startNats();
    const { stream = "", subject = "" } = streamsOf(name)[which] ?? {};
    await byHand(server, (all) => all.add({ name: stream, subjects: [subject], max_msgs_per_subject: 100 }));
    expect(await refusal(server)).toMatchObject({
      code: "WF_CHECKPOINT_NATS_FORGETS",
      message: expect.stringContaining("max_msgs_per_subject"),
    });
  });

  test("a limit that a stream was given while it was in use is noticed by the next to open a slot", async () => {
    const place = await Place.make();
    await (await place.open()).close(true);
    await byHand(place.server, (all) => all.update(place.nats.logStream, { max_msgs: 1_000, discard: "old" }));
    await expect(place.open()).rejects.toMatchObject({ code: "WF_CHECKPOINT_NATS_FORGETS" });
  });

  test("a stream that was made by hand and refuses what is too much is taken", async () => {
    const server = await startNats();
    const { stream, subject } = logOf(name);
    await byHand(server, (all) =>
      all.add({ name: stream, subjects: [subject], max_bytes: 10_000_000, max_msgs: 10_000, discard: "new" }),
    );
    const nats = await Nats.connect({ servers: [server.url], name, log });
    const store = await new Place(server, nats).open();
    await store.close(true);
    await nats.close();
  });
});
