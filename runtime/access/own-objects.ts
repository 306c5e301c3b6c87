import { WatchfireError } from "../base/errors.ts";
import { checkpointSecrets } from "../journal/secrets/names.ts";
import { describeDemand, type RequestAttributes } from "./grants.ts";
import type { Plan } from "./kube-operations.ts";
import { namesOfBody, type OwnNames, replacesWhole, setsLabel, touchesOwners, usesOwn } from "./written-body.ts";

/** Prefix of labels that mark the runtime's objects: `deploy` adopts, replaces and deletes objects with such labels. */
const ownLabelPrefix = "watchfire.dev/";

/** The runtime's API group, which has the kind `Function`. */
const ownGroup = "watchfire.dev";

/** The API server's certificate authority, which every pod of a namespace mounts, including the runtime's. */
const authority = "kube-root-ca.crt";

/** Maximum length of a name's beginning that is compared. Names too long for an object are cut and end in a hash. */
const stemLimit = 200;

/** Number of random characters that the API server appends to `generateName` (apiserver `names/generate.go`). */
const generatedLength = 5;

/** The runtime that the objects belong to. */
interface OwnRuntime {
  /** The namespace of its account, its pod and the deployed functions. */
  readonly namespace: string;
  /** Other namespaces with sets that it runs. Default: there are no others. */
  readonly setNamespaces?: readonly string[] | undefined;
  /** Its ServiceAccount, whose name is the prefix of its objects' names. */
  readonly account: string;
  /** Name of its pod, from which that of its StatefulSet or Deployment follows. Default: it does not run in a pod. */
  readonly pod?: string | undefined;
  /** Further objects of its namespace, of any kind, such as a Secret that its pod mounts. */
  readonly reserved?: readonly string[] | undefined;
}

/**
 * Recognises the runtime's objects, which no function may write, and its Secrets, which no function may read, whatever the
 * manifest grants. Only names are compared, because all own names derive from the account's and the pod's, so no object needs to
 * be read.
 */
export class OwnObjects {
  private readonly home: string;
  private readonly account: string;
  /** Names of own objects, or prefixes followed by `-` or `.`. */
  private readonly stems: readonly string[];
  private readonly reserved: ReadonlySet<string>;
  private readonly hidden: readonly string[];
  private readonly names: OwnNames;
  /** Other namespaces with deployed functions and their accounts. */
  private readonly shared: ReadonlySet<string>;
  /** The own names there. */
  private readonly sharedNames: OwnNames;

  constructor({ namespace, account, pod, reserved = [], setNamespaces = [] }: OwnRuntime) {
    const workload = pod === undefined ? [] : [workloadOf(pod)];
    this.home = namespace;
    this.account = account;
    this.stems = [...new Set([account, ...workload, ...workload.map((name) => `data-${name}`)])];
    this.reserved = new Set([...reserved, authority]);
    this.hidden = [...new Set([...checkpointSecrets(account), ...reserved])];
    this.names = {
      isAccount: (name) => belongs(name, account),
      isOwn: (name) => this.isOwnName(name),
    };
    this.shared = new Set(setNamespaces);
    this.sharedNames = { isAccount: this.names.isAccount, isOwn: this.names.isAccount };
  }

  /** Returns why a call is refused. `undefined` if it is allowed. */
  objection(demand: RequestAttributes, plan: Plan): WatchfireError | undefined {
    const secret = this.readsSecret(demand);
    if (secret) return ownFault(demand, secret);
    if (demand.verb === "get" || demand.verb === "list") return undefined;
    const why = this.isNamed(demand, plan) ?? this.isMade(demand, plan);
    return why === undefined ? undefined : ownFault(demand, why);
  }

  /** Returns why an Event about an object is refused. `undefined` if it is allowed. */
  eventObjection(about: { readonly kind: string; readonly namespace?: string; readonly name: string }) {
    if (about.namespace !== this.home || !this.isOwnName(about.name)) return undefined;
    const demand: RequestAttributes = { group: "", resource: "events", verb: "create", namespace: this.home };
    return ownFault(demand, `the ${about.kind} ${about.name} that it is about is the runtime's own`);
  }

  /** True for a Secret of the runtime's namespace that only the runtime may use: a store's, or one that its pod mounts. */
  isSecret(name: string): boolean {
    return this.reserved.has(name) || new RegExp(`^${RegExp.escape(this.account)}-checkpoint-\\d+$`).test(name);
  }

  /**
   * Returns a field selector that excludes the runtime's Secrets from a list. `undefined` if the list cannot contain any. It must
   * precede the function's selector, whose trailing backslash could otherwise escape the comma.
   */
  hiding({
    group,
    resource,
    namespace,
  }: Pick<RequestAttributes, "group" | "resource" | "namespace">): string | undefined {
    if (group !== "" || resource !== "secrets") return undefined;
    if (namespace !== undefined && namespace !== this.home) return undefined;
    return this.hidden.map((name) => `metadata.name!=${name}`).join(",");
  }

  private readsSecret({ group, resource, verb, namespace, name }: RequestAttributes): string | undefined {
    const read = group === "" && resource === "secrets" && verb === "get";
    if (!read || namespace !== this.home || name === undefined || !this.isSecret(name)) return undefined;
    return "the Secret belongs to the runtime";
  }

  /** Checks the name of the written object. */
  private isNamed(
    { group, resource, verb, namespace, name: asked }: RequestAttributes,
    { body }: Plan,
  ): string | undefined {
    const { name = asked, generateName } = namesOfBody(body);
    const own = "it is the runtime's own";
    if (group === ownGroup) return own;
    if (group === "" && resource === "namespaces") {
      if (asked !== this.home) return undefined;
      if (verb === "delete") return "the runtime is in it";
      return touchesOwners(body) ? "deleting its owner would delete the namespace that the runtime is in" : undefined;
    }
    const matches = (test: (name: string) => boolean) => [asked, name].some((each) => each !== undefined && test(each));
    if (namespace === undefined && matches((each) => each.endsWith(`.${ownGroup}`))) return own;
    if (group === "rbac.authorization.k8s.io") {
      const begins = (text: string) => belongs(text, this.account) || text.startsWith(`${this.home}:`);
      if (matches(begins) || (name === undefined && generateName !== undefined && begins(generateName))) return own;
    }
    const names = this.namesIn(namespace);
    if (!names) return undefined;
    if (matches(names.isOwn)) return own;
    return name === undefined && generateName !== undefined && this.canBecome(generateName) ? own : undefined;
  }

  /** Checks the content of the written object. */
  private isMade({ group, resource, namespace }: RequestAttributes, { body }: Plan): string | undefined {
    if (body === undefined) return undefined;
    if (replacesWhole(body)) return "a JSON patch of the whole object could make it the runtime's own: use update";
    if (setsLabel(body, ownLabelPrefix))
      return `labels that begin with ${ownLabelPrefix} make an object the runtime's own`;
    const names = this.namesIn(namespace);
    const use = names && usesOwn(body, names);
    if (use === undefined) return undefined;
    // Readers of a namespace's Events take those about the runtime as the runtime's word.
    const isEvent = resource === "events" && (group === "" || group === "events.k8s.io");
    return isEvent
      ? "the object that it is about is the runtime's own"
      : `by ${use} it would be given what is the runtime's own`;
  }

  /** Returns the runtime's names in a namespace. `undefined` if it has no objects there. */
  private namesIn(namespace: string | undefined): OwnNames | undefined {
    if (namespace === this.home) return this.names;
    return namespace !== undefined && this.shared.has(namespace) ? this.sharedNames : undefined;
  }

  /** True if an object of this name in the runtime's namespace is its own, whatever the kind. */
  isOwnName(name: string): boolean {
    return this.reserved.has(name) || this.stems.some((stem) => belongs(name, stem));
  }

  /** True if the API server could generate an own name from the prefix. */
  private canBecome(generateName: string): boolean {
    if (this.stems.some((stem) => generateName.startsWith(`${stem}-`) || generateName.startsWith(`${stem}.`)))
      return true;
    const made = (name: string) =>
      name.length - generateName.length === generatedLength && name.startsWith(generateName);
    return [...this.stems, ...this.reserved].some(made);
  }
}

function belongs(name: string, stem: string): boolean {
  if (stem.length > stemLimit) return name.startsWith(stem.slice(0, stemLimit));
  return name === stem || name.startsWith(`${stem}-`) || name.startsWith(`${stem}.`);
}

/**
 * Returns the name of a pod's workload. A StatefulSet's pods end in a number, a Deployment's in the ReplicaSet's hash and a
 * random part.
 */
const workloadOf = (pod: string): string => pod.replace(/-\d+$|-[a-z0-9]{6,10}-[a-z0-9]{5}$/, "");

const ownFault = (demand: RequestAttributes, why: string): WatchfireError =>
  new WatchfireError("WF_ACCESS_OWN_OBJECT", { what: `the runtime refuses to ${describeDemand(demand)}: ${why}` });
