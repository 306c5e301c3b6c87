/**
 * Rewrites built-in-kinds.json, the kinds that every cluster serves, from a running kube-apiserver without extensions:
 *
 *     KUBECONFIG=... node runtime/kube/refresh-built-in-kinds.ts
 *
 * Run it by hand when the Kubernetes version changes; it needs `kubectl` on the PATH.
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { z } from "zod";
import { apiVersionOf } from "./discovery.ts";
import { readLegacy } from "./discovery-document.ts";
import type { Resource } from "./resource.ts";

const get = (path: string): unknown =>
  JSON.parse(execFileSync("kubectl", ["get", "--raw", path], { encoding: "utf8", maxBuffer: 1 << 26 }));

const groupsSchema = z.object({
  groups: z.array(z.object({ name: z.string(), versions: z.array(z.object({ version: z.string() })) })),
});

const served = groupsSchema
  .parse(get("/apis"))
  .groups.flatMap(({ name, versions }) => versions.map(({ version }) => ({ group: name, version })));

const row = ({ kind, plural, namespaced }: Resource): string => `"${kind}": ["${plural}", ${namespaced}]`;

const texts = [{ group: "", version: "v1" }, ...served].map((each) => {
  const path = each.group === "" ? "/api/v1" : `/apis/${each.group}/${each.version}`;
  const resources = readLegacy(get(path), each.group, each.version)?.resources ?? [];
  // If a kind has several paths, keeps the one that can be watched.
  const rows = resources.filter(({ verbs }) => verbs.includes("watch")).map(row);
  return rows.length === 0 ? [] : [`  "${apiVersionOf(each)}": {\n    ${rows.sort().join(",\n    ")}\n  }`];
});
writeFileSync(new URL("built-in-kinds.json", import.meta.url), `{\n${texts.flat().sort().join(",\n")}\n}\n`);
