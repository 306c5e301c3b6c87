import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, inject, it } from "vitest";
import { publish } from "../../deploy/release/publish.ts";

const runtime = join(import.meta.dirname, "../../runtime/package.json");

it("npm would publish every package as it is packed, each after those that it depends on", () => {
  const { version } = JSON.parse(readFileSync(runtime, "utf8"));
  const names = ["@watchfire/sdk", "@watchfire/cluster", "@watchfire/runtime", "create-watchfire"];
  expect(publish(inject("tarballs"), ["--dry-run", "--loglevel=error"])).toEqual(
    names.map((name) => `${name}@${version}`),
  );
});
