// The rights of callers: accounts of the cluster, by their tokens.
import { writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { systemClock } from "../../runtime/base/clock.ts";
import { RuntimeClient } from "../../runtime/cli/runtime-client.ts";
import { AccountReviews, audienceOfRuntime } from "../../runtime/control/access/account-reviews.ts";
import { connectDirect } from "../../runtime/kube/direct.ts";
import { loadFunctions } from "../../runtime/manifest/load.ts";
import { readToken } from "../../runtime/observe/token-file.ts";
import { builtInKinds } from "../../runtime/rbac/kinds.ts";
import { type RbacObject, rbacObjects } from "../../runtime/rbac/objects.ts";
import { type PersonRole, personObjects } from "../../runtime/rbac/people.ts";
import { watchfire } from "../cli/run.ts";
import { Client } from "../target/client.ts";
import { admin, createNamespace, eventually, removeAtEnd } from "../target/fixture.ts";
import { kubeconfigOf } from "../target/kubeconfig.ts";
import { folderOf } from "../tools/folder.ts";
import { Installation } from "../tools/installation.ts";

const { url: server, ca } = inject("shared").access;
const account = "watchfire";
const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const anything = z.unknown();

const pathOf = ({ apiVersion, kind, metadata }: RbacObject, name = "") => {
  const scope = metadata.namespace === undefined ? "" : `/namespaces/${metadata.namespace}`;
  const root = apiVersion === "v1" ? "/api/v1" : `/apis/${apiVersion}`;
  return `${root}${scope}/${kind.toLowerCase()}s${name && `/${name}`}`;
};

async function create(objects: readonly RbacObject[]): Promise<void> {
  for (const object of objects) {
    await admin.post(pathOf(object), object);
    if (object.metadata.namespace === undefined) removeAtEnd(pathOf(object, object.metadata.name));
  }
}

/** Installs the definition of Function objects, as the chart does. */
async function defineFunctions(): Promise<void> {
  const file = join(import.meta.dirname, "../../deploy/chart/files/functions.watchfire.dev.yaml");
  const definition = parse(await readFile(file, "utf8"));
  await admin.apply(`${definitions}/${definition.metadata.name}`, definition, "callers-test");
  removeAtEnd(`${definitions}/${definition.metadata.name}`);
  await eventually(
    () => admin.reply("GET", "/apis/watchfire.dev/v1alpha1/functions"),
    ({ status }) => status === 200,
  );
}

/** A runtime with the rights that `watchfire rbac` prints, and two functions: `greet` fails for objects that are called bad. */
async function install() {
  const namespace = await createNamespace();
  await defineFunctions();
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
  const tokenOf = async (name: string, audiences: readonly string[] = []): Promise<string> => {
    const { status } = await admin.post(`${accounts}/${name}/token`, { spec: { audiences, expirationSeconds: 600 } });
    return status.token;
  };
  await admin.post(accounts, { metadata: { name: account } });
  const more = { namespace, account, tokenReview: true, functionStatus: true, console: true, identity: "runtime" };
  const token = await tokenOf(account);
  const runtime = await Installation.on({ server, ca, token }, { namespace, account }, more);
  onTestFinished(() => runtime[Symbol.asyncDispose]());
  const watch = {
    apiVersion: "v1",
    kind: "ConfigMap",
    namespaceSelector: { matchNames: [namespace] },
    labelSelector: { matchLabels: { of: "test" } },
  };
  const retry = { maxAttempts: 1, initialDelay: "10m", maxDelay: "10m", factor: 1 };
  const spec = { delivery: { retry } };
  await runtime.define("greet", {
    watch,
    spec,
    work: `if (event.object.metadata.name === "bad") throw new Error("no");`,
  });
  await runtime.define("other", { watch, spec });
  const { functions } = await loadFunctions(runtime.functions);
  const rights = rbacObjects(functions, builtInKinds, { namespace, account, tokenReview: true, functionStatus: true });
  await create(rights.filter(({ kind, metadata }) => kind !== "ServiceAccount" || metadata.name !== account));
  for (const name of ["good", "bad"]) {
    const data = { password: "hunter2" };
    await admin.post(`/api/v1/namespaces/${namespace}/configmaps`, {
      metadata: { name, labels: { of: "test" } },
      data,
    });
  }
  await runtime.start();
  await runtime.sees("there is a dead letter", async () => (await runtime.deadLetters()).length === 1);
  const objects = `/apis/watchfire.dev/v1alpha1/namespaces/${namespace}/functions`;
  await eventually(
    () => admin.get(objects),
    ({ items }) => items.length === 2,
  );

  /** An account with the Role that `watchfire rbac --role` prints. Returns its token, once the API server knows its rights. */
  const person = async (
    name: string,
    role?: PersonRole,
    set?: string,
    named: readonly string[] = [],
  ): Promise<string> => {
    await admin.post(accounts, { metadata: { name } });
    if (role) {
      const roles = personObjects({ role, namespace, account, set, functions: named, deployed: [] });
      const subjects = [{ kind: "ServiceAccount", name, namespace }];
      await create(roles);
      for (const { apiVersion, kind, metadata } of roles) {
        const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind, name: metadata.name };
        await create([{ apiVersion, kind: `${kind}Binding`, metadata: { ...metadata, name }, roleRef, subjects }]);
      }
      const user = `system:serviceaccount:${namespace}:${name}`;
      const resourceAttributes = {
        group: "watchfire.dev",
        resource: "functions",
        verb: "get",
        name: "greet",
        namespace,
      };
      await eventually(
        () => admin.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", { spec: { user, resourceAttributes } }),
        ({ status }) => status.allowed,
      );
    }
    return tokenOf(name);
  };
  /** Sends a request, as a command does. Returns its answer, or the code and the message of its refusal. */
  const as = (bearer: string | undefined, reason?: string) => {
    const client = new RuntimeClient(runtime.url, bearer, reason);
    return (path: string, body?: object): Promise<unknown> =>
      client.ask(anything, path, body).catch((error: Error) => error.message.slice(0, 400));
  };
  const user = (name: string) => `system:serviceaccount:${namespace}:${name}`;
  const audit = () => runtime.lines.filter(({ msg }) => msg === "audit").map(({ time: _, ...line }) => line);
  return { runtime, namespace, person, tokenOf, as, user, audit };
}

const reads = ["functions/greet/runs", "functions/greet/logs", "dead-letters", "functions/runs", "api/overview"];
const refusal = (code: string) => expect.stringMatching(new RegExp(`^${code}: `));

test("without a token, with another cluster's, with one for another audience, and without rights, nothing is shown or changed", async () => {
  const { runtime, namespace, person, tokenOf, as, user, audit } = await install();
  const stranger = await person("stranger");
  const cases = [
    [undefined, "WF_OBSERVE_TOKEN"],
    ["not-a-token", "WF_CONTROL_TOKEN"],
    [`${stranger.slice(0, -4)}AAAA`, "WF_CONTROL_TOKEN"],
    [await tokenOf("stranger", ["https://another.example"]), "WF_CONTROL_TOKEN"],
    [await tokenOf("stranger", [audienceOfRuntime(namespace, "another")]), "WF_CONTROL_TOKEN"],
    [stranger, "WF_CONTROL_FORBIDDEN"],
  ] as const;
  for (const [token, code] of cases) {
    for (const path of reads) expect(await as(token)(path), path).toEqual(refusal(code));
    expect(await as(token)("functions/greet/pause", {})).toEqual(refusal(code));
    expect(await as(token)("api/dead-letters/drop", { ids: ["1"] })).toEqual(refusal(code));
  }
  const said = await as(stranger)("functions/greet/pause", {});
  expect(said).toContain(
    `${user("stranger")} may not update functions.watchfire.dev "greet" in namespace "${namespace}"`,
  );
  expect(said).toContain(`watchfire rbac --role operator --namespace ${namespace}`);
  expect((await runtime.function("greet"))?.reason).not.toBe("Paused");
  expect(audit()[0]).toMatchObject({ who: "unknown", verb: "pause", result: "refused: WF_OBSERVE_TOKEN" });
});

test("a reader sees everything but values of Secrets, and changes nothing", async () => {
  const { runtime, person, as } = await install();
  const ask = as(await person("reader", "reader"));
  for (const path of reads) expect(await ask(path), path).toEqual(expect.any(Object));
  const [letter] = await runtime.deadLetters();
  expect(JSON.stringify(await ask(`dead-letters/${letter?.id}`))).toContain('"password":"redacted"');
  expect(JSON.stringify(await as(readToken(runtime.data))(`dead-letters/${letter?.id}`))).toContain("hunter2");
  for (const change of ["pause", "resume", "redeliver", "record"]) {
    expect(await ask(`functions/greet/${change}`, {}), change).toEqual(refusal("WF_CONTROL_FORBIDDEN"));
  }
  expect(await ask("dead-letters/replay", { ids: [letter?.id] })).toEqual(refusal("WF_CONTROL_FORBIDDEN"));
  expect(await runtime.deadLetters()).toHaveLength(1);
});

test("an operator with the printed Role does everything, reads no Secret, creates no token, and each change is on record", async () => {
  const { runtime, namespace, person, as, user, audit } = await install();
  const token = await person("operator", "operator");
  const ask = as(token, "INC-204: it is late – 夜");
  expect(await ask("functions/greet/pause", {})).toMatchObject({ changed: true });
  expect(await ask("functions/greet/resume", {})).toMatchObject({ changed: true });
  expect(await ask("functions/other/redeliver", { all: true })).toMatchObject({ queued: expect.any(Number) });
  expect(await ask("functions/other/record", { count: 1 })).toMatchObject({ recording: expect.any(String) });
  expect(await ask(`explain/greet?namespace=${namespace}&name=good`)).toMatchObject({ triggers: expect.any(Array) });
  const [letter] = await runtime.deadLetters();
  expect(await ask("dead-letters/replay", { ids: [letter?.id] })).toEqual({ waiting: [] });
  await runtime.sees("it fails again", async () => (await runtime.deadLetters()).some(({ id }) => id !== letter?.id));
  const [again] = await runtime.deadLetters();
  expect(await ask("dead-letters/drop", { ids: [again?.id] })).toEqual({});

  const by = {
    level: "info",
    who: user("operator"),
    reason: "INC-204: it is late – 夜",
    result: "done",
    from: expect.stringMatching(/^127\.0\.0\.1 watchfire\//),
  };
  expect(audit()).toEqual([
    { ...by, verb: "pause", function: "greet", asked: {}, msg: "audit" },
    { ...by, verb: "resume", function: "greet", asked: {}, msg: "audit" },
    { ...by, verb: "redeliver", function: "other", asked: { all: true }, msg: "audit" },
    { ...by, verb: "record", function: "other", asked: { count: 1 }, msg: "audit" },
    { ...by, verb: "replay", letters: { count: 1, ids: [letter?.id] }, functions: ["greet"], msg: "audit" },
    { ...by, verb: "drop", letters: { count: 1, ids: [again?.id] }, functions: ["greet"], msg: "audit" },
  ]);
  const events = await eventually(
    () => admin.get(`/api/v1/namespaces/${namespace}/events`, { fieldSelector: "involvedObject.kind=Function" }),
    ({ items }) => items.some(({ reason }) => reason === "Dropped"),
  );
  expect(events.items.find(({ reason }) => reason === "Replayed")).toMatchObject({
    message: `${user("operator")} replayed dead letters of greet: INC-204: it is late – 夜`,
    involvedObject: { name: "greet", uid: expect.stringMatching(/-/) },
  });

  const client = new Client({ url: server, ca, token });
  onTestFinished(() => client.close());
  const core = `/api/v1/namespaces/${namespace}`;
  const refused = [
    ["GET", `${core}/secrets`],
    ["GET", `${core}/configmaps`],
    ["POST", `${core}/serviceaccounts/${account}/token`],
    ["POST", `${core}/serviceaccounts/operator/token`],
    ["POST", `${core}/pods/watchfire-0/exec`],
    ["PATCH", `/apis/watchfire.dev/v1alpha1/namespaces/${namespace}/functions/greet`],
    ["DELETE", `/apis/watchfire.dev/v1alpha1/namespaces/${namespace}/functions/greet`],
  ] as const;
  for (const [method, path] of refused) {
    const body = method === "GET" || method === "DELETE" ? undefined : { spec: {} };
    const type = "application/merge-patch+json";
    expect((await client.reply(method, path, { body, ...(method === "PATCH" && { type }) })).status, path).toBe(403);
  }
});

test("an operator of one set operates its functions, and no other", async () => {
  const { runtime, person, as } = await install();
  const ask = as(await person("one", "operator", "greeting", ["greet"]));
  const [letter] = await runtime.deadLetters();
  expect(await ask("functions/greet/pause", {})).toMatchObject({ changed: true });
  expect(await ask("functions/greet/runs")).toMatchObject({ runs: expect.any(Array) });
  expect(await ask("dead-letters?function=greet")).toHaveLength(1);
  expect(await ask("dead-letters/drop", { ids: [letter?.id] })).toEqual({});
  // Whether it exists is said only to who may change all functions.
  expect(await ask("dead-letters/drop", { ids: [letter?.id] })).toEqual(refusal("WF_CONTROL_FORBIDDEN"));
  for (const path of [
    "functions/other/runs",
    "functions/runs",
    "dead-letters",
    "api/runs",
    "api/errors?function=greet",
  ]) {
    expect(await ask(path), path).toEqual(refusal("WF_CONTROL_FORBIDDEN"));
  }
  expect(await ask("functions/other/pause", {})).toEqual(refusal("WF_CONTROL_FORBIDDEN"));
});

test("a token for this runtime alone is accepted here, and nowhere else", async () => {
  const { namespace, person, tokenOf, as } = await install();
  await person("bot", "reader");
  const token = await tokenOf("bot", [audienceOfRuntime(namespace, account)]);
  expect(await as(token)("functions/greet/runs")).toMatchObject({ runs: expect.any(Array) });
  const client = new Client({ url: server, ca, token });
  onTestFinished(() => client.close());
  expect((await client.reply("GET", "/api/v1/namespaces")).status).toBe(401);
});

test("a runtime that may not review tokens refuses them", async () => {
  const namespace = await createNamespace();
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
  await admin.post(accounts, { metadata: { name: account } });
  const { token } = (await admin.post(`${accounts}/${account}/token`, { spec: {} })).status;
  const transport = connectDirect({ server, ca, token });
  onTestFinished(() => transport.close());
  const reviews = new AccountReviews({ transport, namespace, account, clock: systemClock });
  await expect(reviews.callerOf(token)).rejects.toThrow(/^WF_CONTROL_REVIEW: .*the runtime may not create them/);
});

test("a browser logs in to the console by a token; what it may do is what the account may", async () => {
  const { runtime, person, user, audit } = await install();
  const origin = runtime.url;
  const send = (path: string, init: RequestInit, headers: object = {}) =>
    fetch(`${origin}${path}`, { ...init, headers: { "content-type": "application/json", ...headers } });
  const login = async (token: string) => {
    const answer = await send("/api/session", { method: "POST", body: JSON.stringify({ token }) }, { origin });
    const cookie = answer.headers.get("set-cookie") ?? "";
    const { proof = "" } = (await answer.json()) as { proof?: string };
    const session = { cookie: cookie.split(";")[0] ?? "", "x-watchfire-proof": proof, origin };
    return { status: answer.status, cookie, session };
  };
  const pause = (headers: object) => send("/api/functions/greet/pause", { method: "POST", body: "{}" }, headers);

  expect((await login("not-a-token")).status).toBe(401);
  const reader = await login(await person("reader", "reader"));
  expect(reader.cookie).toMatch(/; Path=\/; HttpOnly; SameSite=Strict$/);
  expect((await send("/api/overview", {}, reader.session)).status).toBe(200);
  expect(await (await send("/api/session?function=greet", {}, reader.session)).json()).toMatchObject({
    who: user("reader"),
    mayUpdate: false,
    why: expect.stringContaining("may not update functions.watchfire.dev"),
  });
  expect((await pause(reader.session)).status).toBe(403);
  expect(audit().at(-1)).toMatchObject({ who: user("reader"), verb: "pause", result: "refused: WF_CONTROL_FORBIDDEN" });

  const writer = await login(await person("writer", "operator"));
  for (const other of ["https://evil.example", "http://127.0.0.1:1", "null"]) {
    expect((await pause({ ...writer.session, origin: other })).status, other).toBe(403);
    const body = JSON.stringify({ token: "t" });
    expect((await send("/api/session", { method: "POST", body }, { origin: other })).status, other).toBe(403);
  }
  expect((await pause({ cookie: writer.session.cookie, origin })).status).toBe(401);
  expect((await runtime.function("greet"))?.reason).not.toBe("Paused");
  expect(await (await send("/api/session", {}, writer.session)).json()).toEqual({
    who: user("writer"),
    mayUpdate: true,
    isDev: false,
  });
  expect((await pause(writer.session)).status).toBe(200);
  expect(audit().at(-1)).toMatchObject({
    who: user("writer"),
    session: 2,
    verb: "pause",
    function: "greet",
    result: "done",
  });
});

test("a login link that an account makes begins a session of that account, and a session makes no link", async () => {
  const { runtime, person, as, user } = await install();
  const ask = as(await person("reader", "reader"));
  const { code } = z.object({ code: z.string() }).parse(await ask("api/login-codes", {}));
  const headers = { "content-type": "application/json", origin: runtime.url };
  const answer = await fetch(`${runtime.url}/api/session`, { method: "POST", body: JSON.stringify({ code }), headers });
  const { proof } = (await answer.json()) as { proof: string };
  const session = {
    ...headers,
    cookie: answer.headers.get("set-cookie")?.split(";")[0] ?? "",
    "x-watchfire-proof": proof,
  };
  const own = await fetch(`${runtime.url}/api/session`, { headers: session });
  expect(await own.json()).toMatchObject({ who: user("reader"), mayUpdate: false });
  const another = await fetch(`${runtime.url}/api/login-codes`, { method: "POST", body: "{}", headers: session });
  expect(another.status).toBe(401);
});

test("`watchfire doctor --role` says which rights of a role somebody has, and how to get the others", async () => {
  const { namespace, person } = await install();
  const folder = folderOf({});
  const doctor = async (token: string, ...more: string[]) => {
    const kubeconfig = join(folder, "config");
    writeFileSync(kubeconfig, kubeconfigOf({ url: server, ca, token }, namespace));
    const words = ["doctor", "--functions", folder, "--kubeconfig", kubeconfig, ...more];
    const { stdout, status } = await watchfire(words);
    return [status, stdout];
  };
  const reader = await person("reader", "reader");
  expect(await doctor(reader, "--role", "reader")).toEqual([
    0,
    expect.stringMatching(/^reader: .*:reader has all that it needs \(5\)\n$/),
  ]);
  const [status, said] = await doctor(reader, "--role", "operator");
  expect(status).toBe(1);
  expect(said).toMatch(
    /operator: .*:reader has 5 of 6 rights\n {2}missing: update functions\.watchfire\.dev in namespace/,
  );
  expect(said).toContain(`watchfire rbac --role operator --namespace ${namespace}\n`);
  expect(await doctor(await person("operator", "operator"), "--role", "operator", "-o", "json")).toEqual([
    0,
    expect.stringContaining('"missing": []'),
  ]);
});
