// Analyses the body of a write: an object, a merge patch, a strategic merge patch or a list of JSON patch operations.

/** Checks whether names belong to the runtime. */
export interface OwnNames {
  /** True if a ServiceAccount of the runtime's namespace is the runtime's or a function's. */
  readonly isAccount: (name: string) => boolean;
  /** True if an object of the runtime's namespace is the runtime's. */
  readonly isOwn: (name: string) => boolean;
}

/**
 * Fields by which a pod, or its template, runs under an account; and the annotation that fills a Secret with the account's token.
 */
const accountFields = new Set(["serviceAccountName", "serviceAccount", "kubernetes.io/service-account.name"]);
/**
 * Fields that name a Secret or a claim, such as `secretName`; and fields with such a `name`, such as `nodePublishSecretRef`. The
 * last three name the object of an Event.
 */
const objectField = /(?:^s|S)ecretName$|^(?:claimName|persistentVolumeClaimName)$/;
const referenceField =
  /(?:^s|S)ecret(?:Key)?Ref$|^(?:secret|imagePullSecrets|scaleTargetRef|targetRef|dataSource|dataSourceRef|involvedObject|regarding|related)$/;

/** The fields of a JSON patch operation that are used. */
interface Operation {
  readonly op?: unknown;
  readonly path?: unknown;
  readonly value?: unknown;
}

/** Returns the name in an object's body. */
export function namesOfBody(body: object | undefined): { readonly name?: string; readonly generateName?: string } {
  const { name, generateName } = (body as { metadata?: Record<string, unknown> } | undefined)?.metadata ?? {};
  return {
    ...(typeof name === "string" && { name }),
    ...(typeof generateName === "string" && generateName !== "" && { generateName }),
  };
}

/** True if the body sets, changes or removes a label with the prefix, or could. */
export const setsLabel = (body: object, prefix: string): boolean =>
  touches(body, "labels", (key) => key.startsWith(prefix));

/** True if the body sets an object's owners, or could. */
export const touchesOwners = (body: object | undefined): boolean =>
  body !== undefined && touches(body, "ownerReferences", () => true);

/**
 * True if a JSON patch writes at its root. A real API server (1.36) takes a document without a kind there for the metadata
 * itself, and later operations find the labels at `/labels`. The effect of such a patch cannot be determined from its fields.
 */
export const replacesWhole = (body: object): boolean =>
  Array.isArray(body) && body.some(({ op, path }: Operation) => op !== "test" && firstSteps(path).length === 0);

/** True if the body writes a field of the metadata under a key for which `concerns` is true. */
function touches(body: object, field: string, concerns: (key: string) => boolean): boolean {
  const inMetadata = (metadata: unknown) => isObject(metadata) && inField(metadata[field]);
  const inField = (value: unknown) => isObject(value) && Object.keys(value).some(concerns);
  if (!Array.isArray(body)) return inMetadata((body as Record<string, unknown>).metadata);
  return body.some(({ op, path, value }: Operation) => {
    if (op === "test") return false;
    const [first, second, key] = firstSteps(path);
    // Writes at the root are refused as a whole: see `replacesWhole`.
    if (first !== "metadata") return false;
    if (second !== undefined && second !== field) return false;
    if (key !== undefined) return concerns(key);
    // A value that is moved or copied to a parent may contain anything.
    if (op === "move" || op === "copy") return true;
    return second === undefined ? inMetadata(value) : inField(value);
  });
}

/**
 * Returns the field by which the body uses an account, a Secret or a claim of the runtime: for example a pod under the account, a
 * Secret to be filled with its token, an autoscaler of its pods, an Event about them. Visits every field.
 */
export function usesOwn(body: object, names: OwnNames): string | undefined {
  const isNaming = (field: string, within: string) =>
    accountFields.has(field) || objectField.test(field) || (field === "name" && referenceField.test(within));
  const isUsed = (field: string, within: string, value: string) =>
    isNaming(field, within) && (accountFields.has(field) ? names.isAccount(value) : names.isOwn(value));
  /** Not recursive, because a body may be nested deeper than the stack. `fields` has the field of each container. */
  const containers: object[] = [];
  const fields: string[] = [];
  const meet = (value: unknown, field: string, within: string): boolean => {
    if (typeof value === "string") return isUsed(field, within, value);
    if (isObject(value)) {
      containers.push(value);
      fields.push(field);
    }
    return false;
  };
  if (Array.isArray(body)) {
    for (const { op, path, value } of body as Operation[]) {
      const [within, field] = lastSteps(path);
      // The value of a move or copy is not in the operation.
      if ((op === "move" || op === "copy") && isNaming(field, within)) return field;
      if (meet(value, field, within)) return field;
    }
  } else meet(body, "", "");
  for (let container = containers.pop(); container; container = containers.pop()) {
    const within = fields.pop() ?? "";
    // Items of a list count as in the list's field.
    if (Array.isArray(container)) for (const item of container) meet(item, within, "");
    else {
      for (const field in container) {
        if (meet((container as Record<string, unknown>)[field], field, within)) return field;
      }
    }
  }
  return undefined;
}

/**
 * Returns up to three steps of a JSON pointer, split as the API server does (`evanphx/json-patch`, `findObject`). The part before
 * the first slash is ignored. Further steps are not read, because a pointer may have megabytes.
 */
const firstSteps = (path: unknown): string[] =>
  typeof path === "string" ? path.split("/", 4).slice(1).map(unescaped) : [];

/** Returns the last two steps. */
function lastSteps(path: unknown): [before: string, last: string] {
  if (typeof path !== "string") return ["", ""];
  const end = path.lastIndexOf("/");
  const before = end < 1 ? -1 : path.lastIndexOf("/", end - 1);
  if (end < 0) return ["", ""];
  return [before < 0 ? "" : unescaped(path.slice(before + 1, end)), unescaped(path.slice(end + 1))];
}

/** Longer than any key that matters: a label's key has at most 317 characters. */
const stepLimit = 1024;

const unescaped = (step: string): string => step.slice(0, stepLimit).replaceAll("~1", "/").replaceAll("~0", "~");

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
