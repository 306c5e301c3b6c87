import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const addressFile = (folder: string): string => join(folder, "url");

/**
 * Writes the runtime's URL into its data folder, for processes that find the folder in use. It is only a hint, so write errors
 * are ignored.
 * @param url `http://host:port` as bound; a wildcard address is replaced by loopback
 */
export function leaveAddress(folder: string, url: string): void {
  try {
    writeFileSync(addressFile(folder), `${url.replace(/\/\/(?:0\.0\.0\.0|\[::\])(?=:)/, "//127.0.0.1")}\n`);
  } catch {
    // the folder's first real write reports the error
  }
}

/** Returns the current or last URL of the folder's runtime, or `undefined` if it has not written one. */
export function readAddress(folder: string): string | undefined {
  try {
    const text = readFileSync(addressFile(folder), "utf8").trim();
    return URL.canParse(text) ? text : undefined;
  } catch {
    return undefined;
  }
}
