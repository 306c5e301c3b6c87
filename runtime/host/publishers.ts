import { runtimeAccount } from "../access/account.ts";
import { FunctionObjects } from "../control/function-status/function-objects.ts";
import { LabelledObjects } from "../control/function-status/labelled-objects.ts";
import { deployedBy } from "../control/function-status/set-object.ts";
import { SetPublisher } from "../control/function-status/set-publisher.ts";
import { StatusPublisher } from "../control/function-status/status-publisher.ts";
import { lostError } from "../lease/elector.ts";
import type { Components, RuntimeOptions } from "./components.ts";
import type { DeployedSets } from "./function-sources.ts";
import type { Ownership } from "./ownership.ts";
import { publicationIn, publicationOf, setPublicationIn } from "./publication.ts";
import type { Status } from "./status.ts";

/** The writers of Function and FunctionSet objects. */
export type StatusPublishers = readonly { start(): void; close(): Promise<void> }[];

interface PublisherParts {
  readonly options: RuntimeOptions;
  readonly components: Pick<Components, "elector" | "pausedSets">;
  readonly ownership: Ownership;
  /** The deployed sets, by namespace. */
  readonly sets: ReadonlyMap<string, DeployedSets>;
  readonly status: () => Status;
}

/** Creates the publishers of all namespaces, if they are enabled. They only write while the Lease is held, if there is one. */
export function statusPublishers({ options, components, ownership, sets, status }: PublisherParts): StatusPublishers {
  const { functionStatus, transport, namespace: home, account = runtimeAccount, setNamespaces, clock, log } = options;
  if (!functionStatus) return [];
  const { elector, pausedSets } = components;
  const withheld = () => (elector?.holds === false ? lostError("what was to be written was not") : undefined);
  return [undefined, ...(setNamespaces ?? [])].flatMap((namespace) => {
    const place = { transport, namespace: namespace ?? home, account, lastLook: elector && withheld };
    const functions = new FunctionObjects(transport, place.namespace, account, place.lastLook);
    const deployed = sets.get(place.namespace);
    const read = () => {
      const publication = publicationIn(namespace, publicationOf(ownership, status().functions));
      const states = new Map((deployed?.source.states ?? []).map((state) => [state.name, state]));
      const functions = publication.functions.map((each) => {
        const state = each.origin.type === "config-map" ? states.get(each.origin.set) : undefined;
        if (!state) return each;
        return { ...each, deployed: deployedBy(state, deployed?.records.known(state.name, state.revision)) };
      });
      return { ...publication, functions };
    };
    const publisher = new StatusPublisher({ objects: functions, account, read, clock, log });
    if (!deployed) return [publisher];
    const { source, records } = deployed;
    const setPublisher = new SetPublisher({
      objects: new LabelledObjects({ kind: "FunctionSet", plural: "functionsets" }, place),
      functions,
      account,
      read: () => {
        const { states } = source;
        const reports = states?.length ? status().functions : [];
        return setPublicationIn(namespace, ownership, reports, states, pausedSets.get(place.namespace));
      },
      recordOf: (set, revision) => records.read(set, revision),
      clock,
      log,
    });
    return [publisher, setPublisher];
  });
}
