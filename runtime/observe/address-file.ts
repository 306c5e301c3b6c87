import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const addressFile = (folder: string): string => join(folder, "url");

/**
 * Leaves in the data folder where its runtime answers, for whoever finds the folder in use. It is a hint alone: that it
 * cannot be written stops nobody.
 * @param url `http://host:port` as it was bound; what listens on all addresses is reached by loopback
 */
export function leaveAddress(folder: string, url: string): void {
  try {
    writeFileSync(addressFile(folder), `${url.replace(/\/\/(?:0\.0\.0\.0|\[::\])(?=:)/, "//127.0.0.1")}\n`);
  } catch {
    // the folder's first real write tells what is wrong with it
  }
}

/** Where the folder's runtime answers, or answered last; undefined where none has said so. */
export function readAddress(folder: string): string | undefined {
  try {
    const text = readFileSync(addressFile(folder), "utf8").trim();
    return URL.canParse(text) ? text : undefined;
  } catch {
    return undefined;
  }
}
