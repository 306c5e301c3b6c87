import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type Clock, systemClock } from "../../runtime/base/clock.ts";
import { WatchfireError } from "../../runtime/base/errors.ts";
import { answerLimits, readHead } from "../../runtime/bundle/builder-answer.ts";
import { Builders } from "../../runtime/bundle/builders.ts";
import { buildMs, fileLimit, slowMs } from "../../runtime/bundle/limits.ts";
import { folderOf } from "../tools/folder.ts";
import { watchLoopLag } from "../tools/loop-lag.ts";
import { until } from "../tools/until.ts";
import { settle, VirtualClock } from "../virtual-clock.ts";

function buildersOf(folder: string, clock: Clock = systemClock): Builders {
  const builders = new Builders({ folder, clock });
  onTestFinished(() => builders.close());
  return builders;
}

async function refusal(folder: string, handler = "handler.ts"): Promise<WatchfireError> {
  const failure = await buildersOf(folder)
    .bundle({ handler: join(folder, handler) })
    .then(
      () => expect.unreachable("the build was not refused"),
      (error: unknown) => error,
    );
  expect(failure).toBeInstanceOf(WatchfireError);
  return failure as WatchfireError;
}

/** The pids of the builders that this process has started. */
function builderPids(): number[] {
  const children = execFileSync("ps", ["--ppid", String(process.pid), "-o", "pid=,args=", "ww"], { encoding: "utf8" });
  return children.split("\n").flatMap((line) => (line.includes("watchfire builder") ? Number.parseInt(line, 10) : []));
}

test("a pipe that nobody writes to, a socket and a device are refused before they are read", async () => {
  const folder = folderOf({});
  execFileSync("mkfifo", [join(folder, "pipe.ts")]);
  const server = createServer().listen(join(folder, "socket.ts"));
  onTestFinished(() => void server.close());
  symlinkSync("/dev/zero", join(folder, "zero.ts"));
  mkdirSync(join(folder, "node_modules/mild"), { recursive: true });
  execFileSync("mkfifo", [join(folder, "node_modules/mild/package.json")]);
  for (const specifier of ["./pipe.ts", "./socket.ts", "./zero.ts", "mild"]) {
    writeFileSync(join(folder, "handler.ts"), `\nimport "${specifier}";\nexport default () => {};\n`);
    const { code, detail } = await refusal(folder);
    expect([code, detail.place?.line, detail.place?.column]).toEqual(["WF_BUNDLE_NOT_A_FILE", 2, 8]);
  }
  expect((await refusal(folder, "pipe.ts")).code).toBe("WF_BUNDLE_NOT_A_FILE");
});

test("a file beyond its limit, and files beyond theirs in all, are refused unread", async () => {
  const folder = folderOf({ "handler.ts": `\nimport t from "./huge.txt";\nexport default () => t;\n` });
  writeFileSync(join(folder, "huge.txt"), "");
  truncateSync(join(folder, "huge.txt"), fileLimit + 1);
  expect(await refusal(folder)).toMatchObject({ code: "WF_BUNDLE_LIMIT", detail: { place: { line: 2, column: 15 } } });
  const names = Array.from({ length: 5 }, (_, no) => `./large${no}.txt`);
  for (const name of names) {
    writeFileSync(join(folder, name), "");
    truncateSync(join(folder, name), fileLimit);
  }
  const code = names.map((name, no) => `import t${no} from "${name}";`).join("\n");
  writeFileSync(join(folder, "handler.ts"), `${code}\nexport default () => [${names.map((_, no) => `t${no}`)}];\n`);
  expect((await refusal(folder)).code).toBe("WF_BUNDLE_LIMIT");
});

test("a build that takes more memory than it may is ended, with its processes", async () => {
  const folder = folderOf({ "good.ts": "export default () => 1;" });
  // A syntax tree is many times as large as its text.
  const code = "a.b(c,d);".repeat(1_500_000);
  const names = ["./a.ts", "./b.ts", "./c.ts", "./d.ts"];
  for (const name of names) writeFileSync(join(folder, name), `${code}\nexport {};`);
  writeFileSync(join(folder, "handler.ts"), `${names.map((name) => `import "${name}";`).join("")}export default () => {};`);
  const builders = buildersOf(folder);
  const failing = builders.bundle({ handler: join(folder, "handler.ts") });
  await expect(failing).rejects.toMatchObject({ code: "WF_BUNDLE_LIMIT", detail: { place: { file: join(folder, "handler.ts") } } });
  expect((await builders.bundle({ handler: join(folder, "good.ts") })).script).toContain("=> 1");
}, 60_000); // biome-ignore format: one claim

test("50,000 uses of an absent name are told of a hundred times, and hold up nobody meanwhile", async () => {
  const folder = folderOf({ "handler.ts": `${"process.pid;\n".repeat(50_000)}export default () => {};\n` });
  const lag = watchLoopLag();
  const { faults } = await refusal(folder);
  expect(faults).toHaveLength(100);
  expect(faults[99]?.detail.place).toMatchObject({ line: 100, column: 1 });
  // 200,000 took two seconds without interruption in the runtime's own process.
  expect(lag.stop()).toBeLessThan(500);
});

test("a build that hangs holds up no other, is ended when its time is over, and leaves no process", async () => {
  const folder = folderOf({ "handler.ts": "export default () => 0;", "good.ts": "export default () => 1;" });
  const clock = new VirtualClock();
  const builders = buildersOf(folder, clock);
  const before = builderPids();
  await builders.bundle({ handler: join(folder, "good.ts") });
  const [hanging] = builderPids().filter((pid) => !before.includes(pid));
  if (!hanging) throw new Error("no builder");
  process.kill(hanging, "SIGSTOP");
  const hung = builders.bundle({ handler: join(folder, "handler.ts") });
  hung.catch(() => undefined);
  await clock.advance(slowMs);
  const others = Array.from({ length: 6 }, () => builders.bundle({ handler: join(folder, "good.ts") }));
  for (const { script } of await Promise.all(others)) expect(script).toContain("=> 1");
  await clock.advance(buildMs);
  await expect(hung).rejects.toMatchObject({ code: "WF_BUNDLE_LIMIT", blame: "user" });
  await until("its process is gone", 10_000, async () => !builderPids().includes(hanging));
  expect((await builders.bundle({ handler: join(folder, "handler.ts") })).script).toContain("=> 0");
});

test("a build that nobody wants any more is ended at once, be it under way or waiting", async () => {
  const folder = folderOf({ "good.ts": "export default () => 1;" });
  const builders = buildersOf(folder);
  const before = builderPids();
  await builders.bundle({ handler: join(folder, "good.ts") });
  const [only] = builderPids().filter((pid) => !before.includes(pid));
  if (!only) throw new Error("no builder");
  process.kill(only, "SIGSTOP");
  const removed = new AbortController();
  const building = builders.bundle({ handler: join(folder, "good.ts") }, removed.signal);
  await settle();
  removed.abort();
  await expect(building).rejects.toBe(removed.signal.reason);
  await expect(builders.bundle({ handler: join(folder, "good.ts") }, removed.signal)).rejects.toBe(
    removed.signal.reason,
  );
  await until("its process is gone", 10_000, async () => !builderPids().includes(only));
});

test("the longest head of an answer that a builder could say holds the runtime up for less than a second", () => {
  const head = Buffer.alloc(answerLimits[0] ?? 0, "[");
  const before = process.cpuUsage();
  expect(() => readHead(head)).toThrow(SyntaxError);
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1000).toBeLessThan(1000);
});

test("builds that are given up while they wait take no other's turn along", async () => {
  const folder = folderOf({ "good.ts": "export default () => 1;" });
  const builders = buildersOf(folder);
  const removed = new AbortController();
  const build = (signal?: AbortSignal) => builders.bundle({ handler: join(folder, "good.ts") }, signal);
  // More concurrent builds, and more of each kind, than allowed.
  const wanted = Array.from({ length: 9 }, () => build());
  const unwanted = Array.from({ length: 5 }, () => build(removed.signal));
  await settle();
  removed.abort();
  for (const { status } of await Promise.allSettled(unwanted)) expect(status).toBe("rejected");
  for (const { script } of await Promise.all(wanted)) expect(script).toContain("=> 1");
});

test("builders that are closed end the builds that are under way, and begin none that waits", async () => {
  const folder = folderOf({ "good.ts": "export default () => 1;" });
  const builders = buildersOf(folder);
  const before = builderPids();
  const builds = Array.from({ length: 9 }, () => builders.bundle({ handler: join(folder, "good.ts") }));
  await settle();
  const own = builderPids().filter((pid) => !before.includes(pid));
  expect(own).not.toEqual([]);
  for (const pid of own) process.kill(pid, "SIGSTOP");
  builders.close();
  for (const build of builds) await expect(build).rejects.toMatchObject({ code: "WF_BUNDLE_BROKEN_OFF" });
  await until("their processes are gone", 10_000, async () => !builderPids().some((pid) => !before.includes(pid)));
});

test("builders end with the process that started them, however that ends", async () => {
  const folder = folderOf({ "handler.ts": "export default () => 0;" });
  const program = join(folder, "starter.ts");
  const url = (path: string) => JSON.stringify(join(import.meta.dirname, "../../runtime", path));
  writeFileSync(
    program,
    `import { Builders } from ${url("bundle/builders.ts")};
     import { systemClock } from ${url("base/clock.ts")};
     const builders = new Builders({ folder: ${JSON.stringify(folder)}, clock: systemClock });
     await builders.bundle({ handler: ${JSON.stringify(join(folder, "handler.ts"))} });
     process.kill(process.pid, "SIGKILL");`,
  );
  expect(spawnSync(process.execPath, [program], { encoding: "utf8" })).toMatchObject({ signal: "SIGKILL", stderr: "" });
  const left = () => {
    const all = execFileSync("ps", ["-e", "-o", "args=", "ww"], { encoding: "utf8" });
    return all.split("\n").filter((line) => line.includes("watchfire builder") && line.includes(folder));
  };
  await until("they are gone", 10_000, async () => left().length === 0);
});
