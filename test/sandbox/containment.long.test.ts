import { spawn } from "node:child_process";
import { existsSync, globSync, openSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { getPriority } from "node:os";
import { dirname, join, resolve } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { run } from "../../runtime/engine/delivery/delivery.ts";
import { childRights, executorProgram } from "../../runtime/sandbox/executor-program.ts";
import { launchChild } from "../../runtime/sandbox/host/child-link.ts";
import { fixtureForTest, unstoppable } from "./fixture.ts";

const root = resolve(import.meta.dirname, "../..");

async function executorPid(fixture: ReturnType<typeof fixtureForTest>): Promise<number> {
  await fixture.load("f", "export default () => {};");
  await fixture.run("f");
  const [executor] = await fixture.sandbox.executors();
  return executor?.pid ?? expect.unreachable("no executor runs");
}

const alive = (pid: number) => existsSync(`/proc/${pid}`) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));

describe.runIf(existsSync("/proc/self/environ"))("an executor process", () => {
  it("has an empty environment but for the time zone and settings of malloc, the root as its folder, one stream, and a standard error of which the start is read", async () => {
    const pid = await executorPid(fixtureForTest());
    expect(readFileSync(`/proc/${pid}/environ`, "latin1")).toBe(
      "TZ=UTC\0MALLOC_ARENA_MAX=2\0MALLOC_TRIM_THRESHOLD_=131072\0",
    );
    expect(readlinkSync(`/proc/${pid}/cwd`)).toBe("/");
    const inherited = readdirSync(`/proc/${pid}/fd`)
      .map((fd) => [fd, readlinkSync(`/proc/${pid}/fd/${fd}`)] as const)
      .filter(([fd, target]) => Number(fd) <= 3 || target.startsWith("/"));
    expect(
      inherited.filter(([, target]) => target !== "/dev/null").map(([fd, target]) => [fd, target.split(":")[0]]),
    ).toEqual([
      ["2", "socket"],
      ["3", "socket"],
    ]);
  });

  it("runs under Node's permission model, with the flags that isolates need", async () => {
    const pid = await executorPid(fixtureForTest());
    expect(readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")[0]).toBe("watchfire executor");
    // It has overwritten its arguments with its name, and would have refused to start without these.
    const { flags } = executorProgram();
    expect(flags).toEqual(expect.arrayContaining(["--permission", "--no-node-snapshot", "--single-threaded"]));
    expect(flags.filter((flag) => /allow-(fs-write|child|worker)/.test(flag))).toEqual([]);
    expect(flags).not.toContain("--allow-fs-read=*");
  });

  it("ends when its parent is killed, whatever its isolates do", async () => {
    const script = join(import.meta.dirname, "orphan.program.ts");
    const parent = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "inherit"] });
    const pid = await new Promise<number>((found) => parent.stdout.once("data", (text) => found(Number(text))));
    expect(alive(pid)).toBe(true);
    parent.kill("SIGKILL");
    await expect.poll(() => alive(pid), { timeout: 5000 }).toBe(false);
  });

  it.each(["kernel", "thread"])(
    "ends when its parent is killed though its main thread is stuck, by a %s",
    async (by) => {
      const script = join(import.meta.dirname, "stuck-parent.program.ts");
      const parent = spawn(process.execPath, [script, by], { stdio: ["ignore", "pipe", "inherit"] });
      const said = await new Promise<Buffer>((found) => parent.stdout.once("data", found));
      const [pid, how] = String(said).trim().split(" ");
      onTestFinished(() => void (alive(Number(pid)) && process.kill(Number(pid), "SIGKILL")));
      // Without setpriv, a thread takes the place of the kernel's signal.
      if (existsSync("/usr/bin/setpriv")) expect(how).toBe(by);
      expect(alive(Number(pid))).toBe(true);
      parent.kill("SIGKILL");
      await expect.poll(() => alive(Number(pid)), { timeout: 5000 }).toBe(false);
    },
  );

  it("has less rights than its parent: what the platform gives, and the status says", async () => {
    const pid = await executorPid(fixtureForTest());
    const rights = childRights();
    const status = readFileSync(`/proc/${pid}/status`, "latin1");
    const nice = Number(readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ")[16]);
    expect(rights).toMatchObject({ nice, permissionModel: true, jit: true });
    expect(nice).toBeGreaterThan(getPriority());
    expect(Number(readFileSync(`/proc/${pid}/oom_score_adj`, "latin1"))).toBe(rights.oomScoreAdj);
    expect(/^NoNewPrivs:\s*1$/m.test(status)).toBe(rights.newPrivileges === "none");
    expect(/^Umask:\s*0077$/m.test(status)).toBe(true);
    const uid = Number(status.match(/^Uid:\s*(\d+)/m)?.[1]);
    expect(rights.user).toBe(uid === process.getuid?.() ? "same" : "separate");
    if (rights.user === "separate") {
      expect(status).toMatch(new RegExp(`^Gid:\\s*${uid}\\s+${uid}\\s+${uid}\\s+${uid}$`, "m"));
      expect(status).toMatch(/^Groups:\s*$/m);
      expect(status).toMatch(/^CapEff:\s*0+$/m);
    }
  });

  it("keeps no descriptor of its parent's, though the parent has one that is inherited", async () => {
    const script = join(import.meta.dirname, "orphan.program.ts");
    const stdio = ["ignore", "pipe", "inherit", "ignore", "ignore", openSync(import.meta.filename, "r")] as const;
    const parent = spawn(process.execPath, [script], { stdio: [...stdio] });
    const pid = await new Promise<number>((found) => parent.stdout?.once("data", (text) => found(Number(text))));
    const files = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
    expect(files).not.toContain(import.meta.filename);
    parent.kill("SIGKILL");
    await expect.poll(() => alive(pid), { timeout: 5000 }).toBe(false);
  });

  it("compiles no machine code with --jitless, and runs handlers all the same", async () => {
    const fixture = fixtureForTest({ launch: launchChild(executorProgram({ jitless: true })) });
    const pid = await executorPid(fixture);
    // V8 puts compiled code into memory that is writable and executable.
    const compiled = (pid: number) => /^\S+ rwxp/m.test(readFileSync(`/proc/${pid}/maps`, "latin1"));
    expect([compiled(pid), compiled(await executorPid(fixtureForTest()))]).toEqual([false, true]);
    expect((await fixture.run("f")).type).toBe("ok");
  });
});

describe("the sandbox", () => {
  it("runs events again, uncounted, whose executor another hand killed while none was inside", async () => {
    const fixture = fixtureForTest();
    const pid = await executorPid(fixture);
    await fixture.load(
      "waits",
      `export default (e, ctx) => ctx.kube.get({ apiVersion: "v1", kind: "Pod", name: "a" });`,
    );
    fixture.answer = () => new Promise(() => {});
    const waiting = fixture.run("waits");
    await expect.poll(() => fixture.calls.length).toBe(1);
    process.kill(pid, "SIGKILL");
    expect(await waiting).toEqual({ type: "interrupted" });
    expect(await fixture.run("f")).toMatchObject({ type: "ok" });
    expect(await fixture.run("f")).toMatchObject({ type: "ok" });
    const states = ["waits", "f"].map((name) => fixture.sandbox.status(name));
    expect(states.map((state) => [state?.kills, state?.state === "quarantined"])).toEqual([
      [0, false],
      [0, false],
    ]);
  });

  it("names a function by its own name where it runs in shards", async () => {
    const kills: string[] = [];
    const observer = { executorDied: () => {}, functionKilled: (name: string) => kills.push(name) };
    const fixture = fixtureForTest({ observer });
    await fixture.load("bomb", unstoppable, { cpuMs: 200, instance: "bomb@3" });
    const shard = fixture.sandbox.instances((name) => `${name}@3`);
    for (const count of [1, 2]) {
      await run(shard, fixture.delivery("bomb", { timeoutMs: 30_000 }));
      await expect.poll(() => kills.length, { timeout: 10_000 }).toBe(count);
    }
    expect(kills).toEqual(["bomb", "bomb"]);
    expect(fixture.sandbox.parked()).toMatchObject([{ name: "bomb" }]);
  });

  it("lets a function that brought two executors down stand still, keeps it away from the others until its code changes, and says so", async () => {
    const fixture = fixtureForTest();
    await fixture.load("calm", "export default () => {};");
    await fixture.load("bomb", unstoppable, { cpuMs: 200 });
    const endings: unknown[] = [];
    for (let run = 0; run < 2; run++) {
      const outcome = await fixture.runToDeath("bomb");
      endings.push(outcome.type === "failed" ? outcome.error.code : outcome.type);
    }
    expect(endings).toEqual(["WF_SANDBOX_CPU_BUDGET", "WF_SANDBOX_CPU_BUDGET"]);
    const stands = { state: "parked", kills: 2, detail: /^runs again in \d+ s: it brought 2 executors down$/ };
    expect(fixture.sandbox.status("bomb")).toMatchObject(stands);
    expect(fixture.sandbox.parked()).toMatchObject([{ name: "bomb" }]);
    // It is not run, and no attempt is counted.
    expect(await fixture.run("bomb")).toEqual({ type: "interrupted" });
    await expect
      .poll(() => fixture.sandbox.status("bomb"), { timeout: 10_000 })
      .toMatchObject({ state: "quarantined", kills: 2, detail: /^runs alone until its code changes/ });
    expect(fixture.sandbox.parked()).toEqual([]);
    expect((await fixture.run("calm")).type).toBe("ok");
    expect(fixture.sandbox.status("calm")).toMatchObject({ state: "ready", kills: 0 });
    await fixture.load("bomb", "export default () => {};");
    expect(fixture.sandbox.status("bomb")).toMatchObject({ state: "ready", kills: 0 });
    // The shared executor and the spare are left; that of quarantine has ended.
    await expect.poll(async () => (await fixture.sandbox.executors()).length, { timeout: 5000 }).toBe(2);
  });

  it("charges what cannot be stopped to the module that left it behind a loop", { timeout: 60_000 }, async () => {
    const fixture = fixtureForTest();
    await fixture.load("calm", "export default () => {};");
    const left = "Promise.resolve().then(() => (3n ** (10n ** 8n)).toString().length);";
    // If V8's timer is late, the watchdog removes the isolate before it runs the remaining code.
    while (fixture.deaths.length === 0)
      await expect(fixture.load("bomb", `${left} for (;;); export default () => {};`)).rejects.toThrow();
    for (const death of fixture.deaths) expect(death).toEqual({ reason: "stuck", culprits: ["bomb"] });
    expect(fixture.sandbox.status("calm")?.kills).toBe(0);
  });

  it("runs an event again, uncounted, that its executor did not finish before it ended itself for another's sake", async () => {
    const fixture = fixtureForTest();
    await fixture.load(
      "waits",
      `export default (e, ctx) => ctx.kube.get({ apiVersion: "v1", kind: "Pod", name: "a" });`,
    );
    await fixture.load("bomb", unstoppable, { cpuMs: 200 });
    fixture.answer = () => new Promise(() => {});
    const waiting = fixture.run("waits", { timeoutMs: 60_000 });
    await expect.poll(() => fixture.calls.length).toBe(1);
    expect((await fixture.runToDeath("bomb")).type).toBe("failed");
    expect(await waiting).toEqual({ type: "interrupted" });
    fixture.answer = () => ({ ok: true, json: "{}" });
    expect((await fixture.run("waits")).type).toBe("ok");
    expect(fixture.deaths).toMatchObject([{ reason: "stuck" }]);
  });

  it("names the line of a loop that does not end", async () => {
    const fixture = fixtureForTest();
    await fixture.load("spin", "export default () => {\n  let turns = 0;\n  while (true) {\n    turns++;\n  }\n};", {
      cpuMs: 200,
    });
    const outcome = await fixture.run("spin");
    expect(outcome).toMatchObject({ type: "failed", error: { code: "WF_SANDBOX_CPU_BUDGET" } });
    expect(outcome.type === "failed" && outcome.error.stack).toMatch(/spin\.ts:[345]:\d+/);
  });

  it("never loads isolated-vm into the parent", () => {
    const seen = new Set<string>();
    const visit = (file: string): void => {
      if (seen.has(file) || !existsSync(file)) return;
      seen.add(file);
      const text = readFileSync(file, "utf8");
      for (const [, specifier] of text.matchAll(
        /^(?:import|export)\s(?!type\b)[^;]*?from "([^"]+)"|^import "([^"]+)"/gm,
      )) {
        if (specifier?.startsWith(".")) visit(resolve(dirname(file), specifier));
        expect(specifier, file).not.toBe("isolated-vm");
      }
    };
    for (const file of globSync("runtime/sandbox/host/*.ts", { cwd: root })) visit(join(root, file));
    expect([...seen].some((file) => file.endsWith("host/pool.ts"))).toBe(true);
  });
});
