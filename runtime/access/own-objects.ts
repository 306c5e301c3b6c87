import { WatchfireError } from "../base/errors.ts";
import { checkpointSecrets } from "../journal/secrets/names.ts";
import { describeDemand, type RequestAttributes } from "./grants.ts";
import type { Plan } from "./plan.ts";
import { namesOfBody, type OwnNames, replacesWhole, setsLabel, touchesOwners, usesOwn } from "./written-body.ts";

/** Labels below this prefix make an object the runtime's: `deploy` adopts, replaces and removes what carries them. */
const ownLabelPrefix = "watchfire.dev/";

/** The runtime's API group, of which `Function` is a kind. */
const ownGroup = "watchfire.dev";

/** The API server's certificate authority, which every pod of a namespace mounts, the runtime's as well. */
const authority = "kube-root-ca.crt";

/** Longer names are cut where they are too long for an object, and end in a hash: their beginning has to tell. */
const stemLimit = 200;

/** Random characters that the API server appends to `generateName` (apiserver `names/generate.go`). */
const generatedLength = 5;

/** Which runtime the objects belong to. */
interface OwnRuntime {
  /** Where its account, its pod and what is deployed for it lie. */
  readonly namespace: string;
  /** Its ServiceAccount, which its objects are called after. */
  readonly account: string;
  /** The pod's name, from which its StatefulSet's or Deployment's follows. Default: it runs in no pod. */
  readonly pod?: string | undefined;
  /** More objects of its namespace, of any kind, such as a Secret that its pod mounts. */
  readonly reserved?: readonly string[] | undefined;
}

/**
 * Tells what is the runtime's own, which no function may write, and of which none may read the Secrets, whatever its
 * manifest grants. Names decide, since all own names derive from the account's and the pod's: an object need not be read.
 */
export class OwnObjects {
  private readonly home: string;
  private readonly account: string;
  /** What the names of own objects are, or begin with before a `-` or a `.`. */
  private readonly stems: readonly string[];
  private readonly reserved: ReadonlySet<string>;
  private readonly hidden: readonly string[];
  private readonly names: OwnNames;

  constructor({ namespace, account, pod, reserved = [] }: OwnRuntime) {
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
  }

  /** Why a call may not be made, if it may not. `demand` is what it asks for, `plan` how. */
  objection(demand: RequestAttributes, plan: Plan): WatchfireError | undefined {
    const secret = this.readsSecret(demand);
    if (secret) return ownFault(demand, secret);
    if (demand.verb === "get" || demand.verb === "list") return undefined;
    const why = this.isNamed(demand, plan) ?? this.isMade(demand, plan);
    return why === undefined ? undefined : ownFault(demand, why);
  }

  /** Why no Event may be written about an object, if none may. */
  eventObjection(about: { readonly kind: string; readonly namespace?: string; readonly name: string }) {
    if (about.namespace !== this.home || !this.isOwnName(about.name)) return undefined;
    const demand: RequestAttributes = { group: "", resource: "events", verb: "create", namespace: this.home };
    return ownFault(demand, `the ${about.kind} ${about.name} that it is about is the runtime's own`);
  }

  /** Whether a Secret of the runtime's namespace is for the runtime alone: a store's, or one that its pod mounts. */
  isSecret(name: string): boolean {
    return this.reserved.has(name) || new RegExp(`^${RegExp.escape(this.account)}-checkpoint-\\d+$`).test(name);
  }

  /**
   * A field selector that leaves the runtime's own Secrets out of a list; undefined where there can be none among them. It
   * stands before the function's selector: after it, a trailing backslash of that one would take its comma away.
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
    return "the Secret holds what is the runtime's alone";
  }

  /** By the name of what is written. */
  private isNamed(
    { group, resource, verb, namespace, name: asked }: RequestAttributes,
    { body }: Plan,
  ): string | undefined {
    const { name = asked, generateName } = namesOfBody(body);
    const own = "it is the runtime's own";
    if (group === ownGroup) return own;
    if (group === "" && resource === "namespaces") {
      if (asked !== this.home) return undefined;
      if (verb === "delete") return "the runtime lives in it";
      return touchesOwners(body) ? "its owner's end would end the namespace, in which the runtime lives" : undefined;
    }
    const matches = (test: (name: string) => boolean) => [asked, name].some((each) => each !== undefined && test(each));
    if (namespace === undefined && matches((each) => each.endsWith(`.${ownGroup}`))) return own;
    if (group === "rbac.authorization.k8s.io") {
      const begins = (text: string) => belongs(text, this.account) || text.startsWith(`${this.home}:`);
      if (matches(begins) || (name === undefined && generateName !== undefined && begins(generateName))) return own;
    }
    if (namespace !== this.home) return undefined;
    if (matches((each) => this.isOwnName(each))) return own;
    return name === undefined && generateName !== undefined && this.canBecome(generateName) ? own : undefined;
  }

  /** By what is written into it. */
  private isMade({ group, resource, namespace }: RequestAttributes, { body }: Plan): string | undefined {
    if (body === undefined) return undefined;
    if (replacesWhole(body)) return "a JSON patch of the whole object could make it the runtime's own: use update";
    if (setsLabel(body, ownLabelPrefix))
      return `labels that begin with ${ownLabelPrefix} make an object the runtime's own`;
    if (namespace !== this.home) return undefined;
    const use = usesOwn(body, this.names);
    if (use === undefined) return undefined;
    // Whoever reads a namespace's Events takes what they say of the runtime for the runtime's word.
    const isEvent = resource === "events" && (group === "" || group === "events.k8s.io");
    return isEvent
      ? "the object that it is about is the runtime's own"
      : `by ${use} it would be given what is the runtime's own`;
  }

  /** Whether an object of the runtime's namespace of this name is its own, whatever its kind. */
  isOwnName(name: string): boolean {
    return this.reserved.has(name) || this.stems.some((stem) => belongs(name, stem));
  }

  /** Whether the API server could make an own name of it. */
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

/** A StatefulSet's pods end in a number, a Deployment's in the ReplicaSet's hash and one of their own. */
const workloadOf = (pod: string): string => pod.replace(/-\d+$|-[a-z0-9]{6,10}-[a-z0-9]{5}$/, "");

const ownFault = (demand: RequestAttributes, why: string): WatchfireError =>
  new WatchfireError("WF_ACCESS_OWN_OBJECT", { what: `the runtime refuses to ${describeDemand(demand)}: ${why}` });
