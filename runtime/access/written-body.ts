// What a write's body does, read from an object, a merge patch, a strategic merge patch or a list of JSON patch operations.

/** How names are told to be the runtime's. */
export interface OwnNames {
  /** Whether a ServiceAccount of the runtime's namespace is the runtime's, or a function's. */
  readonly isAccount: (name: string) => boolean;
  /** Whether an object of the runtime's namespace is its own. */
  readonly isOwn: (name: string) => boolean;
}

/** Fields by which a pod, or what makes one, runs under an account; and the annotation that fills a Secret with its token. */
const accountFields = new Set(["serviceAccountName", "serviceAccount", "kubernetes.io/service-account.name"]);
/** Fields that name a Secret or a claim, and those whose `name` does. */
const objectFields = new Set(["secretName", "claimName", "persistentVolumeClaimName"]);
const referenceFields = new Set([
  "secretRef",
  "secretKeyRef",
  "secret",
  "scaleTargetRef",
  "targetRef",
  "dataSource",
  "dataSourceRef",
]);

/** One operation of a JSON patch, as far as it is looked at. */
interface Operation {
  readonly op?: unknown;
  readonly path?: unknown;
  readonly value?: unknown;
}

/** The name that an object's body gives itself. */
export function namesOfBody(body: object | undefined): { readonly name?: string; readonly generateName?: string } {
  const { name, generateName } = (body as { metadata?: Record<string, unknown> } | undefined)?.metadata ?? {};
  return {
    ...(typeof name === "string" && { name }),
    ...(typeof generateName === "string" && generateName !== "" && { generateName }),
  };
}

/** Whether the body sets, changes or removes a label whose key begins with the prefix, or could. */
export const setsLabel = (body: object, prefix: string): boolean =>
  touches(body, "labels", (key) => key.startsWith(prefix));

/** Whether the body sets an object's owners, or could. */
export const touchesOwners = (body: object | undefined): boolean =>
  body !== undefined && touches(body, "ownerReferences", () => true);

/** Whether a field of the metadata is written under a key that `concerns` us. */
function touches(body: object, field: string, concerns: (key: string) => boolean): boolean {
  const inMetadata = (metadata: unknown) => isObject(metadata) && inField(metadata[field]);
  const inField = (value: unknown) => isObject(value) && Object.keys(value).some(concerns);
  if (!Array.isArray(body)) return inMetadata((body as Record<string, unknown>).metadata);
  return body.some((operation: Operation) => {
    if (operation.op === "test") return false;
    const steps = stepsOf(operation.path);
    const [first, second, key] = steps;
    if (first !== undefined && first !== "metadata") return false;
    if (second !== undefined && second !== field) return false;
    if (key !== undefined) return concerns(key);
    // What is moved or copied to a place above may hold anything.
    if (operation.op === "move" || operation.op === "copy") return true;
    const value = operation.value;
    if (second !== undefined) return inField(value);
    return first === undefined ? isObject(value) && inMetadata(value.metadata) : inMetadata(value);
  });
}

/**
 * The field by which the body uses an account, a Secret or a claim of the runtime's: a pod that runs under the account, a
 * Secret that is to be filled with its token, an autoscaler of its pods. Looks at every field.
 */
export function usesOwn(body: object, names: OwnNames): string | undefined {
  const judged = (field: string, within: string | undefined, value: unknown): boolean => {
    if (typeof value !== "string") return false;
    if (accountFields.has(field)) return names.isAccount(value);
    if (objectFields.has(field)) return names.isOwn(value);
    return field === "name" && within !== undefined && referenceFields.has(within) && names.isOwn(value);
  };
  /** Without recursion: a body may be nested deeper than the stack. */
  const rest: { readonly value: unknown; readonly field: string; readonly within: string | undefined }[] = [];
  if (Array.isArray(body)) {
    for (const { op, path, value } of body as Operation[]) {
      const steps = stepsOf(path);
      const field = steps.at(-1) ?? "";
      const within = steps.at(-2);
      const named =
        accountFields.has(field) || objectFields.has(field) || (field === "name" && referenceFields.has(within ?? ""));
      // From where its value comes, the operation alone does not tell.
      if ((op === "move" || op === "copy") && named) return field;
      rest.push({ value, field, within });
    }
  } else rest.push({ value: body, field: "", within: undefined });
  for (let next = rest.pop(); next; next = rest.pop()) {
    const { value, field, within } = next;
    if (judged(field, within, value)) return field;
    if (Array.isArray(value)) for (const item of value) rest.push({ value: item, field: "", within: field });
    else if (isObject(value)) {
      for (const [key, inner] of Object.entries(value)) rest.push({ value: inner, field: key, within: field });
    }
  }
  return undefined;
}

/**
 * The steps of a JSON pointer as the API server takes it apart (`evanphx/json-patch`, `findObject`): what stands before the
 * first slash counts for nothing.
 */
function stepsOf(path: unknown): string[] {
  if (typeof path !== "string") return [];
  return path
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
