import { expect, test } from "vitest";
import { natsOptions, readNats } from "../../runtime/cli/nats-options.ts";

const none = {
  ...{ nats: undefined, "nats-creds": undefined, "nats-ca": undefined },
  ...{ "nats-cert": undefined, "nats-key": undefined, "nats-replicas": undefined },
};

test("every option is read", () => {
  expect(Object.keys(none).sort()).toEqual(Object.keys(natsOptions).sort());
  const files = { "nats-creds": "c", "nats-ca": "ca", "nats-cert": "cert", "nats-key": "key" };
  expect(readNats({ ...none, ...files, nats: "nats://a:4222,b:4223", "nats-replicas": "3" }, "nats", () => {})).toEqual(
    {
      servers: ["nats://a:4222", "b:4223"],
      credentials: "c",
      tls: { ca: "ca", cert: "cert", key: "key" },
      replicas: 3,
    },
  );
});

test("TLS is spoken where the address says so, and NATS may be named for positions on their way back", () => {
  expect(readNats({ ...none, nats: "tls://a" }, "sqlite")?.tls).toBeDefined();
  expect(readNats({ ...none, nats: "nats://a" }, "sqlite")?.tls).toBeUndefined();
  expect(readNats(none, "sqlite")).toBeUndefined();
});

test.each([
  ["no address", {}],
  ["a password in the address, which is not repeated", { nats: "nats://me:secret@a:4222" }],
  ["another protocol", { nats: "http://a" }],
  ["a certificate without its key", { nats: "nats://a", "nats-cert": "cert" }],
  ["a number of replicas that NATS does not have", { nats: "nats://a", "nats-replicas": "7" }],
])("is refused: %s", (_, given) => {
  const refusal = () => readNats({ ...none, ...given }, "nats");
  expect(refusal).toThrow("WF_CLI_USAGE");
  expect(refusal).not.toThrow("secret");
});

test.each(["nats-creds", "nats-ca"])("a file of --%s that is not there is told of before anything starts", (option) => {
  const refusal = () => readNats({ ...none, nats: "nats://a", [option]: "/nowhere/watchfire.creds" }, "nats");
  expect(refusal).toThrow("WF_CLI_USAGE");
  expect(refusal).toThrow(`--${option}`);
  expect(refusal).toThrow("/nowhere/watchfire.creds");
});
