import { appendFileSync, mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { FileLock } from "../../runtime/cluster/storage/file-lock.ts";
import { StateFile } from "../../runtime/cluster/storage/state-file.ts";

const identity = { ca: "ca", certificate: "cert", key: "key", adminToken: "token", tokenKey: "tokenKey" };
const object = (name: string) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name } });
const put = (revision: number, key: string) => ({ revision, collection: "configmaps", key, object: object(key) });

let file: string;
let lock: FileLock;
beforeEach(() => {
  file = join(mkdtempSync(join(tmpdir(), "state-")), "state");
  lock = FileLock.take(file);
});
const open = () => new StateFile(file, lock, { identity, revision: 1, records: [] });

describe("a state file", () => {
  test("holds every write as soon as it is appended, without being closed", () => {
    const state = open();
    state.append(put(2, "a"));
    state.append(put(3, "b"));
    state.append({ revision: 4, collection: "configmaps", key: "a" });
    expect(StateFile.read(file)).toEqual({ identity, revision: 4, records: [put(3, "b")] });
  });

  test("loses only the line that a crash cut short", () => {
    const state = open();
    state.append(put(2, "a"));
    appendFileSync(file, JSON.stringify(put(3, "b")).slice(0, 20));
    const restored = StateFile.read(file);
    expect(restored?.records).toEqual([put(2, "a")]);
    if (restored) new StateFile(file, lock, restored).append(put(3, "c"));
    expect(StateFile.read(file)?.records).toEqual([put(2, "a"), put(3, "c")]);
  });

  test("is read by its owner alone", () => {
    open();
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test("does not grow without end while one object is written again and again", () => {
    const state = open();
    for (let revision = 2; revision < 50_000; revision++) state.append(put(revision, "a"));
    expect(readFileSync(file, "utf8").split("\n").length).toBeLessThan(25_000);
    expect(StateFile.read(file)).toMatchObject({ revision: 49_999, records: [put(49_999, "a")] });
  });

  test.each(["hello\n", "one line only", "the first line\nthe last, without an end"])(
    "that is none of ours is refused with its place, and left as it is: %j",
    (text) => {
      writeFileSync(file, text);
      expect(() => StateFile.read(file)).toThrow(`STATE_DAMAGED ${file}:1`);
      expect(readFileSync(file, "utf8")).toBe(text);
    },
  );

  test("is not shared: a second owner is told who the first is", () => {
    expect(() => FileLock.take(file)).toThrow(/STATE_LOCKED .*the process \d+ uses it/);
    lock.release();
    FileLock.take(file).release();
  });

  test("is taken over from an owner that died", () => {
    writeFileSync(`${file}.lock`, "2147483646");
    FileLock.take(file).release();
  });
});
