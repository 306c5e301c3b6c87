import { chmodSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { keepToken, readToken } from "../../runtime/observe/token-file.ts";
import { folderOf } from "../tools/folder.ts";

test("a data folder's token is made once, in a file that only its owner can read", () => {
  const folder = join(folderOf({}), "data");
  const token = keepToken(folder);
  expect(statSync(join(folder, "token")).mode & 0o777).toBe(0o600);
  expect(keepToken(folder)).toBe(token);
  expect(readToken(folder)).toBe(token);
  expect(keepToken(folderOf({}))).not.toBe(token);
});

test("a token that others could read, a link, and what is no token are replaced", () => {
  const folder = folderOf({});
  const file = join(folder, "token");
  const before = keepToken(folder);
  chmodSync(file, 0o644);
  const second = keepToken(folder);
  expect(second).not.toBe(before);
  writeFileSync(file, "x\n");
  const third = keepToken(folder);
  expect([third === second, statSync(file).mode & 0o777]).toEqual([false, 0o600]);
  const elsewhere = folderOf({ token: `${"a".repeat(43)}\n` });
  const linked = folderOf({});
  mkdirSync(linked, { recursive: true });
  symlinkSync(join(elsewhere, "token"), join(linked, "token"));
  expect(keepToken(linked)).not.toBe("a".repeat(43));
});
