import type { Subscriber } from "../../../runtime/informer/fanout/subscriber.ts";
import type { Informers, Watch } from "../../../runtime/informer/informers.ts";
import type { Cluster } from "./cluster.ts";
import type { Past } from "./laws.ts";

interface HistoryWitness {
  readonly watches: Informers;
  readonly functionName: string;
  readonly cluster: Cluster;
  readonly past: Past;
  /** Receives a line for each broken law. */
  readonly broken: string[];
  /**
   * The source of a namespace, or of all namespaces (undefined), reported to the function that its kind does not exist.
   */
  foundNoKind(namespace: string | undefined): void;
}

/**
 * Wraps the watches of one function to check a law: no subscriber must list if the server still has its checkpoint. A list delivers
 * only net changes.
 */
export function historyLaw({
  watches,
  functionName,
  cluster,
  past,
  broken,
  foundNoKind,
}: HistoryWitness): Pick<Informers, "subscribe"> {
  return {
    subscribe(spec, subscriber): Watch {
      // A subscriber that follows namespaces keeps no checkpoint.
      if (spec.kind !== "ConfigMap") return watches.subscribe(spec, subscriber);
      const observed: Partial<Subscriber> = {
        kindIsMissing() {
          foundNoKind(spec.namespace);
          subscriber.kindIsMissing?.();
        },
        list(reason, gapFrom) {
          const at = subscriber.resumeFrom;
          if (!past.restored && !past.draining && at !== undefined && Number(at) >= cluster.compacted) {
            broken.push(
              `${functionName}: made to list (${reason}) at ${at}, the server has all since ${cluster.compacted}`,
            );
          }
          return subscriber.list(reason, gapFrom);
        },
      };
      const place = new Proxy(subscriber, {
        get: (target, property) => {
          const value: unknown = Reflect.get(observed, property) ?? Reflect.get(target, property, target);
          return typeof value === "function" && !Object.hasOwn(observed, property) ? value.bind(target) : value;
        },
      });
      return watches.subscribe(spec, place);
    },
  };
}
