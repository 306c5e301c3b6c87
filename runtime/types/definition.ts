import { globSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { WatchfireError } from "../base/errors.ts";
import { lowerFirst, systemReason } from "../base/wording.ts";
import { showPath } from "../document/path.ts";
import * as names from "../kube/names.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { structuralSchema } from "./structural-schema.ts";

/** Limit of a file, in bytes. Definitions of a large operator take a megabyte. */
const fileLimit = 4 * 1024 * 1024;

/** Definitions per page. Some take half a megabyte each; a page stays below a transport's limit. */
const pageSize = 50;

/** Names that become part of a file name or of code must be valid for the API server. */
const subdomain = z.string().regex(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/, "expected a DNS name");
const kind = z.string().regex(names.kind, "expected a kind, such as Shop");

/** Schema of a version without a schema. */
const anything = { "x-kubernetes-preserve-unknown-fields": true };

const definitionSchema = z.looseObject({
  kind: z.literal("CustomResourceDefinition"),
  metadata: z.looseObject({ name: subdomain }),
  spec: z.looseObject({
    group: subdomain,
    names: z.looseObject({ kind }),
    versions: z.array(
      z.looseObject({
        name: z.string().regex(/^[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/, "expected a version, such as v1"),
        served: z.boolean().default(true),
        schema: z.looseObject({ openAPIV3Schema: structuralSchema }).default({ openAPIV3Schema: anything }),
      }),
    ),
  }),
});

/** A CustomResourceDefinition, reduced to the fields that types are made from. */
export type Definition = z.infer<typeof definitionSchema>;

/** A document that may contain a definition: the definition itself, or kubectl's list of several. */
const documentSchema = z.looseObject({ kind: z.string(), items: z.array(z.unknown()).optional() });

/**
 * Reads the definitions in a file, or in the YAML and JSON files below a folder; documents of other kinds are ignored.
 * @throws WatchfireError WF_TYPES_DEFINITION for a path that cannot be read, and for an invalid definition
 */
export function readDefinitions(path: string): Definition[] {
  try {
    if (!statSync(path).isDirectory()) return definitionsOf(path);
    const names = globSync("**/*.{yaml,yml,json}", { cwd: path, exclude: ["**/node_modules", "**/.*"] }).sort();
    return names
      .map((name) => join(path, name))
      .filter((file) => statSync(file).isFile() && statSync(file).size <= fileLimit)
      .flatMap(definitionsOf);
  } catch (cause) {
    if (cause instanceof WatchfireError) throw cause;
    const hint = "name a file or folder that can be read with --crd";
    throw new WatchfireError("WF_TYPES_DEFINITION", { what: systemReason(cause), place: { file: path }, hint, cause });
  }
}

function definitionsOf(file: string): Definition[] {
  const text = readFileSync(file, "utf8");
  if (!text.includes("CustomResourceDefinition")) return [];
  return parseAllDocuments(text).flatMap((document) => {
    const [error] = document.errors;
    if (error) {
      const [at] = error.linePos ?? [];
      const place = { file, ...(at && { line: at.line, column: at.col }) };
      throw new WatchfireError("WF_TYPES_DEFINITION", {
        what: lowerFirst(error.message.replace(/ at line \d[\s\S]*/, "")),
        place,
      });
    }
    return definitionsIn(document.toJS(), file);
  });
}

function definitionsIn(value: unknown, file: string): Definition[] {
  const document = documentSchema.safeParse(value).data;
  if (document?.items) return document.items.flatMap((item) => definitionsIn(item, file));
  return document?.kind === "CustomResourceDefinition" ? [read(value, { file })] : [];
}

/** Returns the definitions of a cluster. @throws what the transport throws, and WF_TYPES_DEFINITION */
export async function fetchDefinitions(transport: KubeTransport): Promise<Definition[]> {
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const found: Definition[] = [];
  let next: string | undefined;
  do {
    const query = { limit: String(pageSize), continue: next };
    const page = pageSchema.parse(await transport.json<unknown>({ method: "GET", path, query }));
    // Items of a list lack their kind.
    for (const item of page.items) found.push(read({ ...item, kind: "CustomResourceDefinition" }, undefined));
    next = page.metadata.continue || undefined;
  } while (next !== undefined);
  return found;
}

const pageSchema = z.looseObject({
  items: z.array(z.looseObject({})),
  metadata: z.looseObject({ continue: z.string().optional() }),
});

function read(value: unknown, place: { readonly file: string } | undefined): Definition {
  const { data, error } = definitionSchema.safeParse(value);
  if (data) return data;
  const [issue] = error.issues;
  throw new WatchfireError("WF_TYPES_DEFINITION", {
    what: lowerFirst(issue?.message ?? "it is not a CustomResourceDefinition").replace(/^invalid input: /, ""),
    path: showPath(issue?.path ?? []),
    ...(place && { place }),
  });
}
