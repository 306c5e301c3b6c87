import { resourceVersion } from "../../../runtime/base/resource-version.ts";
import type { Change, ObjectMeta } from "../../../runtime/informer/scan/change.ts";
import type { ChangeType, Trigger } from "../../../runtime/manifest/function.ts";
import type { Dice } from "../random.ts";
import { type Content, maybe, names, namespaceLabels, namespaces } from "./choices.ts";
import { kinds } from "./spec.ts";

/** One state of an object, or its deletion, which shows the state before it. */
export interface Revision extends Content {
  readonly rv: number;
  readonly type: ChangeType;
  readonly kind: string;
  readonly uid: string;
  /** When the revision was written, on the counter of all that happens in the world. */
  readonly tick: number;
}

export const keyOf = ({ namespace, name }: Pick<Content, "namespace" | "name">): string => `${namespace}/${name}`;

/** The part of a trigger that chooses objects. */
export type Chosen = Pick<Trigger, "kind" | "namespaces" | "labelSelector" | "fieldSelector">;

/** The part of a trigger that says how its objects are shown. */
export type Form = Pick<Trigger, "apiVersion" | "kind" | "object">;

/** The cluster's true history: the oracle. All kinds count their resourceVersions together. */
export class Cluster {
  readonly log: Revision[] = [];
  /** Changes up to here can no longer be watched. */
  compacted = 0;
  now = 10;
  private readonly nextTick: () => number;
  private uids = 0;
  private readonly alive = new Map<string, Revision>();

  constructor(nextTick: () => number) {
    this.nextTick = nextTick;
  }

  /** Makes a random change, preferably of an existing object of a watched kind. */
  change(dice: Dice, watched: readonly string[] = kinds): void {
    const kind = dice.chance(0.9) ? dice.pick(watched) : dice.pick(kinds);
    const [namespace, name] = [dice.pick(["red", ...namespaces]), dice.pick(names)];
    const here = [...this.alive.values()].filter((it) => it.kind === kind);
    const isOld = here.length > 0 && dice.chance(0.5);
    const was = isOld ? dice.pick(here) : this.alive.get(`${kind} ${namespace}/${name}`);
    if (!was) this.create(dice, { kind, namespace, name });
    else if (dice.chance(0.25)) {
      this.write(dice, { ...was, type: "Deleted" });
      if (dice.chance(0.3)) this.create(dice, was);
    } else this.write(dice, { ...was, type: "Modified", ...changed(dice, was) });
  }

  private create(dice: Dice, { kind, namespace, name }: Pick<Revision, "kind" | "namespace" | "name">): void {
    const fresh = { a: 0, b: 0, labels: { on: "false" }, owner: undefined, of: "a" };
    const uid = `u${++this.uids}`;
    this.write(dice, { ...fresh, ...anyContent(dice), type: "Added", kind, namespace, name, uid });
  }

  private write(dice: Dice, revision: Omit<Revision, "rv" | "tick">): void {
    this.now += 1 + dice.below(3);
    const written = { ...revision, rv: this.now, tick: this.nextTick() };
    this.log.push(written);
    const at = `${written.kind} ${keyOf(written)}`;
    if (written.type === "Deleted") this.alive.delete(at);
    else this.alive.set(at, written);
  }

  /** The current states of one kind's objects, by key. */
  here(kind: string): Map<string, Revision> {
    return this.at(kind, this.now);
  }

  /** The states of one kind's objects at a resourceVersion, by key. */
  at(kind: string, rv: number): Map<string, Revision> {
    const state = new Map<string, Revision>();
    for (const revision of this.log) {
      if (revision.rv > rv) break;
      if (revision.kind !== kind) continue;
      if (revision.type === "Deleted") state.delete(keyOf(revision));
      else state.set(keyOf(revision), revision);
    }
    return state;
  }

  /** All revisions of the objects that had a key, oldest first. */
  past(kind: string, key: string): Revision[] {
    return this.log.filter((it) => it.kind === kind && keyOf(it) === key);
  }

  find(rv: string | number): Revision | undefined {
    return this.log.find((it) => it.rv === Number(rv));
  }
}

function anyContent(dice: Dice): Pick<Content, "b" | "labels" | "owner" | "of"> {
  const tier = maybe(dice, ["x", "y"]);
  return {
    b: dice.below(8),
    labels: { on: dice.pick(["true", "false"]), ...(tier && { tier }) },
    owner: maybe(dice, names),
    of: dice.pick(names),
  };
}

function changed(dice: Dice, was: Revision): Partial<Content> {
  const { b, labels, owner, of } = anyContent(dice);
  return {
    ...(dice.chance(0.5) && { a: was.a + 1 }),
    ...(dice.chance(0.4) && { b }),
    ...(dice.chance(0.3) && { labels }),
    ...(dice.chance(0.3) && { owner }),
    ...(dice.chance(0.3) && { of }),
  };
}

/** True if a trigger's selectors match an object in this state. */
export function selects({ kind, namespaces: scope, labelSelector, fieldSelector }: Chosen, state: Revision): boolean {
  if (kind !== state.kind) return false;
  if (scope.type === "names" && !scope.names.includes(state.namespace)) return false;
  if (scope.type === "labels" && !matches(scope.labelSelector, namespaceLabels[state.namespace] ?? {})) return false;
  return matches(labelSelector, state.labels) && matchesFields(fieldSelector, state);
}

/** The namespaces that a label selector matches. */
export const namespacesOf = (labelSelector: string): string[] =>
  namespaces.filter((name) => matches(labelSelector, namespaceLabels[name] ?? {}));

/** Evaluates a label selector in the API's query form, as far as these worlds use it. */
function matches(query: string, labels: Readonly<Record<string, string>>): boolean {
  const terms = query === "" ? [] : query.split(/,(?![^(]*\))/);
  return terms.every((term) => {
    const set = /^(\S+) (in|notin) \((.*)\)$/.exec(term);
    if (set) {
      const [, key = "", operator, values = ""] = set;
      const isIn = labels[key] !== undefined && values.split(",").includes(labels[key]);
      return operator === "in" ? isIn : !isIn;
    }
    const [key = "", value] = term.split(/!?=/);
    if (term.includes("!=")) return labels[key] !== value;
    if (value !== undefined) return labels[key] === value;
    return term.startsWith("!") ? labels[term.slice(1)] === undefined : labels[term] !== undefined;
  });
}

function matchesFields(selector: string, { name }: Revision): boolean {
  if (selector === "") return true;
  const [, value] = selector.split(/!?=/);
  return selector.includes("!=") ? name !== value : name === value;
}

/** The state in the form that a client requested. */
export function bodyOf(state: Revision, { apiVersion, object }: Form): Buffer {
  const { kind, namespace, name, uid, labels, owner, a, b, of } = state;
  const metadata = {
    namespace,
    name,
    uid,
    resourceVersion: String(state.rv),
    labels,
    ...(owner && { ownerReferences: [{ apiVersion: "shop.example/v1", kind: "Shop", name: owner, uid: "u" }] }),
  };
  const served = { apiVersion, kind, metadata };
  return Buffer.from(JSON.stringify(object === "Metadata" ? served : { ...served, spec: { a, b, of, apiVersion } }));
}

export const metaOf = ({ namespace, name, uid, rv }: Revision): ObjectMeta => ({
  namespace,
  name,
  uid,
  resourceVersion: resourceVersion(String(rv)),
});

/** The change in the form of a watch or a list. */
export const changeOf = (state: Revision, type: ChangeType, form: Form): Change => ({
  type,
  meta: metaOf(state),
  body: bodyOf(state, form),
  receivedAt: 0,
});

/**
 * The changes after a resourceVersion as a watch with these selectors shows them: an object may enter and leave the selection by
 * its labels.
 */
export function* watched(
  cluster: Cluster,
  chosen: Chosen,
  namespace: string,
  after: number,
): Generator<[ChangeType, Revision]> {
  const before = cluster.at(chosen.kind, after);
  for (const revision of cluster.log) {
    if (revision.rv <= after || revision.kind !== chosen.kind) continue;
    if (namespace !== "" && revision.namespace !== namespace) continue;
    const was = before.get(keyOf(revision));
    if (revision.type === "Deleted") before.delete(keyOf(revision));
    else before.set(keyOf(revision), revision);
    const wasIn = was !== undefined && selects(chosen, was);
    const isIn = revision.type !== "Deleted" && selects(chosen, revision);
    // An object that leaves the selection is shown in its previous state, with the resourceVersion of the change.
    if (was && wasIn && !isIn) yield ["Deleted", { ...was, rv: revision.rv }];
    else if (isIn) yield [wasIn ? "Modified" : "Added", revision];
  }
}
