import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { bearerOf } from "../../runtime/kube/bearer-token.ts";
import { folderOf } from "../tools/folder.ts";
import { openSite } from "./kubeconfig/site.ts";

/** Reads a kubeconfig with this user. */
function bearerWith(user: object) {
  const folder = folderOf({});
  const file = join(folder, "config");
  writeFileSync(join(folder, "token"), "from-a-file\n");
  const text = JSON.stringify({
    clusters: [{ name: "c", cluster: { server: "https://127.0.0.1:1" } }],
    users: [{ name: "u", user }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u", namespace: "ops" } }],
    "current-context": "x",
  });
  writeFileSync(file, text);
  return bearerOf({ file, environment: {} });
}

test.each([
  ["its own token", { token: "t" }, "t"],
  ["a token in a file", { tokenFile: "token" }, "from-a-file"],
])("a user with %s has a bearer token", async (_, user, token) => {
  const { namespace, token: source } = await bearerWith(user);
  expect([namespace, await source?.()]).toEqual(["ops", token]);
});

test("a user with a client certificate has no token, and is said to have a certificate", async () => {
  const site = await openSite();
  onTestFinished(() => site.close());
  const base64 = (pem: string) => Buffer.from(pem).toString("base64");
  const user = { "client-certificate-data": base64(site.certificate), "client-key-data": base64(site.key) };
  expect(await bearerWith(user)).toEqual({ namespace: "ops", why: "it logs in with a client certificate" });
});

test("the token of a user who acts as another is not used, because the other one may do less", async () => {
  expect(await bearerWith({ token: "t", as: "bob" })).toMatchObject({
    why: expect.stringContaining("acts as another user"),
  });
});

test("without a usable context it is said why, and nothing is thrown", async () => {
  expect(await bearerOf({ file: join(folderOf({}), "absent"), environment: {} })).toMatchObject({
    why: expect.any(String),
  });
  expect(await bearerOf({ environment: {} })).toMatchObject({ namespace: undefined, why: expect.any(String) });
});
