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
/**
 * Fields that name a Secret or a claim, such as `secretName`; and those whose `name` does, such as `nodePublishSecretRef`.
 * The last three say what an Event is about.
 */
const objectField = /(?:^s|S)ecretName$|^(?:claimName|persistentVolumeClaimName)$/;
const referenceField =
  /(?:^s|S)ecret(?:Key)?Ref$|^(?:secret|imagePullSecrets|scaleTargetRef|targetRef|dataSource|dataSourceRef|involvedObject|regarding|related)$/;

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

/**
 * Whether a JSON patch writes at its root. A real API server (1.36) takes a document without a kind there for the
 * metadata itself, and later operations find the labels at `/labels`. No reading of the fields tells what such a patch
 * does.
 */
export const replacesWhole = (body: object): boolean =>
  Array.isArray(body) && body.some(({ op, path }: Operation) => op !== "test" && firstSteps(path).length === 0);

/** Whether a field of the metadata is written under a key that `concerns` us. */
function touches(body: object, field: string, concerns: (key: string) => boolean): boolean {
  const inMetadata = (metadata: unknown) => isObject(metadata) && inField(metadata[field]);
  const inField = (value: unknown) => isObject(value) && Object.keys(value).some(concerns);
  if (!Array.isArray(body)) return inMetadata((body as Record<string, unknown>).metadata);
  return body.some(({ op, path, value }: Operation) => {
    if (op === "test") return false;
    const [first, second, key] = firstSteps(path);
    // What writes at the root is refused as a whole: see `replacesWhole`.
    if (first !== "metadata") return false;
    if (second !== undefined && second !== field) return false;
    if (key !== undefined) return concerns(key);
    // What is moved or copied to a place above may hold anything.
    if (op === "move" || op === "copy") return true;
    return second === undefined ? inMetadata(value) : inField(value);
  });
}

/**
 * The field by which the body uses an account, a Secret or a claim of the runtime's. Examples are a pod under the
 * account, a Secret to be filled with its token, an autoscaler of its pods, an Event about them. Looks at every field.
 */
export function usesOwn(body: object, names: OwnNames): string | undefined {
  const isNaming = (field: string, within: string) =>
    accountFields.has(field) || objectField.test(field) || (field === "name" && referenceField.test(within));
  const isUsed = (field: string, within: string, value: string) =>
    isNaming(field, within) && (accountFields.has(field) ? names.isAccount(value) : names.isOwn(value));
  /** Without recursion: a body may be nested deeper than the stack. Each container has the field in which it lies. */
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
      // From where its value comes, the operation alone does not tell.
      if ((op === "move" || op === "copy") && isNaming(field, within)) return field;
      if (meet(value, field, within)) return field;
    }
  } else meet(body, "", "");
  for (let container = containers.pop(); container; container = containers.pop()) {
    const within = fields.pop() ?? "";
    // What lies in a list lies in the list's field.
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
 * Up to three steps of a JSON pointer as the API server takes it apart (`evanphx/json-patch`, `findObject`). The part
 * before the first slash counts for nothing. No more are looked at, since a pointer may have megabytes.
 */
const firstSteps = (path: unknown): string[] =>
  typeof path === "string" ? path.split("/", 4).slice(1).map(unescaped) : [];

/** The last two steps. */
function lastSteps(path: unknown): [before: string, last: string] {
  if (typeof path !== "string") return ["", ""];
  const end = path.lastIndexOf("/");
  const before = end < 1 ? -1 : path.lastIndexOf("/", end - 1);
  if (end < 0) return ["", ""];
  return [before < 0 ? "" : unescaped(path.slice(before + 1, end)), unescaped(path.slice(end + 1))];
}

/** No key that concerns us is nearly as long: a label's has 317 characters at most. */
const stepLimit = 1024;

const unescaped = (step: string): string => step.slice(0, stepLimit).replaceAll("~1", "/").replaceAll("~0", "~");

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
