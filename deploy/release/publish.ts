// npm run release:publish -- WORDS: publishes every package, made anew, with these words for `npm publish`.
import { execFileSync } from "node:child_process";
import { packAll } from "../npm/pack.ts";
import { output } from "../npm/packages.ts";

/** Publishes tarballs, in this order; gives what npm calls each of them, such as `@watchfire/sdk@1.2.3`. */
export const publish = (tarballs: readonly string[], words: readonly string[]): string[] =>
  tarballs.map((tarball) =>
    execFileSync("npm", ["publish", tarball, "--access", "public", ...words], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "inherit"],
    })
      .trim()
      .replace(/^\+ /, ""),
  );

if (import.meta.main) process.stdout.write(`${publish(await packAll(output), process.argv.slice(2)).join("\n")}\n`);
