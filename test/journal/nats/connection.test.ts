import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { WatchfireError } from "../../../runtime/base/errors.ts";
import { Nats } from "../../../runtime/journal/nats/connection.ts";

/** The error of a connection with such a credentials file. No server listens at the address. */
async function refusal(credentials: string): Promise<WatchfireError> {
  const folder = mkdtempSync(join(tmpdir(), "watchfire-creds-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "user.creds");
  writeFileSync(file, credentials);
  const log = { info: () => {}, warn: () => {} };
  const made = Nats.connect({ servers: ["nats://127.0.0.1:1"], credentials: file, name: "creds", log });
  return made.then(
    () => expect.unreachable("it connects"),
    (error: unknown) => error as WatchfireError,
  );
}

test.each([
  ["nothing", ""],
  ["a password", "user: a\npassword: b\n"],
  ["a token without its seed", "-----BEGIN NATS USER JWT-----\neyJ0\n------END NATS USER JWT------\n"],
])("credentials that hold %s are refused before anything is asked, with their file", async (_, text) => {
  const error = await refusal(text);
  expect(error).toBeInstanceOf(WatchfireError);
  expect([error.code, error.detail.place?.file]).toEqual(["WF_CHECKPOINT_NATS", expect.stringContaining("user.creds")]);
});

test("credentials that look like a user's are shown to a server", async () => {
  const seed = `SU${"A".repeat(56)}`;
  const text = `-----BEGIN NATS USER JWT-----\neyJ0\n------END NATS USER JWT------\n-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`;
  expect((await refusal(text)).code).toBe("WF_CHECKPOINT_NATS_AWAY");
});
