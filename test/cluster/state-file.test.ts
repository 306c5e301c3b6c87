import { execFile } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
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

  test("holds every digit of a number, as it is appended and when it is rewritten", () => {
    const record = { ...put(2, "a"), object: { ...object("a"), spec: { id: 9007199254740993n } } };
    open().append(record);
    const restored = StateFile.read(file);
    expect(restored?.records).toEqual([record]);
    if (restored) new StateFile(file, lock, restored).close();
    expect(readFileSync(file, "utf8")).toContain('"spec":{"id":9007199254740993}');
    expect(StateFile.read(file)?.records).toEqual([record]);
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

  test("holds every write that was acknowledged and no other, though the disk was full for one", async () => {
    const program = join(import.meta.dirname, "full-disk.program.ts");
    lock.release();
    const limited = ["-c", `ulimit -f 800 && exec "$0" "$1" "$2"`, process.execPath, program, file];
    const { made, refused } = JSON.parse((await promisify(execFile)("sh", limited)).stdout);
    expect(refused).toEqual({ code: 500, message: expect.stringContaining(`FILE_REFUSED ${file}: `) });
    expect(made.at(-1)).toBe("small");
    const found = StateFile.read(file)?.records.map(({ key }) => key.replace("default/", ""));
    expect(found?.filter((name) => /^(?:large-|small)/.test(name))).toEqual(made);
  });

  test("keeps its writes where it cannot be rewritten, and is rewritten later", () => {
    const state = open();
    mkdirSync(`${file}.tmp`);
    for (let revision = 2; revision < 25_000; revision++) state.append(put(revision, "a"));
    expect(StateFile.read(file)).toMatchObject({ revision: 24_999, records: [put(24_999, "a")] });
    rmdirSync(`${file}.tmp`);
    for (let revision = 25_000; revision < 50_000; revision++) state.append(put(revision, "a"));
    expect(readFileSync(file, "utf8").split("\n").length).toBeLessThan(25_000);
    expect(StateFile.read(file)).toMatchObject({ revision: 49_999, records: [put(49_999, "a")] });
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
