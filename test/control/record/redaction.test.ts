import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { withoutSecrets } from "../../../runtime/control/record/redaction.ts";

const secret = (data: Record<string, string>, more: object = {}) => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name: "s", namespace: "demo" },
  data,
  ...more,
});

describe("a recorded object", () => {
  it("has no value of a Secret, keeps its keys, and stays one that the API server takes", () => {
    const value = fc.uint8Array({ minLength: 6 }).map((bytes) => Buffer.from(bytes).toString("base64"));
    const key = fc.stringMatching(/^[a-z.]{1,12}$/);
    fc.assert(
      fc.property(fc.dictionary(key, value), (data) => {
        const copy = withoutSecrets({ event: { object: secret(data, { stringData: data }) } }) as {
          event: { object: ReturnType<typeof secret> & { stringData: object } };
        };
        const { object } = copy.event;
        expect(Object.keys(object.data)).toEqual(Object.keys(data));
        expect(Object.keys(object.stringData)).toEqual(Object.keys(data));
        for (const each of Object.values(data)) expect(JSON.stringify(object)).not.toContain(each);
        for (const each of Object.values(object.data)) {
          expect(Buffer.from(each, "base64").toString("base64")).toBe(each);
        }
      }),
    );
    const docker = withoutSecrets(secret({ ".dockerconfigjson": "e30=" })) as ReturnType<typeof secret>;
    expect(JSON.parse(Buffer.from(docker.data[".dockerconfigjson"] ?? "", "base64").toString())).toEqual({ auths: {} });
  });

  it("has neither its managed fields nor the configuration that kubectl applied last, wherever it stands", () => {
    const metadata = {
      name: "a",
      managedFields: [{ manager: "kubectl" }],
      annotations: { note: "kept", "kubectl.kubernetes.io/last-applied-configuration": "{}" },
    };
    const left = { metadata: { name: "a", annotations: { note: "kept" } } };
    const given = { events: [{ object: { metadata }, oldObject: { metadata } }] };
    expect(withoutSecrets(given)).toEqual({ events: [{ object: left, oldObject: left }] });
  });

  it.each([
    ["a variable with a secret's name", { env: [{ name: "DB_PASSWORD", value: "hunter22" }] }],
    ["a header", { httpHeaders: [{ name: "Authorization", value: "hunter22" }] }],
    ["a field with a secret's name", { spec: { apiKey: "hunter22" } }],
    ["a list below such a name", { spec: { tokens: ["hunter22"] } }],
    ["a ConfigMap's key with such a name", { data: { "client-secret": "hunter22" } }],
    ["a JWT", { note: "of eyJhbGciOiJub.hunter22abc.hunter22" }],
    ["a URL's password", { note: "postgres://ada:hunter22@db/shop" }],
    ["a header's text", { note: "Bearer hunter22hunter22" }],
    ["a private key", { note: "-----BEGIN RSA PRIVATE KEY-----\nhunter22\n-----END RSA PRIVATE KEY-----" }],
    ["a token with a known beginning", { note: `ghp_hunter22${"a".repeat(24)}` }],
  ])("has no %s", (_, object) => {
    const left = JSON.stringify(withoutSecrets({ object }));
    expect(left).not.toContain("hunter22");
    expect(left).toContain("redacted");
  });

  it("has no number of a field or a variable with a secret's name, in lists too, and keeps its type", () => {
    const exact = (JSON as JSON & { rawJSON(text: string): object }).rawJSON("12345678901234567890");
    const object = {
      spec: { password: 4711, tokens: [4711, [exact], true], limit: 5 },
      env: [
        { name: "API_KEY", value: 4711 },
        { name: "PASSWORDS", value: ["a", 4711] },
        { name: "PORT", value: 80 },
      ],
    };
    expect(withoutSecrets(object)).toEqual({
      spec: { password: 0, tokens: [0, [0], true], limit: 5 },
      env: [
        { name: "API_KEY", value: 0 },
        { name: "PASSWORDS", value: ["redacted", 0] },
        { name: "PORT", value: 80 },
      ],
    });
  });

  it("keeps all else as it is, and the names of places where secrets are", () => {
    const object = {
      env: [
        { name: "MODE", value: "fast" },
        { name: "TOKEN", valueFrom: { secretKeyRef: { name: "slack", key: "token" } } },
      ],
      volumes: [{ name: "token", secret: { secretName: "slack" } }],
      data: { greeting: "hello", "token-path": "/var/run/token" },
      count: 3,
      automountServiceAccountToken: false,
      none: null,
    };
    expect(withoutSecrets(object)).toEqual(object);
  });
});
