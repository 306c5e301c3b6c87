import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isOperation } from "../../runtime/access/arguments.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { accessTo, errorOf, everything, manifestOf } from "./api-server.ts";

const ref = { apiVersion: "v1", kind: "ConfigMap", name: "settings", namespace: "demo" };
const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "settings", namespace: "demo" } };
const every: [string, object][] = [
  ["kube.get", { ref }],
  ["kube.list", { apiVersion: "v1", kind: "ConfigMap" }],
  ["kube.create", { object }],
  ["kube.update", { object }],
  ["kube.patch", { ref, patch: {} }],
  ["kube.apply", { object }],
  ["kube.delete", { ref }],
  ["kube.updateStatus", { object }],
  ["kube.patchStatus", { ref, patch: {} }],
  ["kube.getScale", { ref }],
  ["kube.setScale", { ref, replicas: 1 }],
  ["kube.restart", { ref: { ...ref, apiVersion: "apps/v1", kind: "Deployment" } }],
  ["kube.evict", { ref: { ...ref, kind: "Pod" } }],
  ["kube.subresource", { ref, name: "status", body: {} }],
  ["events.emit", { object: { ...ref, name: "other" }, type: "Normal", reason: "R", message: "m" }],
];

/** An API server that notifies the test of a request and never answers it. */
const silent = (arrived: PromiseWithResolvers<void>) => () => {
  arrived.resolve();
  return "never" as const;
};

describe("a call", () => {
  it.each(every)("that no rule grants never leaves the process: %s", async (operation, args) => {
    const { call, asked, records } = await accessTo();
    expect(errorOf(await call(operation, args))).toMatchObject({
      type: "ForbiddenError",
      status: 403,
      details: { refusedBy: "runtime", missingRule: expect.stringMatching(/^- \{ apiGroups: \[/) },
    });
    expect(asked).toEqual([]);
    expect(records).toMatchObject([{ operation, result: "refused" }]);
  });

  it("that only a rule for another object grants sends nothing but discovery", async () => {
    const rule = { apiGroups: [""], resources: ["configmaps"], verbs: ["*"], namespaces: ["other"] };
    const { call, received } = await accessTo({ manifest: { permissions: [rule] } });
    for (const [operation, args] of every) expect(errorOf(await call(operation, args)).type).toBe("ForbiddenError");
    expect(received).toEqual([]);
  });

  it("of a kind that there is not is told so, and is offered no rule that would grant it", async () => {
    const rule = { apiGroups: [""], resources: ["configmaps"], verbs: ["get"] };
    const { call, asked } = await accessTo({ manifest: { permissions: [rule] } });
    await call("kube.get", { ref });
    const before = asked.length;
    const error = errorOf(await call("kube.delete", { ref: { ...ref, kind: "ConfigMapp" } }));
    expect(error).toMatchObject({ type: "NotServedError", status: 404, reason: "NotServed" });
    expect(error.message).toBe("v1 has no kind ConfigMapp; did you mean ConfigMap?");
    expect(asked.length).toBe(before);
  });

  it("that is refused names the rule that grants it, no wider than the call", async () => {
    const { call, functions } = await accessTo();
    const error = errorOf(await call("kube.patch", { ref, patch: {} }));
    const rule =
      '- { apiGroups: [""], resources: [configmaps], verbs: [patch], resourceNames: [settings], namespaces: [demo] }';
    expect(error.details).toEqual({ refusedBy: "runtime", missingRule: rule });
    expect(error.message).toContain(rule);
    const f = functions.get("f");
    if (!f) throw new Error("f is missing");
    functions.set("f", {
      ...f,
      permissions: [
        {
          apiGroups: [""],
          resources: ["configmaps"],
          verbs: ["patch"],
          resourceNames: ["settings"],
          namespaces: ["demo"],
        },
      ],
    });
    expect((await call("kube.patch", { ref, patch: {} })).ok).toBe(true);
  });

  it("of a subresource is not granted by its object's permission, and one by name only for that name", async () => {
    const pod = { apiVersion: "v1", kind: "Pod", name: "web-0", namespace: "demo" };
    const rule = { apiGroups: [""], resources: ["pods"], verbs: ["*"] };
    const { call, functions, received } = await accessTo({ manifest: { permissions: [rule] } });
    const missing = async (operation: string, args: object) =>
      errorOf(await call(operation, args)).details?.missingRule;
    const where = "resourceNames: [web-0], namespaces: [demo] }";
    const eviction = `- { apiGroups: [""], resources: [pods/eviction], verbs: [create], ${where}`;
    const resize = `- { apiGroups: [""], resources: [pods/resize], verbs: [patch], ${where}`;
    expect(await missing("kube.evict", { ref: pod })).toBe(eviction);
    expect(await missing("kube.subresource", { ref: pod, name: "eviction", body: {}, verb: "create" })).toBe(eviction);
    expect(await missing("kube.subresource", { ref: pod, name: "resize", body: {} })).toBe(resize);
    expect(received).toEqual([]);
    const named = { apiGroups: [""], resources: ["pods/eviction"], verbs: ["create"], resourceNames: ["web-0"] };
    functions.set("f", manifestOf({ permissions: [named] }));
    expect((await call("kube.evict", { ref: pod })).ok).toBe(true);
    expect(errorOf(await call("kube.evict", { ref: { ...pod, name: "web-1" } })).type).toBe("ForbiddenError");
    expect(received.length).toBe(1);
  });

  it.each(["attach", "exec", "portforward", "proxy", "token"])(
    "of the subresource %s is refused, whatever the manifest grants",
    async (name) => {
      const { call, asked, records } = await accessTo({ manifest: { permissions: [everything] } });
      for (const verb of ["create", "update", "patch"]) {
        const target = { ...ref, kind: name === "token" ? "ServiceAccount" : "Pod" };
        expect(errorOf(await call("kube.subresource", { ref: target, name, body: {}, verb }))).toMatchObject({
          type: "ForbiddenError",
          message: expect.stringMatching(
            new RegExp(`^WF_ACCESS_SUBRESOURCE: the runtime refuses to ${verb} the subresource ${name}; `),
          ),
          details: { refusedBy: "runtime" },
        });
      }
      expect(asked).toEqual([]);
      expect(records.map(({ result }) => result)).toEqual(Array(3).fill("refused"));
    },
  );

  it.each<[string, object, string]>([
    ["kube.get", { ref: { ...ref, name: undefined } }, "ref.name is missing; expected a string"],
    ["kube.get", { ref: { ...ref, name: 3 } }, "ref.name is not a string, got 3"],
    ["kube.get", { ref: { ...ref, name: "a/b" } }, 'ref.name is not an object\'s name, got "a/b"'],
    ["kube.get", { ref: { ...ref, namespace: "Demo" } }, 'ref.namespace is not a namespace\'s name, got "Demo"'],
    ["kube.get", { ref: { ...ref, kind: "config map" } }, 'ref.kind is not a kind such as ConfigMap, got "config map"'],
    ["kube.get", { ref: { ...ref, apiVersion: "apps" } }, 'ref.apiVersion is not an API version such as v1 or apps/v1, got "apps"'],
    ["kube.get", { ref: { ...ref, nmae: "x" } }, "ref has no field nmae; did you mean name?"],
    ["kube.get", { ref: "settings" }, 'ref is not an object, got "settings"'],
    ["kube.list", { apiVersion: "v1", kind: "Pod", limit: 0 }, "limit is less than 1, got 0"],
    ["kube.list", { apiVersion: "v1", kind: "Pod", labelSelector: {} }, "labelSelector is not a string, got an object"],
    ["cache.list", { apiVersion: "v1", kind: "Pod", index: { a: "1", b: "2" } }, "index names more than one index, got an object"],
    ["cache.list", { apiVersion: "v1", kind: "Pod", index: { a: 1, b: 2 } }, "index names more than one index, got an object"],
    ["cache.list", { apiVersion: "v1", kind: "Pod", index: JSON.parse('{ "__proto__": "x" }') }, "index names no field, got an object"],
    ["kube.create", { object: { apiVersion: "v1", kind: "ConfigMap" } }, "object.metadata is missing; expected an object"],
    ["kube.patch", { ref, patch: [], type: "merge" }, "patch is not an object, got an array"],
    ["kube.patch", { ref, patch: {}, type: "mrege" }, 'type is not one of merge, strategic, json, got "mrege"'],
    ["kube.delete", { ref, propagationPolicy: "None" }, 'propagationPolicy is not one of Background, Foreground, Orphan, got "None"'],
    ["kube.setScale", { ref, replicas: 1.5 }, "replicas is not a whole number, got 1.5"],
    ["kube.setScale", { ref, replicas: -1 }, "replicas is less than 0, got -1"],
    ["kube.restart", { ref: { ...ref, kind: "Pod" } }, 'ref.apiVersion is not one of apps/v1, got "v1"'],
    ["kube.restart", { ref: { ...ref, apiVersion: "apps/v1", kind: "ReplicaSet" } }, 'ref.kind is not one of Deployment, StatefulSet, DaemonSet, got "ReplicaSet"'],
    ["kube.evict", { ref }, 'ref.kind is not one of Pod, got "ConfigMap"'],
    ["kube.evict", { ref: { ...ref, kind: "Pod" }, gracePeriodSeconds: -1 }, "gracePeriodSeconds is less than 0, got -1"],
    ["kube.subresource", { ref, name: "resize" }, "body is not an object"],
    ["kube.subresource", { ref, name: "resize", body: [] }, "body is not an object, got an array"],
    ["kube.subresource", { ref, name: "exec/x", body: {} }, 'name is not the name of a subresource such as resize, got "exec/x"'],
    ["kube.subresource", { ref, name: "..", body: {} }, 'name is not the name of a subresource such as resize, got ".."'],
    ["kube.subresource", { ref, name: "resize", body: {}, verb: "get" }, 'verb is not one of patch, update, create, got "get"'],
    ["kube.subresource", { ref, name: "resize", body: {}, verb: "update", type: "merge" }, "the verb update takes no type of patch"],
    ["events.emit", { object: ref, type: "Normal", reason: "no word", message: "m" }, 'reason is not a word of at most 128 letters, digits or _, got "no word"'],
  ])("whose arguments are wrong is told which field, what it was, and what is expected: %s %j", async (operation, args, said) => {
    const { call, asked } = await accessTo({ manifest: { permissions: [everything] } });
    expect(errorOf(await call(operation, args))).toMatchObject({ type: "InvalidError", message: `${operation}: ${said}` });
    expect(asked).toEqual([]);
  }); // biome-ignore format: a table

  it("whose arguments have a field's name of millions of characters is told its beginning, and holds nobody up", async () => {
    const { call } = await accessTo({ manifest: { permissions: [everything] } });
    const from = performance.now();
    const refused = errorOf(await call("kube.get", { ref, ["k".repeat(4_000_000)]: 1 }));
    expect(refused).toMatchObject({ message: `kube.get: the argument has no field ${"k".repeat(99)}…` });
    expect(performance.now() - from).toBeLessThan(4_000);
  });

  it.each(["a/b", "a%2fb", "..", ".", "a/../b", "", "a\ud800", "x".repeat(4097)])(
    "whose ref holds the name %j, which no object can have, is refused before it becomes a path",
    async (name) => {
      const { call, asked } = await accessTo({ manifest: { permissions: [everything] } });
      expect(errorOf(await call("kube.get", { ref: { ...ref, name } })).type).toBe("InvalidError");
      expect(errorOf(await call("cache.get", { ref: { ...ref, name } })).type).toBe("InvalidError");
      const hostile = { ...object, metadata: { name, namespace: "demo" } };
      expect(errorOf(await call("kube.update", { object: hostile })).type).toBe("InvalidError");
      expect(asked).toEqual([]);
    },
  );

  it.each(["a/b/c", "a%2fb", "..", ".", "a/../b", "", "a b", "a?b", "a#b", "a\\b", "a\u0000", "é", "x".repeat(400)])(
    "whose namespace, API version or kind is %j is refused before it becomes a path",
    async (text) => {
      const { call, asked } = await accessTo({ manifest: { permissions: [everything] } });
      for (const field of ["namespace", "apiVersion", "kind"])
        expect(errorOf(await call("kube.get", { ref: { ...ref, [field]: text } })).type).toBe("InvalidError");
      expect(asked).toEqual([]);
    },
  );

  it("whose ref has any name reaches the object of that name alone, and nothing where no object can have it", async () => {
    const { call, received } = await accessTo({ manifest: { permissions: [everything] } });
    const sign = fc.constantFrom(
      "/",
      "%",
      ".",
      "..",
      "%2f",
      "%2e",
      "#",
      "?",
      "\\",
      " ",
      "\u0000",
      "\ud800",
      "ü",
      "😀",
      ":",
    );
    const texts = fc
      .array(fc.oneof(sign, fc.string({ unit: "binary" })), { maxLength: 4 })
      .map((parts) => parts.join(""));
    await fc.assert(
      fc.asyncProperty(texts, async (name) => {
        received.length = 0;
        const reply = await call("kube.get", { ref: { ...ref, name } });
        const isName = name.isWellFormed() && !["", ".", ".."].includes(name) && !/[/%]/.test(name);
        expect(reply.ok).toBe(isName);
        const reached = received.map(({ path }) => path.split("/").map(decodeURIComponent));
        expect(reached).toEqual(isName ? [["", "api", "v1", "namespaces", "demo", "configmaps", name]] : []);
      }),
      { numRuns: 500 },
    );
  });

  it.each(["Dev Team", "grüppe", "a#b", "system:x?y", "a,b=c", "a\\b", "..."])(
    "about an object called %j is granted by a rule that names it, and about no other object",
    async (name) => {
      const rule = { apiGroups: [""], resources: ["configmaps"], verbs: ["*"], resourceNames: [name] };
      const { call, received } = await accessTo({ manifest: { permissions: [rule] } });
      expect((await call("kube.get", { ref: { ...ref, name } })).ok).toBe(true);
      for (const other of [encodeURIComponent(name), `${name}x`, name.slice(0, -1)].filter((each) => each !== name))
        expect((await call("kube.get", { ref: { ...ref, name: other } })).ok).toBe(false);
      expect(received.length).toBe(1);
    },
  );

  it("for a list is granted by a rule with names where its selector asks for one of them, and is else refused with that name", async () => {
    const rule = { apiGroups: [""], resources: ["configmaps"], verbs: ["list"], resourceNames: ["one", "a,b"] };
    const { call, received } = await accessTo({ manifest: { permissions: [rule] } });
    const list = (fieldSelector?: string) =>
      call("kube.list", { apiVersion: "v1", kind: "ConfigMap", namespace: "demo", fieldSelector });
    const granted = ["metadata.name=one", "metadata.name==one,metadata.namespace=demo", "metadata.name=a\\,b"];
    for (const selector of granted) expect((await list(selector)).ok).toBe(true);
    expect(received.map(({ query }) => query.get("fieldSelector"))).toEqual(granted);
    for (const selector of [
      undefined,
      "",
      "metadata.name!=one",
      "metadata.name=",
      "metadata.name=a\\,metadata.name=one",
    ])
      expect(errorOf(await list(selector)).details?.missingRule).not.toContain("resourceNames");
    expect(errorOf(await list("metadata.name=two")).details?.missingRule).toContain("resourceNames: [two]");
    expect(received.length).toBe(granted.length);
  });

  it("about a namespaced object names its namespace, and about a cluster-scoped one none", async () => {
    const { call, received } = await accessTo({ manifest: { permissions: [everything] } });
    expect(errorOf(await call("kube.get", { ref: { ...ref, namespace: undefined } })).type).toBe("InvalidError");
    const node = { apiVersion: "v1", kind: "Node", name: "n", namespace: "demo" };
    expect(errorOf(await call("kube.get", { ref: node })).type).toBe("InvalidError");
    expect(received).toEqual([]);
  });

  it("of any operation with any text as arguments gets a typed error and sends nothing", async () => {
    const { call, received } = await accessTo({ manifest: { permissions: [everything] } });
    const names = fc.oneof(fc.constantFrom(...every.map(([name]) => name), "fetch"), fc.string());
    await fc.assert(
      fc.asyncProperty(names, fc.oneof(fc.string(), fc.json()), async (operation, args) => {
        const error = errorOf(await call(operation, args));
        expect(["InvalidError", "FetchError", "TooManyRequestsError"]).toContain(error.type);
      }),
    );
    expect(received).toEqual([]);
    expect(isOperation("__proto__")).toBe(false);
    expect(isOperation("constructor")).toBe(false);
  });

  it("of a function that is no longer loaded is refused", async () => {
    const { call, functions, asked } = await accessTo({ manifest: { permissions: [everything] } });
    functions.clear();
    expect(errorOf(await call("kube.get", { ref })).type).toBe("InvalidError");
    expect(asked).toEqual([]);
  });
});

describe("a function", () => {
  it("has so many calls in one attempt and no more, and in the next attempt as many", async () => {
    const { call, received } = await accessTo({
      manifest: { permissions: [everything] },
      limits: { callsPerAttempt: 2 },
    });
    const replies = [];
    for (let n = 0; n < 3; n++) replies.push(await call("kube.get", { ref }));
    expect(replies.map(({ ok }) => ok)).toEqual([true, true, false]);
    expect(errorOf(replies[2] as never).type).toBe("TooManyRequestsError");
    expect((await call("kube.get", { ref }, new AbortController().signal)).ok).toBe(true);
    expect(received.length).toBe(3);
  });

  it("has so many calls under way at once; the next wait, and those beyond are refused", async () => {
    const { call, received } = await accessTo({
      manifest: { permissions: [everything] },
      limits: { callsAtOnce: 2, callsWaiting: 3 },
    });
    const replies = await Promise.all(Array.from({ length: 7 }, () => call("kube.get", { ref })));
    expect(replies.filter(({ ok }) => ok).length).toBe(5);
    expect(replies.filter((reply) => !reply.ok).map((reply) => errorOf(reply).type)).toEqual(
      Array(2).fill("TooManyRequestsError"),
    );
    expect(received.length).toBe(5);
  });

  it("cannot send more than the limit in one call", async () => {
    const { call, asked } = await accessTo({
      manifest: { permissions: [everything] },
      limits: { argumentBytes: 1000 },
    });
    const large = { ...object, data: { a: "x".repeat(1000) } };
    expect(errorOf(await call("kube.create", { object: large })).type).toBe("InvalidError");
    expect(asked).toEqual([]);
  });

  it("leaves no timer behind a call that was answered", async () => {
    const clock = new VirtualClock();
    const { call } = await accessTo({ manifest: { permissions: [everything] }, clock });
    expect((await call("kube.get", { ref })).ok).toBe(true);
    expect(clock.timers).toBe(0);
  });

  it("waits no longer for an answer than the limit", async () => {
    const clock = new VirtualClock();
    const arrived = Promise.withResolvers<void>();
    const { call } = await accessTo({ manifest: { permissions: [everything] }, clock, script: silent(arrived) });
    const reply = call("kube.get", { ref });
    await arrived.promise;
    await clock.advance(30_000);
    expect(errorOf(await reply)).toMatchObject({ type: "TimeoutError", message: "no answer within 30000 ms" });
    expect(clock.timers).toBe(0);
  });

  it("whose attempt ends has its calls ended", async () => {
    const arrived = Promise.withResolvers<void>();
    const { call, attempt } = await accessTo({
      manifest: { permissions: [everything] },
      limits: { callsAtOnce: 1 },
      script: silent(arrived),
    });
    const replies = [call("kube.get", { ref }), call("kube.get", { ref })];
    await arrived.promise;
    attempt.abort(new Error("over"));
    for (const reply of await Promise.all(replies)) expect(errorOf(reply).type).toBe("TimeoutError");
    expect(errorOf(await call("kube.get", { ref })).type).toBe("TimeoutError");
  });
});
