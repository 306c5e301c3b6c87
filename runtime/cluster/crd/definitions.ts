import { groupOf, type Names, namesOf, storageOf, versionsOf } from "../api/definition.ts";
import { at, equal, type Fields, isFields, type KubeObject, timestamp } from "../api/object.ts";
import { encodeJson } from "../exact-json.ts";
import type { Backend } from "../rest/call.ts";
import { servedTypes } from "./served-types.ts";

/** The collection of the CRDs themselves. */
export const definitionsCollection = "customresourcedefinitions.apiextensions.k8s.io";
/** Finalizer that keeps a CRD until its objects are deleted. */
const cleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io";

/** Keeps the served types in step with the stored CRDs: accepted names, conditions and removal. */
export class Definitions {
  private readonly backend: Backend;
  /** The served parts of each CRD at its last registration, as text. */
  private readonly inService = new Map<string, string>();

  constructor(backend: Backend) {
    this.backend = backend;
  }

  /** Registers every stored CRD, as after a restart. */
  restore(): void {
    for (const [name] of [...this.backend.store.collection(definitionsCollection).current("")]) this.reconcile(name);
  }

  /** Reconciles one CRD. */
  reconcile(name: string): void {
    const definition = this.backend.store.get(definitionsCollection, name)?.object;
    if (!definition) {
      this.retire(name);
      return;
    }
    const status = this.nextStatus(definition);
    if (!equal(status, definition.status))
      this.backend.store.put(definitionsCollection, name, { ...definition, status });
    const current = this.backend.store.get(definitionsCollection, name)?.object ?? definition;
    if (conditionOf(current, "Established")?.status === "True") this.serve(name, current);
    if (current.metadata.deletionTimestamp) this.terminate(name, current);
  }

  /** Returns the CRD that owns a collection. It must be reconciled when an object of the collection is deleted. */
  ownerOf(collection: string): string | undefined {
    return this.backend.store.get(definitionsCollection, collection) ? collection : undefined;
  }

  private serve(name: string, definition: KubeObject): void {
    const state = encodeJson([definition.spec, at(definition, "status.acceptedNames"), definition.metadata.uid]);
    if (this.inService.get(name) === state) return;
    // Any change of the spec ends the watches, as in the real server, which rebuilds its storage.
    if (this.inService.has(name)) this.backend.store.reset(storageOf(definition));
    this.inService.set(name, state);
    this.backend.registry.setCustom(name, servedTypes(definition));
  }

  private retire(name: string): void {
    if (!this.inService.delete(name)) return;
    this.backend.registry.setCustom(name, []);
    this.backend.store.reset(name);
    // Names that this CRD held may now be free for another CRD.
    for (const [other] of [...this.backend.store.collection(definitionsCollection).current("")]) this.reconcile(other);
  }

  /** Deletes the objects of a CRD in deletion, then the CRD. Objects with finalizers delay it. */
  private terminate(name: string, definition: KubeObject): void {
    const { store, clock } = this.backend;
    const collection = storageOf(definition);
    for (const [key, { object }] of [...store.collection(collection).current("")]) {
      if (!object.metadata.finalizers?.length) store.delete(collection, key);
      else if (!object.metadata.deletionTimestamp) {
        const metadata = {
          ...object.metadata,
          deletionTimestamp: timestamp(clock.now()),
          deletionGracePeriodSeconds: 0,
        };
        store.put(collection, key, { ...object, metadata });
      }
    }
    if (store.collection(collection).size > 0) return;
    const finalizers = (definition.metadata.finalizers ?? []).filter((one) => one !== cleanupFinalizer);
    if (finalizers.length === 0) store.delete(definitionsCollection, name);
    else if (definition.metadata.finalizers?.includes(cleanupFinalizer))
      store.put(definitionsCollection, name, { ...definition, metadata: { ...definition.metadata, finalizers } });
  }

  private nextStatus(definition: KubeObject): Fields {
    const now = timestamp(this.backend.clock.now());
    const names = namesOf(definition);
    const clash = this.clash(definition, names);
    const before = isFields(definition.status) ? definition.status : {};
    const conditions = Array.isArray(before.conditions) ? before.conditions.filter(isFields) : [];
    const set = (type: string, status: boolean, reason: string, message: string) => {
      const old = conditions.findIndex((one) => one.type === type);
      const entry = { type, status: status ? "True" : "False", reason, message };
      if (old < 0) conditions.push({ lastTransitionTime: now, ...entry });
      else if (conditions[old]?.status !== entry.status) conditions[old] = { lastTransitionTime: now, ...entry };
      else conditions[old] = { ...conditions[old], ...entry };
    };
    if (clash) set("NamesAccepted", false, clash.reason, clash.message);
    else set("NamesAccepted", true, "NoConflicts", "no conflicts found");
    const established = conditions.find((one) => one.type === "Established")?.status === "True";
    if (!clash && !established)
      set("Established", true, "InitialNamesAccepted", "the initial names have been accepted");
    else if (clash && !established) set("Established", false, "NotAccepted", "not all names are accepted");
    if (definition.metadata.deletionTimestamp)
      set("Terminating", true, "InstanceDeletionInProgress", "CustomResource deletion is in progress");
    const { shortNames, categories, ...rest } = names;
    const accepted = {
      ...rest,
      ...(shortNames.length > 0 ? { shortNames } : {}),
      ...(categories.length > 0 ? { categories } : {}),
    };
    return {
      ...before,
      conditions,
      acceptedNames: clash ? (before.acceptedNames ?? { plural: "", kind: "" }) : accepted,
      storedVersions: storedVersions(before.storedVersions, definition),
    };
  }

  /** Returns the conflict with another CRD of the group that already has one of the names. */
  private clash(definition: KubeObject, names: Names): { reason: string; message: string } | undefined {
    for (const [name, { object: other }] of this.backend.store.collection(definitionsCollection).current("")) {
      if (name === definition.metadata.name || groupOf(other) !== groupOf(definition)) continue;
      if (conditionOf(other, "NamesAccepted")?.status !== "True") continue;
      const theirs = namesOf(other);
      const resources = new Set([theirs.plural, theirs.singular, ...theirs.shortNames]);
      const taken = (reason: string, word: string) => ({
        reason,
        message: `${JSON.stringify(word)} is already in use`,
      });
      if (resources.has(names.plural)) return taken("PluralConflict", names.plural);
      if (resources.has(names.singular)) return taken("SingularConflict", names.singular);
      const short = names.shortNames.find((one) => resources.has(one));
      if (short) return taken("ShortNamesConflict", short);
      if ([theirs.kind, theirs.listKind].includes(names.kind)) return taken("KindConflict", names.kind);
      if ([theirs.kind, theirs.listKind].includes(names.listKind)) return taken("ListKindConflict", names.listKind);
    }
    return undefined;
  }
}

function storedVersions(before: unknown, definition: KubeObject): string[] {
  const stored = new Set(Array.isArray(before) ? before.map(String) : []);
  for (const { name, storage } of versionsOf(definition)) if (storage === true) stored.add(String(name));
  return [...stored];
}

function conditionOf(definition: KubeObject, type: string): Fields | undefined {
  const conditions = at(definition, "status.conditions");
  return Array.isArray(conditions) ? conditions.filter(isFields).find((one) => one.type === type) : undefined;
}
