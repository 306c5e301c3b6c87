import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock } from "../../runtime/base/clock.ts";
import { writeBuilt } from "../../runtime/catalog/built-folder.ts";
import { FolderSource } from "../../runtime/catalog/folder-source.ts";
import { openCode } from "../../runtime/catalog/function-code.ts";
import { SigningKey, TrustedKeys } from "../../runtime/catalog/signature.ts";
import { watchfire } from "../cli/run.ts";
import { define, manifest, Session } from "../cli/session.ts";
import { folderOf } from "../tools/folder.ts";
import { ClusterProcess } from "../tools/watchfire-process.ts";

const signatureOf = (folder: string) => join(folder, "watchfire.lock.sig");
const lockOf = (folder: string) => join(folder, "watchfire.lock.json");

/** Two pairs of keys, as files. */
function keys() {
  const folder = folderOf({});
  const pair = (name: string) => {
    const { privateKey, publicKey } = generateKeyPairSync("ed25519");
    const write = (file: string, key: KeyObject, type: "pkcs8" | "spki") => {
      const path = join(folder, file);
      writeFileSync(path, key.export({ type, format: "pem" }));
      return path;
    };
    return { sign: write(`${name}.key`, privateKey, "pkcs8"), trust: write(`${name}.pub`, publicKey, "spki") };
  };
  return { ours: pair("ours"), theirs: pair("theirs") };
}

/** A folder of functions as `watchfire build --sign` writes it, without a build. */
function signed(key: SigningKey | undefined, script = "1;") {
  const out = join(folderOf({}), "build");
  writeBuilt(out, [{ name: "one", manifest: manifest("one"), script, sourceMap: "{}" }], key);
  return out;
}

test("of a build only what a trusted key signed is opened", () => {
  const { ours, theirs } = keys();
  const key = SigningKey.read(ours.sign);
  const trust = TrustedKeys.read([ours.trust]);
  const open = (folder: string) => () => openCode(folder, systemClock, trust).close();
  expect(open(signed(key))).not.toThrow();
  expect(open(signed(undefined))).toThrow(/^WF_BUILD_UNTRUSTED .*watchfire\.lock\.sig: there is no signature; /);
  expect(open(signed(SigningKey.read(theirs.sign)))).toThrow(/^WF_BUILD_UNTRUSTED .* by the key SHA256:/);

  const other = signed(key, "2;");
  cpSync(signatureOf(signed(key)), signatureOf(other));
  expect(open(other)).toThrow(/^WF_BUILD_UNTRUSTED .*other content/);

  // A valid signature of something other than a build.
  const lock = readFileSync(lockOf(other), "utf8");
  const words = { audience: "", serial: 0, content: lock } as const;
  writeFileSync(signatureOf(other), key.sign({ ...words, purpose: "deployed-functions" }));
  expect(open(other)).toThrow(/^WF_BUILD_UNTRUSTED .*other content/);
  writeFileSync(signatureOf(other), "x".repeat(100_000));
  expect(open(other)).toThrow(/^WF_BUILD_DAMAGED .*more than/);
});

test("a signature does not make up for a byte that differs", () => {
  const { ours } = keys();
  const out = signed(SigningKey.read(ours.sign));
  writeFileSync(join(out, "one/handler.js"), "2;");
  expect(() => openCode(out, systemClock, TrustedKeys.read([ours.trust]))).toThrow(/^WF_BUILD_DAMAGED /);
});

test("the same functions and key give the same signature", () => {
  const key = SigningKey.read(keys().ours.sign);
  const [one, other] = [signed(key), signed(key)].map((folder) => readFileSync(signatureOf(folder), "utf8"));
  expect(one).toBe(other);
});

test("the files that were checked are those that run: later changes of the folder have no part in it, be they manifests or functions", async () => {
  const { ours } = keys();
  const out = signed(SigningKey.read(ours.sign));
  const source = new FolderSource(out, openCode(out, systemClock, TrustedKeys.read([ours.trust])));
  const grants = async () =>
    (await source.read()).functions.map(({ manifest: { name, permissions } }) => [name, permissions]);
  const before = await grants();
  expect(before).toEqual([["one", []]]);
  const all = `  permissions: [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }]`;
  writeFileSync(join(out, "one/function.yaml"), manifest("one", all));
  define(out, "two");
  expect(await grants()).toEqual(before);
  rmSync(lockOf(out));
  expect(await grants()).toEqual(before);
});

test("of a folder that holds nothing that is signed nothing runs, whatever comes to lie there", async () => {
  const folder = folderOf({});
  const code = openCode(folder, systemClock, TrustedKeys.read([keys().ours.trust]));
  define(folder, "one");
  expect((await new FolderSource(folder, code).read()).functions).toEqual([]);
});

test("start --trust runs what build --sign wrote, with and without --deployed, and refuses all else; validate does", async () => {
  const { ours, theirs } = keys();
  const folder = folderOf({});
  const [functions, plain, out] = ["functions", "plain", "out"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  define(functions, "one");
  const build = async (to: string, ...more: string[]) =>
    (await watchfire(["build", "--functions", functions, "--out", to, ...more])).stderr;
  expect([await build(plain), await build(out, "--sign", ours.sign)]).toEqual(["", ""]);

  const cluster = await ClusterProcess.start(folder);
  const start = (from: string, ...more: string[]) => [
    ...["start", "--functions", from, "--data", join(folder, "data"), "--listen", "127.0.0.1:0"],
    ...["--kubeconfig", cluster.kubeconfig, ...more],
  ];
  const refusals = [
    start(plain, "--trust", ours.trust),
    start(out, "--trust", theirs.trust, "--deployed"),
    start(functions, "--trust", ours.trust),
    ["validate", "--functions", plain, "--trust", ours.trust],
    ["validate", "--functions", functions, "--trust", ours.trust],
  ];
  for (const refused of refusals) {
    const { status, stderr } = await watchfire(refused);
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^WF_BUILD_UNTRUSTED .*watchfire build --sign KEY/)]);
  }
  const { stdout } = await watchfire(["validate", "--functions", out, "--trust", ours.trust]);
  expect(stdout).toBe("1 valid, 0 faults, signed\n");
  for (const more of [[], ["--deployed"]]) {
    const session = new Session(start(out, "--trust", theirs.trust, "--trust", ours.trust, ...more));
    await session.says(/"msg":"ready"/);
    expect(session.output).not.toMatch(/"level":"(?:warn|error)"/);
    session.signal("SIGTERM");
    expect(await session.end()).toBe(0);
  }
  await cluster.stop();
}, 90_000);
