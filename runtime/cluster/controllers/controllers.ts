import { Definitions, definitionsCollection } from "../crd/definitions.ts";
import type { Backend } from "../rest/call.ts";
import { Claims, claimCollection, podCollection } from "./claims.ts";
import { GarbageCollector } from "./garbage-collector.ts";
import { Namespaces } from "./namespaces.ts";
import { WorkQueue } from "./queue.ts";

/** The built-in controllers: the work of a controller-manager, and of the API server on its CRDs. */
interface Controllers {
  /** Reconciles every stored object, as at a start. */
  settle(): void;
  stop(): void;
}

/**
 * Starts the controllers. They process a write after its request is answered, at the latest in the next turn of the event loop.
 * `keepOrphans`: a new object whose owners do not exist is kept.
 */
export function startControllers(backend: Backend, ca: string, keepOrphans: boolean): Controllers {
  const { store, clock } = backend;
  const definitions = new Definitions(backend);
  const namespaces = new Namespaces(backend, ca);
  const definitionQueue = new WorkQueue((name) => definitions.reconcile(name), clock);
  const namespaceQueue = new WorkQueue((name) => namespaces.reconcile(name), clock);
  const garbageQueue = new WorkQueue((place) => collector.reconcile(place), clock);
  const claims = new Claims(backend);
  const claimQueue = new WorkQueue((name) => claims.reconcile(name), clock);
  const collector = new GarbageCollector(backend, keepOrphans, (place) => garbageQueue.add(place));
  store.listen((collection, change) => {
    if (collection.id === definitionsCollection) definitionQueue.add(change.key);
    else if (collection.id === "namespaces") namespaceQueue.add(change.key);
    collector.observe(collection, change);
    if (collection.id === claimCollection || (collection.id === podCollection && !change.current))
      claimQueue.add(change.key.split("/")[0] ?? "");
    if (change.current) return;
    const definition = definitions.ownerOf(collection.id);
    if (definition) definitionQueue.add(definition);
    const namespace = change.previous?.object.metadata.namespace;
    if (namespace) namespaceQueue.add(namespace);
  });
  return {
    settle() {
      definitions.restore();
      for (const [name] of [...store.collection("namespaces").current("")]) {
        claims.reconcile(name);
        namespaces.reconcile(name);
      }
      for (const collection of store.all())
        for (const [key, { object }] of collection.current(""))
          if (object.metadata.ownerReferences?.length || object.metadata.deletionTimestamp)
            garbageQueue.add(`${collection.id} ${key}`);
    },
    stop() {
      for (const queue of [definitionQueue, namespaceQueue, claimQueue, garbageQueue]) queue.stop();
    },
  };
}
