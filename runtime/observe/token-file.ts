import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { lstatSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeFolder } from "../base/folder.ts";

const tokenFile = (folder: string): string => join(folder, "token");

/** 32 bytes in base64url. */
const form = /^[\w-]{43}$/;

/**
 * The token of a data folder: whoever can read the folder may see, replay and drop its dead letters. One that is there
 * stays, since a standby may share the folder; otherwise it is made, for the folder's owner alone. Where it cannot be
 * kept nobody else learns of it: the folder's first real write tells what is wrong.
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

/** The folder's token; undefined where there is none, or none that this user may read. */
export function readToken(folder: string): string | undefined {
  try {
    const token = readFileSync(tokenFile(folder), "utf8").trim();
    return form.test(token) ? token : undefined;
  } catch {
    return undefined;
  }
}

/** A link, or a file that others can read, is none of ours. A volume's group (a pod's `fsGroup`) is the owner's own. */
function isPrivate(folder: string): boolean {
  const found = lstatSync(tokenFile(folder), { throwIfNoEntry: false });
  return found?.isFile() === true && (found.mode & 0o007) === 0;
}

/** Whether an Authorization header bears the token, in a time that does not tell how much of it. */
export function bears(header: string | undefined, token: string): boolean {
  const hash = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(header ?? ""), hash(`Bearer ${token}`));
}
