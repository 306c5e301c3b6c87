import { builtInSchemaName } from "../built-in.ts";
import type { JsonObject } from "../json.ts";
import type { Operation } from "./operation.ts";

const outputs = ["application/json", "application/yaml"];
const patches = [
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/strategic-merge-patch+json",
  "application/apply-patch+yaml",
];

/**
 * Media types of a PATCH. A custom resource does not support strategic merge, and `kubectl apply` reads here whether it may send
 * one.
 */
function patchTypes({ kind }: Operation): string[] {
  const builtIn = builtInSchemaName(kind.group, kind.version, kind.kind) !== undefined;
  return builtIn ? patches : patches.filter((type) => !type.includes("strategic"));
}

/** The paths of an OpenAPI v3 document; `prefix` goes before a definition's name in a reference. */
export function pathsV3(operations: readonly Operation[], prefix: string): JsonObject {
  return paths(
    operations,
    (operation) => ({
      parameters: operation.query.map(([name, type]) => ({ name, in: "query", schema: { type, uniqueItems: true } })),
      ...(operation.body === undefined
        ? {}
        : {
            requestBody: {
              content: content(operation.method === "patch" ? patchTypes(operation) : ["*/*"], operation.body, prefix),
              required: operation.method !== "delete",
            },
          }),
      responses: {
        200: {
          description: "OK",
          ...(operation.response === undefined ? {} : { content: content(outputs, operation.response, prefix) }),
        },
        401: { description: "Unauthorized" },
      },
    }),
    (name) => ({ name, in: "path", required: true, schema: { type: "string", uniqueItems: true } }),
  );
}

/** The paths of an OpenAPI v2 document. */
export function pathsV2(operations: readonly Operation[], prefix: string): JsonObject {
  return paths(
    operations,
    (operation) => ({
      consumes: operation.method === "patch" ? patchTypes(operation) : ["*/*"],
      produces: outputs,
      schemes: ["https"],
      parameters: [
        ...(operation.body === undefined
          ? []
          : [
              {
                name: "body",
                in: "body",
                ...(operation.method === "delete" ? {} : { required: true }),
                schema: { $ref: prefix + operation.body },
              },
            ]),
        ...operation.query.map(([name, type]) => ({ name, in: "query", type, uniqueItems: true })),
      ],
      responses: {
        200: {
          description: "OK",
          ...(operation.response === undefined ? {} : { schema: { $ref: prefix + operation.response } }),
        },
        401: { description: "Unauthorized" },
      },
    }),
    (name) => ({ name, in: "path", required: true, type: "string", uniqueItems: true }),
  );
}

function paths(
  operations: readonly Operation[],
  write: (operation: Operation) => JsonObject,
  parameter: (name: string) => JsonObject,
): JsonObject {
  const written: Record<string, JsonObject> = {};
  for (const operation of operations) {
    const { path, method, action, id, kind } = operation;
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
    const item = written[path] ?? (names.length > 0 ? { parameters: names.map(parameter) } : {});
    written[path] = item;
    item[method] = {
      operationId: id,
      ...write(operation),
      "x-kubernetes-action": action,
      "x-kubernetes-group-version-kind": { ...kind },
    };
  }
  return written;
}

function content(types: readonly string[], name: string, prefix: string): JsonObject {
  return Object.fromEntries(types.map((type) => [type, { schema: { $ref: prefix + name } }]));
}
