import { rmSync } from "node:fs";
import { dirname } from "node:path";
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { SupervisorClient } from "../../runtime/sandbox/host/supervisor-client.ts";
import { fixtureForTest, type SandboxFixture } from "../sandbox/fixture.ts";
import { until } from "../tools/until.ts";
import { ExecutorContainer, imagesNode, socketFolder, whyNot } from "./container.ts";

// Two lurking processes use both cores of a small machine.
vi.setConfig({ testTimeout: 60_000 });
if (whyNot !== undefined) process.stdout.write(`skipped: a guest in the executors' container; ${whyNot}\n`);
const node = whyNot === undefined ? imagesNode() : "";
afterAll(() => rmSync(dirname(node), { recursive: true, force: true }));

interface Pod {
  readonly container: ExecutorContainer;
  readonly parent: SupervisorClient;
  readonly fixture: SandboxFixture;
  readonly errors: { code?: string }[];
  readonly restart: () => ExecutorContainer;
}

/** A parent and a separate container, with a function that has a secret. */
async function pod(): Promise<Pod> {
  const socket = socketFolder();
  const errors: { code?: string }[] = [];
  const log = { info: () => {}, warn: () => {}, error: (fields: object) => void errors.push(fields) };
  const parent = await SupervisorClient.listen(socket, log);
  onTestFinished(() => parent.close());
  const fixture = fixtureForTest({ launch: parent.launch });
  const container = new ExecutorContainer(node, socket);
  await fixture.load("victim", "export default (e, ctx) => ctx.log.info(ctx.env.TOKEN);", { env: { TOKEN: "secret" } });
  expect((await fixture.run("victim")).type).toBe("ok");
  return { container, parent, fixture, errors, restart: () => new ExecutorContainer(node, socket) };
}

describe.runIf(whyNot === undefined)("a guest that has left its isolate, in the executors' container", () => {
  it("finds the walls that the warden says there are", async () => {
    const { parent } = await pod();
    expect(parent.rights).toMatchObject({
      user: "same",
      pidNamespace: "own",
      memory: "sealed",
      newPrivileges: "none",
      endsWithStarter: "kernel",
      socketFolder: "read-only",
    });
  });

  it("can neither end, stop, debug nor read the warden or another executor, and finds no key", async () => {
    const { container, fixture, parent } = await pod();
    const deeds = ["kill", "stop", "count", "environ", "memory", "descriptors", "inspector", "key", "replace", "plant"];
    const guest = await container.invade(...deeds);
    await guest.did("plant");
    const { count, environ, memory, descriptors, inspector, key, replace, plant } = guest.gained;
    expect(count).toBeGreaterThanOrEqual(2); // at least the supervisor and an executor
    for (const gained of [environ, memory, descriptors]) {
      expect(new Set(gained as unknown[])).toEqual(new Set(["EACCES"]));
    }
    expect(inspector).toBe(false);
    expect([key, replace, plant]).toEqual(["ENOENT", "EACCES", "EACCES"]);
    expect((await fixture.run("victim")).type).toBe("ok");
    expect(parent.trouble).toBeUndefined();
    expect(fixture.deaths).toEqual([]);
  });

  it("ends with the whole container once it connects, uncharged to anybody; what ran runs again in the next one", async () => {
    const { container, fixture, parent, errors, restart } = await pod();
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
    fixture.answer = async () => {
      await answered;
      return { ok: true, json: "{}" };
    };
    await fixture.load(
      "waits",
      `export default (e, ctx) => ctx.kube.get({ apiVersion: "v1", kind: "Pod", name: "a" });`,
    );
    const outcome = fixture.run("waits", { timeoutMs: 60_000 });
    await until("the handler waits", 5000, async () => fixture.calls.length === 1);
    const lurker = await container.invade("count", "lurk");
    await lurker.did("count");
    const guest = await container.invade("greet", "lurk");
    expect(await outcome).toEqual({ type: "interrupted" });
    await Promise.all([container.ended, guest.ended, lurker.ended]);
    expect(errors.map(({ code }) => code)).toEqual(["WF_SANDBOX_IMPOSTOR"]);
    expect(parent.trouble?.code).toBe("WF_SANDBOX_NO_WARDEN");
    answer();
    restart();
    expect((await fixture.run("waits")).type).toBe("ok");
    expect((await fixture.run("victim")).type).toBe("ok");
    expect(lurker.gained).toEqual({ count: expect.any(Number) });
    // The supervisor may end the process before it could report that its greeting was not answered.
    expect([{}, { greet: null }]).toContainEqual(guest.gained);
    expect(fixture.sandbox.status("waits")).toMatchObject({ kills: 0 });
  });

  it("sees no key when the warden dies of something else, however fast it looks", async () => {
    const { container, fixture, restart } = await pod();
    const lurker = await container.invade("count", "lurk");
    await lurker.did("count");
    container.kill();
    await Promise.all([container.ended, lurker.ended]);
    restart();
    expect((await fixture.run("victim")).type).toBe("ok");
    expect(lurker.gained).toEqual({ count: expect.any(Number) });
  });
});
