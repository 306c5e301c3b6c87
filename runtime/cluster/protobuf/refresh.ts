/**
 * Generates `messages.json`, the table for decoding protobuf bodies, from the Go modules of a Kubernetes release:
 *
 *     node runtime/cluster/protobuf/refresh.ts "$(go env GOMODCACHE)/k8s.io" v0.36.3
 *
 * The field numbers come from each package's `generated.proto`; the JSON names, and whether Go leaves out a zero, from
 * the struct tags in its `types.go`.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [modules = "", release = ""] = process.argv.slice(2);

/** Packages of the served kinds and of the types that they use: short name and folder. */
const packages: [string, string][] = [
  ["core.v1", `api@${release}/core/v1`],
  ["apps.v1", `api@${release}/apps/v1`],
  ["batch.v1", `api@${release}/batch/v1`],
  ["coordination.v1", `api@${release}/coordination/v1`],
  ["events.v1", `api@${release}/events/v1`],
  ["rbac.v1", `api@${release}/rbac/v1`],
  ["authorization.v1", `api@${release}/authorization/v1`],
  ["authentication.v1", `api@${release}/authentication/v1`],
  ["networking.v1", `api@${release}/networking/v1`],
  ["policy.v1", `api@${release}/policy/v1`],
  ["autoscaling.v1", `api@${release}/autoscaling/v1`],
  ["autoscaling.v2", `api@${release}/autoscaling/v2`],
  ["discovery.v1", `api@${release}/discovery/v1`],
  ["storage.v1", `api@${release}/storage/v1`],
  ["certificates.v1", `api@${release}/certificates/v1`],
  ["flowcontrol.v1", `api@${release}/flowcontrol/v1`],
  ["node.v1", `api@${release}/node/v1`],
  ["scheduling.v1", `api@${release}/scheduling/v1`],
  ["admissionregistration.v1", `api@${release}/admissionregistration/v1`],
  ["apiextensions.v1", `apiextensions-apiserver@${release}/pkg/apis/apiextensions/v1`],
  ["meta.v1", `apimachinery@${release}/pkg/apis/meta/v1`],
];

/** A struct field's tags: its protobuf number and its JSON name. */
interface Tag {
  json: string;
  inline: boolean;
  dropZero: boolean;
}

function tagsOf(folder: string): Map<string, Tag> {
  const tags = new Map<string, Tag>();
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".go") && !name.startsWith("generated"))) {
    let struct = "";
    for (const line of readFileSync(join(folder, file), "utf8").split("\n")) {
      struct = /^type (\w+) struct/.exec(line)?.[1] ?? struct;
      const match = /^\s+(?:\w+\s+)?(\S+)\s+`json:"([^"]*)"[^`]*protobuf:"[^"]*name=(\w+)/.exec(line);
      if (!match) continue;
      const [, type = "", json = "", name = ""] = match;
      const [jsonName = "", ...options] = json.split(",");
      const inline = options.includes("inline");
      const dropZero = options.includes("omitempty") && !type.startsWith("*");
      tags.set(`${struct}.${name}`, { json: jsonName || name, inline, dropZero });
    }
  }
  return tags;
}

function shortType(type: string, own: string): string {
  const map = /^map<(\w+), (.+)>$/.exec(type);
  if (map) return `map<${shortType(map[2] ?? "", own)}>`;
  const parts = type.replace(/^\./, "").split(".");
  if (parts.length > 1) return parts.slice(-2).join(".") === "v1.ObjectMeta" ? "meta.v1.ObjectMeta" : fullName(parts);
  return /^(string|bool|bytes|double|int32|int64)$/.test(type) ? type : `${own}.${type}`;
}

function fullName(parts: string[]): string {
  const known = packages.map(([name]) => name).find((name) => parts.slice(-3, -1).join(".") === name);
  return known ? `${known}.${parts.at(-1)}` : parts.slice(-2).join(".");
}

const messages: Record<string, string[]> = {};
for (const [name, path] of packages) {
  const folder = join(modules, path);
  if (!existsSync(folder)) throw new Error(`no folder ${folder}`);
  const tags = tagsOf(folder);
  let message = "";
  for (const line of readFileSync(join(folder, "generated.proto"), "utf8").split("\n")) {
    message = /^message (\w+)/.exec(line)?.[1] ?? message;
    if (/^message/.test(line)) messages[`${name}.${message}`] = [];
    const field = /^ {2}(optional|repeated|map)\s*(<[^>]+>|\S+) (\w+) = (\d+);/.exec(line);
    if (!field) continue;
    const [, rule = "", type = "", proto = "", number = ""] = field;
    const tag = tags.get(`${message}.${proto}`) ?? { json: proto, inline: false, dropZero: false };
    const short = shortType(rule === "map" ? `map${type}` : type, name);
    const flags = `${rule === "repeated" ? "r" : ""}${tag.inline ? "i" : ""}${tag.dropZero ? "z" : ""}`;
    messages[`${name}.${message}`]?.push([number, tag.json, short, flags].join(" ").trim());
  }
}

/** The messages that the stored and virtual kinds and the request options use. */
function reachable(): Record<string, string[]> {
  const wanted = new Set<string>();
  const visit = (name: string) => {
    if (wanted.has(name) || !messages[name]) return;
    wanted.add(name);
    for (const field of messages[name]) visit((field.split(" ")[2] ?? "").replace(/^map<(.*)>$/, "$1"));
  };
  for (const [name, fields] of Object.entries(messages)) {
    const kind = fields.some((field) => field.startsWith("1 metadata meta.v1.ObjectMeta"));
    if (kind || /^meta\.v1\.\w+Options$/.test(name)) visit(name);
  }
  return Object.fromEntries(Object.entries(messages).filter(([name]) => wanted.has(name)));
}

const lines = Object.entries(reachable()).map(
  ([name, fields]) => `${JSON.stringify(name)}:${JSON.stringify(fields.join(";"))}`,
);
writeFileSync(new URL("messages.json", import.meta.url), `{\n${lines.join(",\n")}\n}\n`);
