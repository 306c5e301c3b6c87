import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { ownConfinement } from "../../runtime/sandbox/executor-program.ts";
import { ExecutorProcess } from "../../runtime/sandbox/host/executor-process.ts";
import { SupervisorClient } from "../../runtime/sandbox/host/supervisor-client.ts";
import { maxSupervisorFrame, start, supervisorFrame } from "../../runtime/sandbox/supervisor/frames.ts";
import { Supervisor } from "../../runtime/sandbox/supervisor/supervisor.ts";
import { encodeFrame, FrameReader } from "../../runtime/sandbox/wire.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { fixtureForTest } from "./fixture.ts";

const cli = resolve(import.meta.dirname, "../../runtime/bin/watchfire.js");
const quiet = { info: () => {}, warn: () => {}, error: () => {} };

async function socketForTest() {
  const folder = mkdtempSync(join(tmpdir(), "watchfire-supervisor-"));
  const path = join(folder, "executors.sock");
  const errors: unknown[] = [];
  const parent = await SupervisorClient.listen(path, { ...quiet, error: (fields: object) => void errors.push(fields) });
  onTestFinished(() => {
    parent.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return { path, parent, errors };
}

function startSupervisor(path: string) {
  const child = spawn(process.execPath, [cli, "executor", "--socket", path], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

// A supervisor whose executors have no separate user, and which is not process 1, cannot ensure that all their children end.
const mayComeAgain = ownConfinement().rights.user === "separate";
if (!mayComeAgain)
  process.stdout.write(
    "skipped: a supervisor that comes again; it takes root and a checkout that every user may read\n",
  );

/** The children of a process, by /proc. */
const childrenOf = (pid: number | undefined): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);

/** True if a process runs; a zombie does not. */
function isAlive(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}

const isExecutor = (pid: number): boolean =>
  readFileSync(`/proc/${pid}/cmdline`, "utf8").startsWith("watchfire executor\0");

describe.runIf(existsSync("/proc/self/task"))("executors in a container of their own", () => {
  it("run handlers over the socket, as children do", async () => {
    const { path, parent } = await socketForTest();
    const fixture = fixtureForTest({ launch: parent.launch });
    const loading = fixture.load("f", "export default (e, ctx) => ctx.log.info(e.object.data.n);");
    startSupervisor(path);
    await loading;
    expect((await fixture.run("f")).type).toBe("ok");
    expect(fixture.logs.map((line) => line.message)).toEqual(["1"]);
  });

  it("are killed over their memory cap by their supervisor, and the culprit is charged", async () => {
    const { path, parent } = await socketForTest();
    startSupervisor(path);
    const fixture = fixtureForTest({ launch: parent.launch });
    await fixture.load("calm", "export default () => {};");
    const code = `export default () => { const all = []; for (;;) all.push("\u1e9b".repeat(1e7).normalize("NFKD")); };`;
    await fixture.load("bomb", code, { cpuMs: 20_000, memoryMb: 8 });
    const outcome = await fixture.run("bomb", { timeoutMs: 30_000 });
    expect(outcome).toMatchObject({ type: "failed" });
    expect((await fixture.run("calm")).type).toBe("ok");
    expect(fixture.sandbox.status("calm")).toMatchObject({ kills: 0 });
  });

  it.runIf(mayComeAgain)(
    "end with their supervisor, which serves one parent; the next supervisor is taken as a new one",
    async () => {
      const { path, parent } = await socketForTest();
      const first = startSupervisor(path);
      const fixture = fixtureForTest({ launch: parent.launch });
      await fixture.load("f", "export default () => {};");
      expect((await fixture.run("f")).type).toBe("ok");
      expect(parent.trouble).toBeUndefined();
      const executors = childrenOf(first.pid);
      expect(executors.length).toBeGreaterThan(0);
      first.kill("SIGKILL");
      await expect.poll(() => executors.filter(isAlive), { timeout: 5000 }).toEqual([]);
      await expect.poll(() => parent.trouble?.code).toBe("WF_SANDBOX_NO_WARDEN");
      startSupervisor(path);
      await expect.poll(async () => (await fixture.run("f")).type, { timeout: 15_000 }).toBe("ok");
      expect(parent.trouble).toBeUndefined();
    },
  );

  it("are gone with their parent, and so is their supervisor", async () => {
    const { path, parent } = await socketForTest();
    const supervisor = startSupervisor(path);
    const ended = new Promise((resolve) => supervisor.once("exit", (code, signal) => resolve(signal ?? code)));
    const fixture = fixtureForTest({ launch: parent.launch });
    await fixture.load("f", "export default () => {};");
    const executors = childrenOf(supervisor.pid);
    parent.close();
    expect(await ended).toBe(0);
    await expect.poll(() => executors.filter(isAlive), { timeout: 5000 }).toEqual([]);
  });

  it("let handlers finish when their supervisor is told to stop, and end with the parent's last word", async () => {
    const { path, parent } = await socketForTest();
    const supervisor = startSupervisor(path);
    const ended = new Promise((resolve) => supervisor.once("exit", (code, signal) => resolve(signal ?? code)));
    const fixture = fixtureForTest({ launch: parent.launch });
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
    fixture.answer = async () => {
      await answered;
      return { ok: true, json: "{}" };
    };
    await fixture.load("f", `export default (e, ctx) => ctx.kube.get({ apiVersion: "v1", kind: "Pod", name: "p" });`);
    const outcome = fixture.run("f");
    await expect.poll(() => fixture.calls.length).toBe(1);
    const executors = childrenOf(supervisor.pid);
    supervisor.kill("SIGTERM");
    // If the supervisor had taken it for its end, it could not load this.
    await fixture.load("g", "export default () => {};");
    expect((await fixture.run("g")).type).toBe("ok");
    answer();
    expect((await outcome).type).toBe("ok");
    expect(fixture.deaths).toEqual([]);
    parent.close();
    expect(await ended).toBe(0);
    await expect.poll(() => executors.filter(isAlive)).toEqual([]);
  });

  it("do not hold their supervisor up for ever: it waits for the parent so long and no longer", async () => {
    const { path, parent } = await socketForTest();
    const stopping = new AbortController();
    const clock = new VirtualClock();
    let isOver = false;
    const served = new Supervisor(path, clock).serve(stopping.signal).then(() => (isOver = true));
    const fixture = fixtureForTest({ launch: parent.launch });
    await fixture.load("f", "export default () => {};");
    stopping.abort();
    await clock.advance(29_000);
    expect((await fixture.run("f")).type).toBe("ok");
    expect(isOver).toBe(false);
    await clock.advance(1000);
    await served;
  });

  it("leave a supervisor that no parent has at once", async () => {
    const stopping = new AbortController();
    const served = new Supervisor(join(tmpdir(), "watchfire-no-such.sock"), new VirtualClock()).serve(stopping.signal);
    stopping.abort();
    await served;
  });

  it("end with their container where the kernel kills one for its memory, and the others' events are not charged", async () => {
    const { path, parent } = await socketForTest();
    let kills = 0;
    const served = new Supervisor(path, new VirtualClock(), () => kills).serve(new AbortController().signal);
    const refused = expect(served).rejects.toThrow("WF_SANDBOX_CONTAINER_MEMORY");
    const fixture = fixtureForTest({ launch: parent.launch });
    await fixture.load("glutton", "export default () => new Promise(() => {});");
    const eating = fixture.run("glutton", { timeoutMs: 30_000 });
    const before = childrenOf(process.pid).filter(isExecutor);
    await expect.poll(() => before.length).toBeGreaterThan(0);
    kills = 1;
    for (const pid of before) process.kill(pid, "SIGKILL");
    expect(await eating).toMatchObject({ type: "interrupted" });
    await refused;
  });

  it.runIf(mayComeAgain)(
    "have their key beside the socket only while a supervisor is awaited, for its owner and group alone",
    async () => {
      const { path, parent } = await socketForTest();
      expect(statSync(`${path}.key`).mode & 0o777).toBe(0o640);
      expect(statSync(path).mode & 0o777).toBe(0o660);
      const supervisor = startSupervisor(path);
      const fixture = fixtureForTest({ launch: parent.launch });
      await fixture.load("f", "export default () => {};");
      expect(existsSync(`${path}.key`)).toBe(false);
      supervisor.kill("SIGKILL");
      await expect.poll(() => existsSync(`${path}.key`), { timeout: 5000 }).toBe(true);
    },
  );
});

const frame = (type: number, header: unknown) => Buffer.concat(encodeFrame(type, header));

/** The rights that an unmodified supervisor finds in the chart's container. */
const rights = {
  user: "same",
  pidNamespace: "own",
  memory: "sealed",
  newPrivileges: "none",
  endsWithStarter: "kernel",
  nice: 5,
  oomScoreAdj: null,
  permissionModel: true,
  socketFolder: "read-only",
};

/** Opens a connection and sends bytes; `closed` resolves with its end. */
function speak(path: string, bytes: Buffer) {
  const socket = connect(path);
  socket.on("error", () => {});
  socket.resume();
  socket.write(bytes);
  onTestFinished(() => void socket.destroy());
  return { socket, closed: new Promise((closed) => socket.once("close", closed)) };
}

/** A supervisor that was accepted as one. */
async function attached(path: string, over: object = {}, memory?: number) {
  const key = readFileSync(`${path}.key`, "utf8");
  const greet = frame(supervisorFrame.greet, { key, rights: { ...rights, ...over }, memory, cores: 2 });
  const supervisor = speak(path, greet);
  await expect.poll(() => existsSync(`${path}.key`)).toBe(false);
  return { ...supervisor, greet };
}

test("the container's memory limit is known once its supervisor has greeted with it", async () => {
  const { path, parent } = await socketForTest();
  expect(parent.memoryLimit).toBeUndefined();
  await attached(path, {}, 2 ** 30);
  expect(parent.memoryLimit).toBe(2 ** 30);
});

test("a link that was paused before its executor joined tells nothing until it is resumed", async () => {
  const { path, parent } = await socketForTest();
  const { socket: supervisor } = await attached(path);
  const reader = new FrameReader(maxSupervisorFrame);
  const { promise: asked, resolve: ask } = Promise.withResolvers<unknown>();
  supervisor.on("data", (chunk: Buffer) => {
    for (const each of reader.push(chunk)) if (each.type === supervisorFrame.start) ask(JSON.parse(each.header));
  });
  let heard = "";
  const link = parent.launch({ opened: () => {}, data: (chunk) => (heard += chunk), ended: () => {} });
  link.pause();
  const { id, token } = start.parse(await asked);
  const words = Buffer.concat([frame(supervisorFrame.join, { id, token }), Buffer.from("words")]);
  const { socket: executor } = speak(path, words);
  // Once the parent's answer arrives, it has had a turn for the message that was sent with the greeting.
  const answered = new Promise((resolve) => executor.once("data", resolve));
  link.write(Buffer.from("answer"));
  await answered;
  expect(heard).toBe("");
  link.resume();
  await expect.poll(() => heard).toBe("words");
});

describe("the parent hangs up on", () => {
  it.each([
    ["a supervisor with a wrong key", frame(supervisorFrame.greet, { key: "0".repeat(64), rights })],
    ["an executor with a token of its own making", frame(supervisorFrame.join, { id: 1, token: "0".repeat(64) })],
    ["an executor with no token", frame(supervisorFrame.join, {})],
    ["a frame that is too long", Buffer.from([0xff, 0xff, 0xff, 0x7f, 0])],
    ["bytes that are no frame", Buffer.from("GET / HTTP/1.1\r\n\r\n")],
  ])("%s", async (_, bytes) => {
    const { path } = await socketForTest();
    await speak(path, bytes).closed;
    expect(existsSync(`${path}.key`)).toBe(true);
  });

  it.each<[string, (greet: Buffer) => Buffer]>([
    ["another that greets, though it knew the key", (greet) => greet],
    ["an executor with a token of its own making", () => frame(supervisorFrame.join, { id: 1, token: "0".repeat(64) })],
    ["one that speaks as no executor does", () => Buffer.from("GET / HTTP/1.1\r\n\r\n")],
  ])("the supervisor as well, and all executors with it, beside %s", async (_, words) => {
    const { path, parent, errors } = await socketForTest();
    const supervisor = await attached(path);
    const ends: string[] = [];
    parent.launch({ opened: () => {}, data: () => {}, ended: (reason) => void ends.push(reason) });
    await speak(path, words(supervisor.greet)).closed;
    await supervisor.closed;
    expect(errors).toMatchObject([{ code: "WF_SANDBOX_IMPOSTOR" }]);
    expect(ends).toEqual(["exited"]);
    expect(parent.trouble?.code).toBe("WF_SANDBOX_NO_WARDEN");
  });

  it("the supervisor as well, where guests hold so many connections that no executor could join", async () => {
    const { path, parent, errors } = await socketForTest();
    const supervisor = await attached(path);
    for (let count = 0; count < 70; count++) speak(path, Buffer.alloc(0));
    await supervisor.closed;
    expect(errors).toMatchObject([{ code: "WF_SANDBOX_IMPOSTOR" }]);
    expect(parent.trouble?.code).toBe("WF_SANDBOX_NO_WARDEN");
  });

  it("a connection that says nothing for five seconds, and nobody else for its sake", async () => {
    const { path, parent } = await socketForTest();
    const supervisor = await attached(path);
    await speak(path, Buffer.alloc(0)).closed;
    expect(supervisor.socket.destroyed).toBe(false);
    expect(parent.trouble).toBeUndefined();
  }, 20_000);

  it("an executor that a supervisor was asked for, and that never comes", async () => {
    const { path, parent } = await socketForTest();
    await attached(path);
    const clock = new VirtualClock();
    const deaths: string[] = [];
    const settings = { guest: "", clock, launch: parent.launch, idleMs: 1, recycleEvents: 1 };
    const listener = { frame: () => {}, room: () => {}, died: (reason: string) => void deaths.push(reason) };
    new ExecutorProcess({ ...settings, listener });
    await clock.advance(60_000);
    await expect.poll(() => deaths, { timeout: 3000 }).toEqual(["silent"]);
  });

  it.each([
    ["it was no first process", { pidNamespace: "shared" }],
    ["its memory could be read", { memory: "readable" }],
  ])("every supervisor that comes after one whose guests may live on, since %s", async (_, over) => {
    const { path, parent } = await socketForTest();
    const supervisor = await attached(path, over);
    supervisor.socket.destroy();
    await expect.poll(() => parent.trouble?.code).toBe("WF_SANDBOX_WARDEN_LOST");
    await speak(path, supervisor.greet).closed;
    expect(parent.trouble?.code).toBe("WF_SANDBOX_WARDEN_LOST");
    expect(existsSync(`${path}.key`)).toBe(false);
  });

  it("nobody else: a file that lies where the socket should be is replaced", async () => {
    const folder = mkdtempSync(join(tmpdir(), "watchfire-supervisor-"));
    const path = join(folder, "s");
    writeFileSync(path, "");
    (await SupervisorClient.listen(path, quiet)).close();
    await expect(SupervisorClient.listen(join(folder, "missing", "s"), quiet)).rejects.toThrow("WF_SANDBOX_EXECUTOR");
    rmSync(folder, { recursive: true });
  });
});
