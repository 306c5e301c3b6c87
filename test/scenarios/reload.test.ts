import { expect, test } from "vitest";
import { admin, createTeam, install } from "./cluster.ts";

const secretEnv = (name: string) => [{ name: "TOKEN", valueFrom: { secretKeyRef: { name, key: "token" } } }];

test("a function that waits for its Secret holds up no reload, and runs at once when an edit spares it the Secret", async () => {
  const team = await createTeam();
  const runtime = await install();
  await runtime.define("waiting", { watch: team.watch(), spec: { env: secretEnv("never-there") } });
  await runtime.start();
  await runtime.define("other", { watch: team.watch() });
  await runtime.reload();
  await team.make("a");
  await runtime.hears("other", 1);
  expect((await runtime.function("waiting"))?.code).toBe("WF_ACCESS_ENV");
  await runtime.define("waiting", { watch: team.watch() });
  await runtime.reload();
  await runtime.hears("waiting", 1);
});

test("a function that waits for its Secret runs once the Secret is there", async () => {
  const team = await createTeam();
  const runtime = await install();
  const secret = `${team.name}-token`;
  await runtime.define("waiting", { watch: team.watch(), spec: { env: secretEnv(secret) } });
  await runtime.start();
  await team.make("a");
  await runtime.sees("it waits", async () => (await runtime.function("waiting"))?.code === "WF_ACCESS_ENV");
  await admin.post("/api/v1/namespaces/default/secrets", {
    metadata: { name: secret },
    data: { token: Buffer.from("s3cr3t").toString("base64") },
  });
  await runtime.sees("the wait for the Secret is cut short", () => runtime.clock.cutShort(10_000, 10_001) > 0);
  await runtime.hears("waiting", 1);
});

test("code that cannot be loaded leaves the old running, with its triggers", async () => {
  const team = await createTeam();
  const other = await createTeam();
  const runtime = await install();
  await runtime.define("follower", { watch: team.watch() });
  await runtime.start();
  await runtime.define("follower", {
    watch: other.watch(),
    work: "}; throw new Error('at load'); const after = () => {",
  });
  await runtime.reload();
  await team.make("a");
  await runtime.hears("follower", "Added a=1");
  expect(await runtime.function("follower")).toMatchObject({
    ready: true,
    reason: "ChangeRefused",
    code: "WF_SANDBOX_LOAD",
  });
  await runtime.define("follower", { watch: other.watch() });
  await runtime.reload();
  await other.make("b");
  await runtime.hears("follower", 3);
  expect(runtime.told("follower").map((line) => line.split(" ", 2).join(" "))).toEqual([
    "Added a=1",
    "Deleted a=1",
    "Added b=1",
  ]);
});

test("an attempt that failed before its trigger changed comes again flagged, as the next attempt", async () => {
  const team = await createTeam();
  const runtime = await install();
  const spec = { delivery: { retry: { initialDelay: "1m" } } };
  await runtime.define("follower", { watch: team.watch(), spec, work: "throw new Error('not yet');" });
  await runtime.start();
  await team.make("a");
  await runtime.hears("follower", 1);
  await runtime.define("follower", { watch: team.watch({ changedFields: [".data"] }), spec });
  await runtime.reload();
  await runtime.hears("follower", 2);
  expect(runtime.told("follower")).toEqual(["Added a=1", "Added a=1 redelivered #2"]);
});

test("code that begins to read the previous object gets it from the next change on", async () => {
  const team = await createTeam();
  const runtime = await install();
  const watch = team.watch({ events: ["Added", "Modified"] });
  await runtime.define("follower", { watch });
  await runtime.start();
  const old = `ctx.log.info("old", { line: String(event.oldObject?.data?.v) });`;
  await runtime.define("follower", { watch, work: old });
  await runtime.reload();
  await team.make("a");
  await team.set("a", 2);
  await runtime.hears("follower", 2);
  const seen = () => runtime.lines.filter(({ msg }) => msg === "old").map(({ fields }) => fields?.line);
  await runtime.sees("both were handled", () => seen().length === 2);
  expect(seen()).toEqual(["undefined", "1"]);
});

test("a runtime is not ready while one of its sources cannot be listed and keeps trying", async () => {
  const team = await createTeam();
  const runtime = await install();
  const { transport } = runtime;
  const request = transport.request.bind(transport);
  transport.request = async (asked) => {
    if (asked.path === team.path) throw new Error("connection refused");
    return request(asked);
  };
  await runtime.define("follower", { watch: team.watch() });
  await runtime.open();
  await runtime.sees(
    "its source backs off",
    async () => (await runtime.function("follower"))?.reason === "Unreachable",
  );
  expect((await fetch(`${runtime.url}/readyz`)).status).toBe(503);
  transport.request = request;
  await runtime.sees("it is ready", async () => (await fetch(`${runtime.url}/readyz`)).ok);
});
