import { metadataIn } from "../../informer/scan/object-members.ts";
import type { Delivery, HandlerError } from "../delivery/delivery.ts";
import { givenUid, type LaneEvent } from "./event.ts";

/** Whether an attempt's event may have run before; of one that is counted among its attempts. */
export const isRedelivered = ({ doubt, attempts }: Pick<LaneEvent, "doubt" | "attempts">): boolean =>
  doubt !== "none" || attempts > 1;

/** One attempt at an event, as the runner takes it. */
export function deliveryOf(event: LaneEvent, body: Buffer, oldBody: Buffer | undefined, timeoutMs: number): Delivery {
  const { view, meta, type, id, flags, attempts } = event;
  return {
    function: view.functionName,
    trigger: view.trigger.name,
    id,
    type,
    object: {
      apiVersion: view.trigger.apiVersion,
      kind: view.trigger.kind,
      namespace: meta.namespace,
      name: meta.name,
      uid: givenUid(meta.uid),
    },
    resourceVersion: meta.resourceVersion,
    past: event.epoch < view.epochOf(event.key),
    attempt: attempts,
    redelivered: isRedelivered(event),
    flags,
    body,
    metadata: event.members && metadataIn(event.members, body),
    oldBody,
    timeoutMs,
  };
}

/** Why an event was given up that never got to fail by itself. */
export const crashLoopError = (attempts: number): HandlerError => ({
  name: "CrashLoop",
  message: `the runtime ended during each of ${attempts} attempts at this event`,
  stack: "",
  code: "WF_DISPATCH_CRASH_LOOP",
});
