import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { lstatSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeFolder } from "../base/folder.ts";

const tokenFile = (folder: string): string => join(folder, "token");

/** 32 bytes in base64url. */
const form = /^[\w-]{43}$/;

/**
 * Returns the token of a data folder, which authorises seeing, replaying and dropping its dead letters. An existing token is
 * kept, since a standby may share the folder; otherwise it is created, readable by the folder's owner only. If it cannot be
 * saved, it is known only to this process, and the folder's first real write reports the error.
 */
export function keepToken(folder: string): string {
  const kept = readToken(folder);
  if (kept !== undefined && isPrivate(folder)) return kept;
  const token = randomBytes(32).toString("base64url");
  try {
    makeFolder(folder, 0o700);
    rmSync(tokenFile(folder), { force: true });
    writeFileSync(tokenFile(folder), `${token}\n`, { mode: 0o600, flag: "wx" });
    return token;
  } catch {
    return readToken(folder) ?? token;
  }
}

/** Returns the folder's token, or `undefined` if it does not exist or this user may not read it. */
export function readToken(folder: string): string | undefined {
  try {
    const token = readFileSync(tokenFile(folder), "utf8").trim();
    return form.test(token) ? token : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Whether the file can be trusted: not a link, and not accessible to others. The group may have access: a volume's group (a pod's
 * `fsGroup`) belongs to the owner.
 */
function isPrivate(folder: string): boolean {
  const found = lstatSync(tokenFile(folder), { throwIfNoEntry: false });
  return found?.isFile() === true && (found.mode & 0o007) === 0;
}

/** Whether an Authorization header contains the token. Takes constant time. */
export function bears(header: string | undefined, token: string): boolean {
  const hash = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(header ?? ""), hash(`Bearer ${token}`));
}
