import { spawn } from "node:child_process";
import { existsSync, globSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { stageForTest, unstoppable } from "./stage.ts";

const root = resolve(import.meta.dirname, "../..");

async function executorPid(stage: ReturnType<typeof stageForTest>): Promise<number> {
  await stage.load("f", "export default () => {};");
  await stage.run("f");
  const [executor] = await stage.sandbox.executors();
  return executor?.pid ?? expect.unreachable("no executor runs");
}

const alive = (pid: number) => existsSync(`/proc/${pid}`) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));

describe.runIf(existsSync("/proc/self/environ"))("an executor process", () => {
  it("has an empty environment but for the time zone, the root as its folder, and one stream", async () => {
    const pid = await executorPid(stageForTest());
    expect(readFileSync(`/proc/${pid}/environ`, "latin1")).toBe("TZ=UTC\0");
    expect(readlinkSync(`/proc/${pid}/cwd`)).toBe("/");
    const inherited = readdirSync(`/proc/${pid}/fd`)
      .map((fd) => [fd, readlinkSync(`/proc/${pid}/fd/${fd}`)] as const)
      .filter(([fd, target]) => Number(fd) <= 3 || target.startsWith("/"));
    expect(
      inherited.filter(([, target]) => target !== "/dev/null").map(([fd, target]) => [fd, target.split(":")[0]]),
    ).toEqual([["3", "socket"]]);
  });

  it("runs under Node's permission model, with the flags that isolates need", async () => {
    const pid = await executorPid(stageForTest());
    const args = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    expect(args).toEqual(
      expect.arrayContaining(["--permission", "--no-node-snapshot", "--no-concurrent-recompilation"]),
    );
    expect(args.filter((arg) => /allow-(fs-write|child|worker)/.test(arg))).toEqual([]);
    expect(args).not.toContain("--allow-fs-read=*");
    expect(args[0]).toBe("watchfire executor");
  });

  it("ends when its parent is killed, whatever its isolates do", async () => {
    const script = join(import.meta.dirname, "orphan.program.ts");
    const parent = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "inherit"] });
    const pid = await new Promise<number>((found) => parent.stdout.once("data", (text) => found(Number(text))));
    expect(alive(pid)).toBe(true);
    parent.kill("SIGKILL");
    await expect.poll(() => alive(pid), { timeout: 5000 }).toBe(false);
  });
});

describe("the sandbox", () => {
  it("runs events again, uncounted, whose executor another hand killed while none was inside", async () => {
    const stage = stageForTest();
    const pid = await executorPid(stage);
    await stage.load("waits", `export default (e, ctx) => ctx.kube.get({ apiVersion: "v1", kind: "Pod", name: "a" });`);
    stage.answer = () => new Promise(() => {});
    const waiting = stage.run("waits");
    await expect.poll(() => stage.calls.length).toBe(1);
    process.kill(pid, "SIGKILL");
    expect(await waiting).toEqual({ type: "interrupted" });
    expect(await stage.run("f")).toMatchObject({ type: "ok" });
    expect(await stage.run("f")).toMatchObject({ type: "ok" });
    const states = ["waits", "f"].map((name) => stage.sandbox.status(name));
    expect(states.map((state) => [state?.kills, state?.state === "quarantined"])).toEqual([
      [0, false],
      [0, false],
    ]);
  });

  it("lets a function that brought two executors down stand still, keeps it away from the others until its code changes, and says so", async () => {
    const stage = stageForTest();
    await stage.load("calm", "export default () => {};");
    await stage.load("bomb", unstoppable, { cpuMs: 200 });
    const endings: unknown[] = [];
    for (let run = 0; run < 2; run++) {
      const outcome = await stage.runToDeath("bomb");
      endings.push(outcome.type === "failed" ? outcome.error.code : outcome.type);
    }
    expect(endings).toEqual(["WF_SANDBOX_CPU_BUDGET", "WF_SANDBOX_CPU_BUDGET"]);
    const stands = { state: "parked", kills: 2, detail: /^runs again in \d+ s: it brought 2 executors down$/ };
    expect(stage.sandbox.status("bomb")).toMatchObject(stands);
    expect(stage.sandbox.parked()).toMatchObject([{ name: "bomb" }]);
    // It is not run, and no attempt of it counts.
    expect(await stage.run("bomb")).toEqual({ type: "interrupted" });
    await expect
      .poll(() => stage.sandbox.status("bomb"), { timeout: 10_000 })
      .toMatchObject({ state: "quarantined", kills: 2, detail: /^runs alone until its code changes/ });
    expect(stage.sandbox.parked()).toEqual([]);
    expect((await stage.run("calm")).type).toBe("ok");
    expect(stage.sandbox.status("calm")).toMatchObject({ state: "ready", kills: 0 });
    await stage.load("bomb", "export default () => {};");
    expect(stage.sandbox.status("bomb")).toMatchObject({ state: "ready", kills: 0 });
    // The shared executor and the spare are left; quarantine's own has ended.
    await expect.poll(async () => (await stage.sandbox.executors()).length, { timeout: 5000 }).toBe(2);
  });

  it("runs an event again, uncounted, that its executor did not finish before it ended itself for another's sake", async () => {
    const stage = stageForTest();
    await stage.load("waits", `export default (e, ctx) => ctx.kube.get({ apiVersion: "v1", kind: "Pod", name: "a" });`);
    await stage.load("bomb", unstoppable, { cpuMs: 200 });
    stage.answer = () => new Promise(() => {});
    const waiting = stage.run("waits", { timeoutMs: 60_000 });
    await expect.poll(() => stage.calls.length).toBe(1);
    expect((await stage.runToDeath("bomb")).type).toBe("failed");
    expect(await waiting).toEqual({ type: "interrupted" });
    stage.answer = () => ({ ok: true, json: "{}" });
    expect((await stage.run("waits")).type).toBe("ok");
    expect(stage.deaths).toMatchObject([{ reason: "stuck" }]);
  });

  it("names the line of a loop that does not end", async () => {
    const stage = stageForTest();
    await stage.load("spin", "export default () => {\n  let turns = 0;\n  while (true) {\n    turns++;\n  }\n};", {
      cpuMs: 200,
    });
    const outcome = await stage.run("spin");
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
    for (const file of globSync("runtime/**/*.host.ts", { cwd: root })) visit(join(root, file));
    expect([...seen].some((file) => file.endsWith("pool.host.ts"))).toBe(true);
  });
});
