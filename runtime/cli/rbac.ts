import { stringify } from "yaml";
import { systemClock } from "../base/clock.ts";
import { readEnvironment } from "../base/config.ts";
import { WatchfireError } from "../base/errors.ts";
import { checkExpression } from "../engine/filter/check-expression.ts";
import { ApiError } from "../kube/api-error.ts";
import { contactFault } from "../kube/contact-fault.ts";
import { Discovery } from "../kube/discovery.ts";
import type { KubeTransport, SharedTransport } from "../kube/transport.ts";
import { faultOfRule } from "../manifest/fault.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { type LoadedFunctions, type LoadOptions, loadFunctions } from "../manifest/load.ts";
import type { ManifestValues } from "../manifest/values.ts";
import { explanationOf, explanationText } from "../rbac/explanation.ts";
import { builtInKinds, definedKinds, firstOf, type KnownKinds, servedKinds } from "../rbac/kinds.ts";
import { functionObjects, rbacObjects } from "../rbac/objects.ts";
import { type PersonRoleOptions, personObjects, personRoles, personWords } from "../rbac/people.ts";
import type { RulesOptions } from "../rbac/rules.ts";
import { wildcardFaults } from "../rbac/wildcards.ts";
import { command, type Option } from "./command.ts";
import { readAccount, readNamespace } from "./operand.ts";
import { functions, output, serviceAccount } from "./options.ts";
import { runtimeNamespaceOption } from "./runtime-namespace.ts";
import { readSet } from "./set-name.ts";
import { readStore } from "./store-limits.ts";
import { readValues, valuesOption } from "./values.ts";
import { warn, warningsOfReach } from "./warning.ts";

/** The options that describe the runtime that the rules are for. */
export const rulesOptions = {
  namespace: { value: "NS", summary: "the runtime's namespace" },
  "service-account": serviceAccount,
  "leader-elect": { summary: "for a runtime that is started with --leader-elect" },
  store: { value: "KIND", summary: "for a runtime that is started with this --store", default: "sqlite" },
  slots: { summary: "for replicas that are started with --slots" },
  deployed: { summary: "for a runtime that is started with --deployed" },
  "sets-namespace": {
    value: "NS",
    summary: "for a runtime that is started with this --sets-namespace",
    many: true,
  },
  "function-status": { summary: "for a runtime that is started with --function-status" },
  "token-review": { summary: "for a runtime that is started with --token-review" },
} as const satisfies Record<string, Option>;

export const rbac = command({
  name: "rbac",
  summary: "prints the accounts, roles and bindings that the functions and their runtime need, and no more",
  options: {
    functions,
    ...rulesOptions,
    kubeconfig: { value: "FILE", summary: "asks this cluster for the resources of the triggers' kinds" },
    context: { value: "NAME", summary: "asks the cluster of this context" },
    values: valuesOption,
    "runtime-namespace": runtimeNamespaceOption,
    role: {
      value: "ROLE",
      summary: "prints instead the smallest Role of a person or a pipeline: deployer, operator or reader",
      choices: personRoles,
    },
    set: {
      value: "NAME",
      summary: "for --role operator and reader: only for the functions of the folder, the set NAME",
    },
    explain: { summary: "prints instead, in words, what each function can see and do; --namespace may be left out" },
    output: output("json"),
  },
  async run({ options, given }) {
    if (given.has("explain")) return explain(options);
    const rules = readRules(options, given);
    const person = readPerson(options);
    // All functions of a runtime need not be in the folder.
    if (person && person.role !== "deployer" && person.set === undefined) {
      return printPerson({ ...person, ...rules, functions: [], deployed: [] }, options.output);
    }
    const loaded = await readManifests(options.functions, readValues(options.values));
    if (!loaded) return 1;
    const { functions: manifests } = loaded;
    const { kubeconfig, context } = options;
    const asked = kubeconfig !== undefined || context !== undefined;
    const ask = async (transport: KubeTransport) => knownKinds(options.functions, manifests, transport);
    const kinds = asked
      ? await withCluster({ kubeconfig, context }, ({ transport }) => ask(transport))
      : await knownKinds(options.functions, manifests);
    if (!allExpressible(loaded, kinds, rules)) return 1;
    for (const { message } of warningsOfReach(loaded, rules)) warn(message);
    if (person) {
      const deployed = manifests.flatMap((each) => functionObjects(each, kinds, rules));
      return printPerson(
        { ...person, ...rules, functions: manifests.map(({ name }) => name), deployed },
        options.output,
      );
    }
    const objects = rbacObjects(manifests, kinds, rules);
    process.stdout.write(options.output === "json" ? json(listOf(objects)) : documents(objects));
    return 0;
  },
});

/** Returns the role to print; `undefined` without `--role`. @throws WatchfireError WF_CLI_USAGE */
export function readPerson({ role, set }: { readonly role: string | undefined; readonly set: string | undefined }) {
  const found = personRoles.find((each) => each === role);
  if (found !== undefined && (set === undefined || found !== "deployer")) {
    return { role: found, set: set === undefined ? undefined : readSet(set) };
  }
  if (set === undefined) return undefined;
  const what =
    found === undefined
      ? "--set is for --role"
      : "--set is for operator and reader: RBAC cannot limit a deployer to a set";
  throw new WatchfireError("WF_CLI_USAGE", { what });
}

/** Prints a role, in words first, and how it is bound. */
function printPerson(person: PersonRoleOptions, output: string): number {
  const objects = personObjects(person);
  if (output === "json") process.stdout.write(json(listOf(objects)));
  else {
    const bindings = objects.map(({ kind, metadata: { name, namespace } }) => {
      const where = namespace === undefined ? "" : ` -n ${namespace}`;
      return `#   kubectl${where} create ${kind.toLowerCase()}binding NAME --${kind.toLowerCase()}=${name} --user=USER`;
    });
    const words = personWords(person).map((each) => `# ${each}`);
    process.stdout.write(
      `${[...words, "# To bind it, also with --group or --serviceaccount:", ...bindings].join("\n")}\n`,
    );
    process.stdout.write(documents(objects));
  }
  return 0;
}

/**
 * Explains the rules. Needs no cluster and accepts wildcards, so that a reviewer can read what a manifest requests before it is
 * granted.
 */
async function explain(options: {
  readonly functions: string;
  readonly namespace: string | undefined;
  readonly "service-account": string;
  readonly output: string;
  readonly values: string | undefined;
}): Promise<number> {
  const namespace = options.namespace === undefined ? undefined : readNamespace(options.namespace);
  const runtime = { namespace, account: readAccount(options["service-account"]) };
  const loaded = await readManifests(options.functions, readValues(options.values));
  if (!loaded) return 1;
  const explained = loaded.functions.map((manifest) => explanationOf(manifest, runtime));
  process.stdout.write(
    options.output === "json" ? json({ functions: explained }) : explained.map(explanationText).join("\n"),
  );
  return 0;
}

const json = (value: object): string => `${JSON.stringify(value, null, 2)}\n`;

/** `kubectl apply` takes one JSON document: a list of several objects. */
const listOf = (items: readonly object[]) => ({ apiVersion: "v1", kind: "List", items });

const documents = (objects: readonly object[]): string => objects.map((each) => `---\n${stringify(each)}`).join("");

/**
 * Returns the command's output for these functions and a plain runtime in a namespace.
 * @throws WatchfireError if RBAC cannot express them
 */
export async function rbacText(
  folder: string,
  manifests: readonly FunctionManifest[],
  transport: KubeTransport,
  namespace: string,
): Promise<string> {
  const kinds = await knownKinds(folder, manifests, transport);
  const account = serviceAccount.default;
  const rules = {
    namespace,
    account,
    store: "sqlite",
    leaderElect: false,
    fleet: false,
    deployed: false,
    functionStatus: false,
    tokenReview: false,
  } as const;
  return documents(rbacObjects(manifests, kinds, rules));
}

/** @throws WatchfireError WF_CLI_USAGE for an invalid namespace or account */
export function readRules(
  options: {
    readonly namespace: string | undefined;
    readonly "runtime-namespace"?: string | undefined;
    readonly "sets-namespace"?: readonly string[];
    readonly "service-account": string;
    readonly store: string;
  },
  given: ReadonlySet<string>,
): RulesOptions {
  const { namespace, "service-account": account, store } = options;
  if (namespace === undefined) {
    const hint = "such as `watchfire rbac --namespace watchfire`; `watchfire rbac --explain` needs no namespace";
    throw new WatchfireError("WF_CLI_USAGE", { what: "--namespace is missing", hint });
  }
  return {
    namespace: readNamespace(namespace),
    ...(options["runtime-namespace"] !== undefined && {
      runtimeNamespace: readNamespace(options["runtime-namespace"], "--runtime-namespace"),
    }),
    account: readAccount(account),
    store: readStore(store),
    leaderElect: given.has("leader-elect"),
    fleet: given.has("slots"),
    deployed: given.has("deployed"),
    setNamespaces: (options["sets-namespace"] ?? []).map((each) => readNamespace(each, "--sets-namespace")),
    functionStatus: given.has("function-status"),
    tokenReview: given.has("token-review"),
  };
}

/** Returns every function of the folder. If one is refused, writes the faults to stderr and returns `undefined`. */
export async function readManifests(folder: string, values?: ManifestValues): Promise<LoadedFunctions | undefined> {
  const loaded = await readValidManifests(folder, { values, placeholders: "option" });
  if (loaded.faults.length > 0) return undefined;
  const unused = values?.unused() ?? [];
  for (const fault of unused) process.stderr.write(`${fault.message}\n`);
  return unused.length === 0 ? loaded : undefined;
}

/**
 * Returns the accepted functions of the folder. Faults of the others go to stderr.
 * @param filling how placeholders are filled. Default: not at all, and faults name `watchfire build --values`
 */
export async function readValidManifests(
  folder: string,
  filling: Pick<LoadOptions, "values" | "placeholders"> = { placeholders: "build" },
): Promise<LoadedFunctions> {
  const loaded = await loadFunctions(folder, { checkExpression, ...filling });
  for (const fault of loaded.faults) process.stderr.write(`${fault.message}\n`);
  return loaded;
}

/** Returns the known kinds: as the cluster serves them, if there is one, then built-in, then defined in the folder. */
export async function knownKinds(
  folder: string,
  manifests: readonly FunctionManifest[],
  transport?: KubeTransport,
): Promise<KnownKinds> {
  const offline = [builtInKinds, definedKinds(folder, manifests)];
  return transport
    ? firstOf(await servedKinds(new Discovery(transport, systemClock), manifests), ...offline)
    : firstOf(...offline);
}

/** True if RBAC can express the needs of every function. Writes what it cannot express to stderr. */
export const allExpressible = (loaded: LoadedFunctions, kinds: KnownKinds, rules: RulesOptions): boolean =>
  expressible(loaded, kinds, rules).length === loaded.functions.length;

/** Returns the functions whose needs RBAC can express. Writes what it cannot express for the others to stderr. */
export function expressible(
  { functions, documents }: LoadedFunctions,
  kinds: KnownKinds,
  rules: RulesOptions,
): FunctionManifest[] {
  const faultsOf = (manifest: FunctionManifest) => {
    const document = documents.get(manifest.name);
    const open = document ? wildcardFaults(manifest).map((each) => faultOfRule(each, document)) : [];
    if (open.length > 0) return open;
    try {
      functionObjects(manifest, kinds, rules);
      return [];
    } catch (error) {
      if (!(error instanceof WatchfireError)) throw error;
      return [error];
    }
  };
  return functions.filter((manifest) => {
    const faults = faultsOf(manifest);
    for (const fault of faults) process.stderr.write(`${fault.message}\n`);
    return faults.length === 0;
  });
}

/** Runs `act` with a connection to a cluster, and closes it. @throws WatchfireError WF_KUBE_CREDENTIALS and others */
export async function withCluster<T>(
  { kubeconfig, context }: { readonly kubeconfig: string | undefined; readonly context: string | undefined },
  act: (connection: { readonly transport: SharedTransport; readonly defaultNamespace: string }) => Promise<T>,
): Promise<T> {
  const { connectKubeconfig } = await import("../kube/kubeconfig.ts");
  const environment = readEnvironment().variables;
  const connection = await connectKubeconfig({ file: kubeconfig, context, environment });
  try {
    return await act(connection);
  } catch (error) {
    // An error that `act` does not handle concerns the connection.
    throw error instanceof ApiError ? contactFault(error, connection.transport.description) : error;
  } finally {
    await connection.transport.close();
  }
}
