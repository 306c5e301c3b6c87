import { z } from "zod";
import { parseExactly } from "../base/exact-json.ts";
import { argumentFault } from "./argument-fault.ts";
import { invalid } from "./failure.ts";
import { callVerbs } from "./grants.ts";
import { type KubeOperation, kubeOperations, selectorSchema } from "./kube-operations.ts";
import { collectionShape, refSchema } from "./reference.ts";

/** Maximum length of a key of `ctx.state`: that of an event's id, which is often used as one, and more. */
const longestStateKey = 512;
const stateKey = z.string().min(1, { error: "is empty" }).max(longestStateKey);

/** Schemas of each operation's arguments. The guest's counterpart is `Operations` of the SDK. */
const argumentSchemas = {
  ...(Object.fromEntries(Object.entries(kubeOperations).map(([name, { args }]) => [name, args])) as {
    readonly [Name in KubeOperation]: (typeof kubeOperations)[Name]["args"];
  }),
  "kube.kinds": z.strictObject({
    verbs: z.array(z.enum(callVerbs)).min(1).max(callVerbs.length).default(["list"]),
    namespace: collectionShape.namespace,
  }),
  "cache.get": z.strictObject({ ref: refSchema }),
  "cache.list": z.strictObject({
    ...collectionShape,
    labelSelector: selectorSchema,
    // zod skips a key `__proto__`, and a list without its index would return all objects.
    index: z
      .unknown()
      .refine((index) => !Object.hasOwn(Object(index), "__proto__"), { error: "names no field" })
      // Checked before the names, because checking 40,000 names takes half a second.
      .refine((index) => Array.isArray(index) || Object.keys(Object(index)).length <= 1, {
        error: "names more than one index",
      })
      .pipe(z.record(z.string().max(63), z.string().max(1024)))
      .optional(),
  }),
  "cache.age": z.strictObject({ apiVersion: collectionShape.apiVersion, kind: collectionShape.kind }),
  "state.get": z.strictObject({ key: stateKey }),
  "state.keys": z.strictObject({ prefix: z.string().max(longestStateKey).default("") }),
  "state.set": z.strictObject({
    key: stateKey,
    value: z
      .unknown()
      .refine((value) => value !== undefined, { error: "is missing; ctx.state.delete removes an entry" }),
  }),
  "state.delete": z.strictObject({ key: stateKey }),
  "events.emit": z.strictObject({
    object: refSchema.extend({ uid: z.string().max(128).optional(), resourceVersion: z.string().max(128).optional() }),
    type: z.enum(["Normal", "Warning"]),
    reason: z.string().regex(/^\w{1,128}$/, { error: "is not a word of at most 128 letters, digits or _" }),
    message: z.string(),
  }),
  fetch: z.strictObject({
    url: z.string().max(8192),
    method: z.string().max(32).default("GET"),
    headers: z
      .array(z.tuple([z.string().max(256), z.string().max(16_384)]))
      .max(100)
      .default([]),
    body: z.base64().optional(),
    redirect: z.enum(["follow", "error", "manual"]).default("follow"),
  }),
} as const satisfies Record<string, z.ZodType>;

/** The name of an operation that a guest may request. */
export type OperationName = keyof typeof argumentSchemas;

/** Checked arguments of one operation. */
export type ArgumentsOf<Name extends OperationName> = z.output<(typeof argumentSchemas)[Name]>;

/** True if a guest's string names an operation. */
export const isOperation = (name: string): name is OperationName => Object.hasOwn(argumentSchemas, name);

/** Parses and checks a guest's JSON text. Throws an InvalidError that names the invalid field. */
export function readArguments<Name extends OperationName>(operation: Name, text: string): ArgumentsOf<Name> {
  let value: unknown;
  try {
    value = parseExactly(text);
  } catch {
    throw invalid(`${operation}: the arguments are not JSON`);
  }
  // A patch without a type is a merge patch; the union requires the type.
  if (operation === "kube.patch" && typeof value === "object" && value !== null && !("type" in value)) {
    value = { ...value, type: "merge" };
  }
  const checked = argumentSchemas[operation].safeParse(value);
  // An object's names are checked, and the object is sent as received. So is a value of the state.
  if (checked.success) return { ...checked.data, ...asReceived(value) } as ArgumentsOf<Name>;
  const [issue] = checked.error.issues;
  throw invalid(issue ? argumentFault(operation, issue, value) : `${operation}: the arguments are wrong`);
}

const asReceived = (args: unknown): { object?: unknown; value?: unknown } => {
  const { object, value } = args as { object?: unknown; value?: unknown };
  return { ...(object !== undefined && { object }), ...(value !== undefined && { value }) };
};
