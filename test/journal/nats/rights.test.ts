import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { nkeys } from "@nats-io/transport-node";
import { describe, expect, onTestFinished, test } from "vitest";
import { errorCodes } from "../../../runtime/base/errors.ts";
import { makeCertificates } from "../../../runtime/cluster/certificates.ts";
import { emptyBatch } from "../../../runtime/journal/batch.ts";
import { Nats, type NatsOptions } from "../../../runtime/journal/nats/connection.ts";
import { natsProgram } from "../../tools/assets.ts";
import { folderOf } from "../../tools/folder.ts";
import { startNats } from "../../tools/nats.ts";
import type { NatsServer } from "../../tools/nats-server.ts";
import { until } from "../../tools/until.ts";
import { letter } from "../store-contract.ts";
import { Place } from "./place.ts";

const root = join(import.meta.dirname, "../../..");
const guide = readFileSync(join(root, "runtime/docs/nats.md"), "utf8");
/** The rights that the guide tells the operator to grant. */
const rights = /```\n(permissions: \{[\s\S]*?\n\})\n```/.exec(guide)?.[1] ?? "";
const name = "apps_watchfire";

/** A server with nkey users and their rights. */
async function guarded(users: readonly User[]) {
  const file = join(folderOf({}), "nats.conf");
  admit(file, users);
  return startNats(["-c", file]);
}

interface User {
  readonly publicKey: string;
  readonly rights: string;
}

function admit(file: string, users: readonly User[]): void {
  const all = users.map(({ publicKey, rights: of }) => `{ nkey: ${publicKey}, ${of} }`);
  writeFileSync(file, `accounts { W { jetstream: enabled, users: [${all.join(", ")}] } }`);
}

async function connect(server: NatsServer, over: Partial<NatsOptions>): Promise<Nats> {
  const log = { warn: () => {}, info: () => {} };
  const nats = await Nats.connect({ servers: [server.url], name, log, ...over });
  onTestFinished(() => nats.close());
  return nats;
}

const seedFile = (seed: Uint8Array) => join(folderOf({ seed }), "seed");

test("the guide and the error name the packages of the client as the runtime's package does", () => {
  const { peerDependencies } = JSON.parse(readFileSync(join(root, "runtime/package.json"), "utf8"));
  const command = `npm install ${["transport-node", "jetstream", "obj"].map((each) => `@nats-io/${each}@${peerDependencies[`@nats-io/${each}`]}`).join(" ")}`;
  expect([guide.includes(command), errorCodes.WF_CHECKPOINT_NATS_CLIENT.hint.includes(command)]).toEqual([true, true]);
});

describe.skipIf(!natsProgram)("rights on NATS (NATS_SERVER names the server's program)", () => {
  test("those of the guide are enough for all that a store does, and reach no other runtime's subjects", async () => {
    const user = nkeys.createUser();
    const publicKey = user.getPublicKey();
    const server = await guarded([{ publicKey, rights: rights.replaceAll("NAME", name) }]);
    const credentials = seedFile(user.getSeed());
    const place = new Place(server, await connect(server, { credentials }));
    const store = await place.open({ cacheBytes: 0 });
    const { id } = await store.openView("copy", "settings", "/ConfigMap");
    const large = Buffer.alloc(3 * 1024 * 1024, "x");
    const state = { uid: "u", hash: "", deleted: false, matched: true, resourceVersion: letter(id).resourceVersion };
    const known = (key: string, body: Buffer) => ({ view: id, key, state: { ...state, body } });
    const bodies = [known("a/small", Buffer.from("{}")), known("a/large", large)];
    await store.commit({ ...emptyBatch, known: bodies, deadLetters: [{ ...letter(id), body: large }] });
    await store.journal.snapshot();
    await store.commit({ ...emptyBatch, known: [{ view: id, key: "a/small", state: undefined }] });
    await store.close(true);
    const next = await place.open({ cacheBytes: 0 });
    expect([next.previousEnd, (await next.body(id, "a/large"))?.bytes.length, place.said]).toEqual([
      "clean",
      large.length,
      [],
    ]);
    await next.close(true);
    const claiming = await connect(server, { credentials, cluster: "uid" });
    await claiming.mark();
    expect(claiming.owner).toBe("uid");
    await expect(connect(server, { credentials, name: "apps_other" })).rejects.toMatchObject({
      code: "WF_CHECKPOINT_NATS",
    });
  }, 60_000);

  test("a right to JetStream's API that a user lacks is told as that, and not as a JetStream that is off", async () => {
    const user = nkeys.createUser();
    const few = rights.replaceAll("NAME", name).replace(/\$JS\.API\./g, "$JS.OTHER.");
    const server = await guarded([{ publicKey: user.getPublicKey(), rights: few }]);
    await expect(connect(server, { credentials: seedFile(user.getSeed()) })).rejects.toMatchObject({
      code: "WF_CHECKPOINT_NATS",
      message: expect.stringContaining("$JS.API."),
    });
  });

  test("a user that the server does not know is refused with a code, and its seed is told to nobody", async () => {
    const [known, unknown] = [nkeys.createUser(), nkeys.createUser()];
    const server = await guarded([{ publicKey: known.getPublicKey(), rights: rights.replaceAll("NAME", name) }]);
    const refusal = await connect(server, { credentials: seedFile(unknown.getSeed()) }).catch((error) => error);
    expect(refusal).toMatchObject({ code: "WF_CHECKPOINT_NATS" });
    expect(`${refusal.message} ${refusal.stack} ${refusal.cause}`).not.toContain(
      Buffer.from(unknown.getSeed()).toString(),
    );
  });

  test("a user whom the server refuses for a while goes on by itself once it is taken again", async () => {
    const [user, other] = [nkeys.createUser(), nkeys.createUser()].map((each) => ({
      seed: each.getSeed(),
      publicKey: each.getPublicKey(),
      rights: rights.replaceAll("NAME", name),
    }));
    if (!user || !other) throw new Error("no users");
    const file = join(folderOf({}), "nats.conf");
    admit(file, [user]);
    const server = await startNats(["-c", file]);
    const refusals: object[] = [];
    const log = { warn: (fields: object) => void ("error" in fields && refusals.push(fields)), info: () => {} };
    const nats = await connect(server, { credentials: seedFile(user.seed), log });
    const store = await new Place(server, nats).open();
    await server.kill();
    admit(file, [other]);
    await server.start();
    await until("it is refused twice", 20_000, async () => refusals.length >= 2);
    await server.kill();
    admit(file, [user]);
    await server.start();
    await until("commits go on", 20_000, () => store.commit(emptyBatch));
    await store.close(true);
  }, 60_000);

  test("with a certificate that is trusted TLS is spoken, and a server that nobody vouches for is not taken", async () => {
    const { ca, certificate, key } = await makeCertificates(Date.now());
    const folder = folderOf({ "ca.crt": ca, "tls.crt": certificate, "tls.key": key });
    const file = (name: string) => join(folder, name);
    const server = await startNats(["--tls", "--tlscert", file("tls.crt"), "--tlskey", file("tls.key")]);
    const nats = await connect(server, { tls: { ca: file("ca.crt") } });
    const store = await new Place(server, nats).open();
    await store.openView("copy", "settings", "/ConfigMap");
    await store.close(true);
    const { ca: another } = await makeCertificates(Date.now());
    const other = join(folderOf({ "ca.crt": another }), "ca.crt");
    await expect(connect(server, { tls: { ca: other } })).rejects.toMatchObject({
      code: expect.stringMatching(/^WF_CHECKPOINT_NATS/),
    });
  }, 60_000);
});
