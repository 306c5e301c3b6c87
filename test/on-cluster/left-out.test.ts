import { afterAll, describe, expect, inject, test } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { silentObserver } from "../../runtime/informer/fanout/observer.ts";
import { Informers } from "../../runtime/informer/informers.ts";
import { connectDirect } from "../../runtime/kube/direct.ts";
import { Discovery } from "../../runtime/kube/discovery.ts";
import { RecordingSubscriber } from "../informer/recording-subscriber.ts";
import { type Access, Client } from "../target/client.ts";
import { eventually, startOwn, unique } from "../target/fixture.ts";

const { access } = inject("shared");

/** The sources of one replica on a cluster. */
function replica({ url, ca, token }: Access) {
  const transport = connectDirect({ server: url, ca, token });
  const discovery = new Discovery(transport, systemClock);
  const watches = new Informers({
    transport,
    discovery,
    clock: systemClock,
    random: () => 0,
    observer: silentObserver,
  });
  afterAll(async () => {
    await watches.close();
    await transport.close();
  });
  return watches;
}

/**
 * Two subscribers of one namespace each, one of which has opened a new connection. Returns the changes that it then received, and
 * the reason.
 */
async function asksAgain(to: Access) {
  const client = new Client(to);
  afterAll(() => client.close());
  const label = unique("left-out");
  const [ours, theirs, late] = [unique("ours"), unique("theirs"), unique("late")];
  for (const name of [ours, theirs, late]) await client.post("/api/v1/namespaces", { metadata: { name } });
  const path = (namespace: string) => `/api/v1/namespaces/${namespace}/configmaps`;
  const make = (namespace: string) =>
    client.post(path(namespace), { metadata: { name: "settings", labels: { label } } });
  const set = (namespace: string, value: string) => client.patch(`${path(namespace)}/settings`, { data: { value } });
  for (const namespace of [ours, theirs]) await make(namespace);

  const watches = replica(to);
  const spec = { apiVersion: "v1", kind: "ConfigMap", labelSelector: `label=${label}` };
  const one = Object.assign(new RecordingSubscriber(), { wants: (namespace: string) => namespace === ours });
  watches.subscribe(spec, one);
  const told = (by: RecordingSubscriber) => by.changes.map(({ type, meta }) => `${type} ${meta.namespace}`);
  const isTold = (by: RecordingSubscriber, last: string) =>
    eventually(
      async () => told(by),
      (all) => all.at(-1) === last,
    );
  await eventually(
    async () => one.log,
    (log) => log.some((line) => line.startsWith("end")),
  );
  await set(theirs, "1");
  await isTold(one, `Modified ${theirs}`);
  watches.streams()[0]?.reconnect();
  await eventually(
    async () => watches.streams().length,
    (running) => running === 1,
  );
  one.changes.length = 0;
  return { ours, theirs, late, one, watches, spec, make, set, told, isTold, client, path };
}

test("a server that cannot leave out a namespace sends all of it, and nothing is missed", async () => {
  const { ours, theirs, one, set, told, isTold } = await asksAgain(access);
  await set(theirs, "2");
  await set(ours, "2");
  await isTold(one, `Modified ${ours}`);
  expect(told(one)).toEqual([`Modified ${theirs}`, `Modified ${ours}`]);
});

const minor = async () => {
  const client = new Client(access);
  const { body } = await client.reply("GET", "/version");
  await client.close();
  return Number.parseInt(body.minor, 10);
};
const canLeaveOut = inject("target") === "real" && inject("startable") && (await minor()) >= 36;

describe.skipIf(!canLeaveOut)("an API server with shardSelector (KEP-5866)", () => {
  test("leaves out the namespace that nobody wants, until somebody does, and nothing else", async () => {
    const own = await startOwn(["ShardedListAndWatch"]);
    const { ours, theirs, late, one, watches, spec, make, set, told, isTold, client, path } = await asksAgain(
      own.access,
    );
    await set(theirs, "2");
    await set(ours, "2");
    await make(late);
    await client.delete(`${path(ours)}/settings`);
    await make(ours);
    await isTold(one, `Added ${ours}`);
    expect(told(one)).toEqual([`Modified ${ours}`, `Added ${late}`, `Deleted ${ours}`, `Added ${ours}`]);
    const at = one.resumeFrom;
    const other = Object.assign(new RecordingSubscriber(at), { wants: (namespace: string) => namespace === theirs });
    watches.subscribe(spec, other);
    await set(theirs, "3");
    await isTold(other, `Modified ${theirs}`);
    expect(told(other)).toEqual([`Modified ${theirs}`]);
    expect(one.log.filter((line) => line.startsWith("list"))).toHaveLength(1);
  });
});
