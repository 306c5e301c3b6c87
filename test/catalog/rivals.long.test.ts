// Two concurrent deployments to one runtime, one of which is killed or sleeps past its time.
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Clock } from "../../runtime/base/clock.ts";
import { WatchfireError } from "../../runtime/base/errors.ts";
import { type DeployPlan, deploy } from "../../runtime/catalog/deploy/deploy.ts";
import { readRevisionCode, revisionsOf } from "../../runtime/catalog/deploy/rollback.ts";
import { manifestText } from "../../runtime/catalog/manifest-text.ts";
import { packFunction } from "../../runtime/catalog/packed-function.ts";
import { connectKubeconfig } from "../../runtime/kube/kubeconfig.ts";
import type { KubeRequest, KubeTransport } from "../../runtime/kube/transport.ts";
import { loadFunctions } from "../../runtime/manifest/load.ts";
import { builtInKinds } from "../../runtime/rbac/kinds.ts";
import { functionObjects } from "../../runtime/rbac/objects.ts";
import { admin, createTeam } from "../scenarios/cluster.ts";
import { bundleFunction } from "../tools/bundle.ts";
import type { Team } from "../tools/team.ts";
import { CatalogFixture, home } from "./fixture.ts";

vi.setConfig({ testTimeout: 60_000 });

/**
 * A clock on which waiting takes no real time. `skip` advances it; while `still` is true, waiting does not advance it.
 */
class HurriedClock implements Clock {
  still = false;
  private passed = 0;
  now = () => this.passed;
  monotonic = () => this.passed;
  sinceBoot = () => this.passed;
  after(delayMs: number, callback: () => void) {
    const turn = setImmediate(() => {
      if (!this.still) this.passed += delayMs;
      callback();
    });
    return { cancel: () => clearImmediate(turn) };
  }
  skip(ms: number): void {
    this.passed += ms;
  }
}

const isWrite = ({ method, query }: KubeRequest): boolean => method !== "GET" && query?.dryRun === undefined;

/** A deployment in this process, whose writes a test may delay or interrupt. */
class Rival {
  readonly clock = new HurriedClock();
  readonly writes: KubeRequest[] = [];
  readonly waited: string[] = [];
  /** Awaited before each write. An error that it throws stands for one of the network. */
  before: (request: KubeRequest) => Promise<void> = async () => undefined;
  /** The revision that must be the current one. */
  replaces: { replaces?: number } = {};
  private readonly fixture: CatalogFixture;
  private readonly account: string;
  private readonly set: string;

  constructor(fixture: CatalogFixture, account = fixture.account, set = "default") {
    this.fixture = fixture;
    this.account = account;
    this.set = set;
  }

  async deploy(): Promise<unknown> {
    const { functions: folder } = this.fixture;
    const connection = await connectKubeconfig({ file: join(this.fixture.folder, "kubeconfig"), environment: {} });
    onTestFinished(() => connection.transport.close());
    const { functions: manifests } = await loadFunctions(folder);
    const options = { account: this.account, namespace: home };
    const functions = await Promise.all(
      manifests.map(async (manifest) =>
        packFunction(manifest.name, manifestText(manifest), await bundleFunction(manifest), {
          ...options,
          root: folder,
        }),
      ),
    );
    const objects = manifests
      .flatMap((manifest) => functionObjects(manifest, builtInKinds, options))
      .map(({ metadata, ...object }) => ({
        ...object,
        metadata: { ...metadata, labels: { ...metadata.labels, "watchfire.dev/deployed": "true" } },
      }));
    const plan: DeployPlan = {
      ...options,
      set: this.set,
      transport: this.held(connection.transport),
      functions,
      objects,
      clock: this.clock,
      holder: "rival",
      waiting: (who) => void this.waited.push(who),
      note: { by: { account: "rival" }, git: null, message: "", kinds: [], ...this.replaces },
      approve: async () => true,
    };
    return deploy(plan);
  }

  private held(inner: KubeTransport): KubeTransport {
    const json = async <T>(request: KubeRequest, limit?: number): Promise<T> => {
      if (isWrite(request)) {
        await this.before(request);
        this.writes.push(request);
      }
      return inner.json<T>(request, limit);
    };
    return {
      description: inner.description,
      request: (request) => inner.request(request),
      json,
      close: async () => undefined,
    };
  }
}

/** Delays all callers until it is opened. */
function gate() {
  const arrived = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  const pass = async () => {
    arrived.resolve();
    await opened.promise;
  };
  return { arrived: arrived.promise, open: () => opened.resolve(), pass };
}

const grant = (team: Team, ...verbs: string[]) => ({
  watch: team.watch(),
  spec: { permissions: [{ apiGroups: [""], resources: ["configmaps"], verbs, namespaces: [team.name] }] },
});

/** The verbs that the fixture's function `greet` may use on ConfigMaps. */
async function granted(fixture: CatalogFixture, team: Team): Promise<string[]> {
  const path = `/apis/rbac.authorization.k8s.io/v1/namespaces/${team.name}/roles/${fixture.account}-greet.${home}`;
  const { status, body } = await admin.reply("GET", path);
  if (status === 404) return [];
  const rules: { resources: string[]; verbs: string[] }[] = body.rules;
  return rules
    .filter(({ resources }) => resources.includes("configmaps"))
    .flatMap(({ verbs }) => verbs)
    .sort();
}

/** A fixture whose `greet` may patch, and another of the same runtime whose `greet` may delete. */
async function two() {
  const team = await createTeam();
  const [fixture, other] = [await CatalogFixture.create(), await CatalogFixture.create()];
  await fixture.define("greet", grant(team, "patch"));
  await other.define("greet", { ...grant(team, "delete"), work: "ctx.log.info('other');" });
  return { team, fixture, first: new Rival(fixture), second: new Rival(other, fixture.account) };
}

test("one that begins while another is under way writes nothing and is told, and the rights are the other's", async () => {
  const { team, fixture, first, second } = await two();
  const { arrived, open, pass } = gate();
  first.before = (request) => (request.path.includes("/roles/") ? pass() : Promise.resolve());
  const winner = first.deploy();
  await arrived;
  second.clock.still = true;
  const loser = second.deploy();
  loser.catch(() => undefined);
  await vi.waitFor(() => expect(second.waited).toHaveLength(1), 30_000);
  open();
  await winner;
  await expect(loser).rejects.toThrow(/^WF_DEPLOYED_CONFLICT: another deployment is under way/);
  expect(second.writes).toEqual([]);
  expect(await granted(fixture, team)).toEqual(["patch"]);
});

test("one that looked before another wrote is told by the index, and has granted and taken away nothing", async () => {
  const { team, fixture, first, second } = await two();
  const { arrived, open, pass } = gate();
  second.before = pass;
  const loser = second.deploy();
  await arrived;
  await first.deploy();
  open();
  await expect(loser).rejects.toThrow(/^WF_DEPLOYED_CONFLICT/);
  expect(second.writes.map(({ path }) => path.split("/").at(-1))).toEqual(["configmaps"]);
  expect(await granted(fixture, team)).toEqual(["patch"]);
});

test("one that slept while another took over writes nothing more, and is told", async () => {
  const { team, fixture, first, second } = await two();
  const { arrived, open, pass } = gate();
  first.before = (request) => (request.path.includes("/serviceaccounts/") ? pass() : Promise.resolve());
  const sleeper = first.deploy();
  await arrived;
  await second.deploy();
  expect(second.waited).toEqual([expect.stringContaining("rival")]);
  first.clock.skip(60_000);
  open();
  await expect(sleeper).rejects.toThrow(/^WF_DEPLOYED_CONFLICT/);
  expect(first.writes.filter(({ path }) => path.includes("/roles/"))).toEqual([]);
  expect((await fixture.index()).functions.map(({ name }) => name)).toEqual(["greet"]);
  expect(await granted(fixture, team)).toEqual(["delete"]);
});

/** Reads the code of every revision of `default`; it rejects if anything of one is missing. Returns their numbers. */
async function wholeRevisions({ folder, account }: CatalogFixture): Promise<number[]> {
  const { transport } = await connectKubeconfig({ file: join(folder, "kubeconfig"), environment: {} });
  onTestFinished(() => transport.close());
  const identity = { account, namespace: home, set: "default" };
  const { revisions, copies } = await revisionsOf(transport, identity);
  for (const revision of revisions) await readRevisionCode(transport, identity, { revision, copies }, undefined);
  return revisions.map(({ number }) => number);
}

// About ten deployments are killed, and as many follow.
test("wherever one is killed, the next brings everything into order", { timeout: 300_000 }, async () => {
  const { team, fixture, first, second } = await two();
  await first.deploy();
  await second.deploy();
  const whole = { objects: (await fixture.objects()).filter((name) => !name.startsWith("ConfigMap/")) };
  let writes = 1;
  for (let last = 0; last < writes; last += 1) {
    const victim = new Rival(fixture);
    let left = last;
    victim.before = async () => {
      if (left === 0) throw new Error("killed");
      left -= 1;
    };
    await victim.deploy().catch(() => undefined);
    expect(victim.writes.length).toBe(last);
    await second.deploy();
    expect(await granted(fixture, team)).toEqual(["delete"]);
    expect((await fixture.objects()).filter((name) => !name.startsWith("ConfigMap/"))).toEqual(whole.objects);
    const index = await admin.get(fixture.indexPath);
    expect(index.metadata.annotations ?? {}).toEqual({});
    expect(await fixture.configMaps()).toHaveLength(2);
    expect((await fixture.configMapOf("greet")).immutable).toBe(true);
    const numbers = await wholeRevisions(fixture);
    expect([numbers.length, new Set(numbers).size]).toEqual([Math.min(10, numbers.length), numbers.length]);
    expect(await fixture.copies()).toHaveLength(1);
    if (last > 0) continue;
    // The number of writes in an uninterrupted deployment of this change.
    const counted = new Rival(fixture);
    await counted.deploy();
    writes = counted.writes.length;
    await second.deploy();
  }
  expect(writes).toBeGreaterThan(5);
});

test("one that the network leaves before its index is written takes back what it made", async () => {
  const { fixture, first } = await two();
  let refused = false;
  first.before = async ({ path }) => {
    if (!refused && path.includes("/rolebindings/")) {
      refused = true;
      throw new Error("reset");
    }
  };
  await expect(first.deploy()).rejects.toThrow("reset");
  expect([await fixture.objects(), await fixture.kept()]).toEqual([[], []]);
});

test("one whose write of the index does not arrive fails with the index as it was, and lets go of it", async () => {
  const { fixture, first, second } = await two();
  await first.deploy();
  const before = await fixture.index();
  let indexWrites = 0;
  second.before = async ({ path }) => {
    if (path === fixture.indexPath && ++indexWrites === 2) throw new Error("reset");
  };
  await expect(second.deploy()).rejects.toThrow("reset");
  expect(await fixture.index()).toEqual(before);
  expect((await admin.get(fixture.indexPath)).metadata.annotations ?? {}).toEqual({});
  // Its record is there, and counts as no revision.
  expect(await fixture.kept()).toHaveLength(2);
  expect(await wholeRevisions(fixture)).toEqual([1]);
  await second.deploy();
  expect(await wholeRevisions(fixture)).toEqual([3, 1]);
});

test("one that the network leaves after its index is written says that the new functions run", async () => {
  const { fixture, first, second } = await two();
  await first.deploy();
  const before = await fixture.index();
  second.before = async ({ method }) => {
    if (method === "DELETE") throw new WatchfireError("WF_KUBE_UNREACHABLE", { what: "reset" });
  };
  await expect(second.deploy()).rejects.toThrow(/^WF_KUBE_UNREACHABLE: reset; the new functions run/);
  expect(await fixture.index()).not.toEqual(before);
});

test("one that would replace a revision that is no longer the current one is refused, and writes nothing", async () => {
  const { first, second } = await two();
  await first.deploy();
  second.replaces = { replaces: 1 };
  await second.deploy();
  first.replaces = { replaces: 1 };
  first.writes.length = 0;
  await expect(first.deploy()).rejects.toThrow(/^WF_DEPLOYED_CONFLICT: the revision 1 is no longer the current one/);
  expect(first.writes).toEqual([]);
});

test("of two sets at once one waits for the other, and both are deployed", async () => {
  const team = await createTeam();
  const [fixture, other] = [await CatalogFixture.create(), await CatalogFixture.create()];
  await fixture.define("greet", grant(team, "patch"));
  await other.define("wave", grant(team, "delete"));
  const first = new Rival(fixture, fixture.account, "team-a");
  const second = new Rival(other, fixture.account, "team-b");
  const { arrived, open, pass } = gate();
  first.before = (request) => (request.path.includes("/roles/") ? pass() : Promise.resolve());
  const winner = first.deploy();
  await arrived;
  second.clock.still = true;
  const next = second.deploy();
  await vi.waitFor(
    () => expect(second.waited).toEqual([expect.stringMatching(/^rival, .*, of the set team-a$/)]),
    30_000,
  );
  expect(second.writes).toEqual([]);
  open();
  await winner;
  await next;
  const sets = (await fixture.bodies()).map(({ name, labels }) => [
    /greet|wave/.exec(name)?.[0],
    labels["watchfire.dev/set"],
  ]);
  expect(new Set(sets.map(String))).toEqual(new Set(["greet,team-a", "wave,team-b", ",team-a", ",team-b", ","]));
});

test("a takeover that the network leaves gives back what it labelled, or is finished by the next", async () => {
  const { fixture, first } = await two();
  await first.deploy();
  for (const { path } of await fixture.bodies()) {
    await admin.patch(path, { metadata: { labels: { "watchfire.dev/set": null } } });
  }
  const labels = async () => new Set((await fixture.bodies()).map(({ labels: each }) => each["watchfire.dev/set"]));
  const failsAt = (isIt: (request: KubeRequest) => boolean) => {
    const rival = new Rival(fixture, fixture.account, "team-a");
    let left = 1;
    rival.before = async (request) => {
      if (isIt(request) && left-- > 0) throw new Error("reset");
    };
    return rival.deploy();
  };
  const former = await fixture.index();
  await expect(failsAt(({ path }) => path.includes("/rolebindings/"))).rejects.toThrow("reset");
  expect([await labels(), await fixture.index()]).toEqual([new Set([undefined]), former]);
  // The write of the new index may have arrived.
  await expect(failsAt(({ body }) => String(body).includes("functions.json"))).rejects.toThrow("reset");
  expect(await fixture.index()).toEqual(former);
  await new Rival(fixture, fixture.account, "team-a").deploy();
  expect([await labels(), (await fixture.index()).functions]).toEqual([new Set(["team-a", undefined]), []]);
});
