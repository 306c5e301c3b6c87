// npm run release:publish -- ARGUMENTS: packs and publishes every package, passing these arguments to `npm publish`.
import { execFileSync } from "node:child_process";
import { packAll } from "../npm/pack.ts";
import { output } from "../npm/packages.ts";

/** Publishes tarballs, in this order; returns their npm names, such as `@watchfire/sdk@1.2.3`. */
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
