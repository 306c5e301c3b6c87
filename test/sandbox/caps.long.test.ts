import { describe, expect, it } from "vitest";
import { Redactor } from "../../runtime/access/redactor.ts";
import { run } from "../../runtime/engine/delivery/delivery.ts";
import { guestOutput } from "../../runtime/observe/guest-output.ts";
import { createLog } from "../../runtime/observe/log.ts";
import { Metrics } from "../../runtime/observe/metrics.ts";
import { loggedRunner } from "../../runtime/observe/run-log.ts";
import { fixtureForTest } from "./fixture.ts";

const pod = `{ apiVersion: "v1", kind: "Pod", name: "p" }`;

describe("one event", () => {
  it("logs 64 KiB at most, and says that there was more", async () => {
    const fixture = fixtureForTest();
    await fixture.load(
      "f",
      `export default (e, ctx) => { for (let i = 0; i < 500; i++) ctx.log.info("x".repeat(1000)); };`,
    );
    expect((await fixture.run("f")).type).toBe("ok");
    const written = fixture.logs.reduce((sum, line) => sum + line.message.length, 0);
    expect(written).toBeLessThan(64 * 1024);
    expect(written).toBeGreaterThan(60 * 1024);
    expect(fixture.logs.at(-1)).toMatchObject({ level: "warn", message: /64 KiB/ });
    // The next event has a separate limit of 64 KiB.
    fixture.logs.length = 0;
    await fixture.run("f");
    expect(fixture.logs.length).toBeGreaterThan(60);
  });

  it("sends 1000 messages at most before it awaits, and is charged for none that is dropped", async () => {
    const fixture = fixtureForTest();
    await fixture.load(
      "f",
      `export default (e, ctx) => { for (let i = 0; i < 5000; i++) ctx.metrics.increment("m", 1); };`,
    );
    expect((await fixture.run("f")).type).toBe("ok");
    expect(fixture.metrics).toHaveLength(1000);
  });

  it("sends 1000 metrics at most, however often it awaits", async () => {
    const fixture = fixtureForTest();
    await fixture.load(
      "f",
      `export default async (e, ctx) => {
        for (let turn = 0; turn < 5; turn++) {
          for (let i = 0; i < 400; i++) ctx.metrics.increment("m", 1);
          await ctx.kube.get(${pod});
        }
      };`,
    );
    expect((await fixture.run("f")).type).toBe("ok");
    expect(fixture.metrics).toHaveLength(1000);
    // The next event has a separate limit.
    expect((await fixture.run("f")).type).toBe("ok");
    expect(fixture.metrics).toHaveLength(2000);
  });

  it("waits for 64 calls at once at most; one more ends it with an error that says so", async () => {
    const fixture = fixtureForTest();
    const code = (calls: number) =>
      `export default (e, ctx) => Promise.all(Array.from({ length: ${calls} }, () => ctx.kube.get(${pod})));`;
    await fixture.load("within", code(64));
    expect((await fixture.run("within")).type).toBe("ok");
    await fixture.load("beyond", code(65));
    expect(await fixture.run("beyond")).toMatchObject({ type: "failed", error: { code: "WF_SANDBOX_OUTPUT" } });
    expect(fixture.calls.filter((call) => call.caller.function === "beyond").length).toBeLessThanOrEqual(64);
  });

  it("is refused a call of more values than the parent can read beside its other work", async () => {
    const fixture = fixtureForTest();
    await fixture.load(
      "f",
      `export default async (e, ctx) => {
        const data = Object.fromEntries(Array.from({ length: e.object.fields }, (_, field) => ["k" + field, 1]));
        await ctx.kube.create({ apiVersion: "v1", kind: "ConfigMap", data });
      };`,
      { cpuMs: 10_000 },
    );
    const run = (fields: number) =>
      fixture.run("f", { body: Buffer.from(JSON.stringify({ fields })), timeoutMs: 15_000 });
    expect((await run(39_000)).type).toBe("ok");
    expect(fixture.calls.length).toBe(1);
    expect(await run(41_000)).toMatchObject({
      type: "failed",
      error: { name: "InvalidError", message: "kube.create: the arguments hold more than 40000 values" },
    });
    expect(fixture.calls.length).toBe(1);
  });

  it("keeps an error to 200 characters of name, 2000 of message and 4000 of stack", async () => {
    const fixture = fixtureForTest();
    await fixture.load(
      "f",
      `export default () => { const error = new Error("m".repeat(1e6)); error.name = "n".repeat(1e6); error.stack = "s".repeat(1e6); throw error; };`,
    );
    const outcome = await fixture.run("f");
    const { name, message, stack } = outcome.type === "failed" ? outcome.error : expect.unreachable();
    expect([name.length, message.length, stack.length]).toEqual([200, 2000, 4000]);
  });

  it("that loops in a function of a long name is charged alone, and its executor lives", async () => {
    const fixture = fixtureForTest();
    const name = `["n".repeat(50_000)]`;
    await fixture.load("f", `const all = { ${name}() { for (;;); } };\nexport default () => all${name}();`, {
      cpuMs: 200,
    });
    const outcome = await fixture.run("f");
    expect(outcome).toMatchObject({ type: "failed", error: { code: "WF_SANDBOX_CPU_BUDGET" } });
    expect(fixture.deaths).toEqual([]);
  });
});

describe("a Secret's value", () => {
  it.each([
    ["", "xoxb-0123456789-abcdefghij"],
    [", with the line breaks of Windows", "-----BEGIN KEY-----\r\nxoxb-0123456789-abcdefghij\r\n-----END KEY-----\r\n"],
  ])("is in no log line, no error and no outcome, whichever way the handler lets it out%s", async (_, secret) => {
    const lines: string[] = [];
    const log = createLog("debug", { write: (line: string) => lines.push(line) });
    const redactor = new Redactor();
    redactor.learn("f", { secrets: [secret], configuration: [] });
    const fixture = fixtureForTest({ output: guestOutput(log, new Metrics().user, redactor) });
    await fixture.load(
      "f",
      `export default (e, ctx) => {
        const { TOKEN } = ctx.env;
        ctx.log.info("token " + TOKEN, { deep: { token: [TOKEN] }, [TOKEN]: 1 });
        console.error(TOKEN, { TOKEN });
        const error = new TypeError("refused: " + TOKEN);
        error.name = TOKEN;
        error.stack = TOKEN + error.stack;
        throw error;
      };`,
      { env: { TOKEN: secret } },
    );
    const runner = loggedRunner(fixture.sandbox, log, redactor, "debug");
    // The text that the dispatcher would write into a dead letter.
    const outcome = await run(runner, fixture.delivery("f"));
    expect(outcome.type).toBe("failed");
    expect(lines.length).toBeGreaterThanOrEqual(3);
    expect(JSON.stringify(outcome)).not.toContain("abcdefghij");
    expect(lines.join("\n")).not.toContain("abcdefghij");
  });

  it("is not begun in a line, an error or an outcome that is cut amid it, wherever the cut falls", async () => {
    const secret = 'qk🔑"xw\u007fq9\nzz-7';
    const lines: string[] = [];
    const log = createLog("debug", { write: (line: string) => lines.push(line) });
    const redactor = new Redactor();
    redactor.learn("f", { secrets: [secret], configuration: [] });
    const fixture = fixtureForTest({ output: guestOutput(log, new Metrics().user, redactor) });
    await fixture.load(
      "f",
      `export default ({ trigger }, ctx) => {
        const text = (limit) => "-".repeat(limit - Number(trigger)) + ctx.env.TOKEN + "-".repeat(limit);
        ctx.log.info(text(4096), { long: text(8192 - 9) });
        ctx.metrics.increment(text(100));
        ctx.metrics.increment("m", 1, { long: text(200), longer: text(8192) });
        const error = new TypeError(text(2000));
        error.name = text(200);
        error.stack = "TypeError: " + text(4000 - 11);
        ctx.log.info("an error within", { error });
        console.error(error);
        if (trigger % 3 === 0) throw error;
        const rejected = Promise.reject(error);
        if (trigger % 3 === 1) return rejected;
      };`,
      { env: { TOKEN: secret } },
    );
    const runner = loggedRunner(fixture.sandbox, log, redactor, "debug");
    for (let within = 0; within <= secret.length + 10; within++) {
      const outcome = await run(runner, fixture.delivery("f", { trigger: String(within) }));
      expect(outcome.type).toBe("failed");
      lines.push(JSON.stringify(outcome));
    }
    expect(lines.filter((line) => line.includes("[redacted]")).length).toBeGreaterThan(4 * secret.length);
    expect(lines.filter((line) => line.includes("qk🔑"))).toEqual([]);
  });
});
