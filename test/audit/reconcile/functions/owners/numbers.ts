import type { KubeObject } from "@watchfire/sdk";

/** An audited object, with a number in its annotations that each write raises. */
export interface Numbered extends KubeObject {
  metadata?: KubeObject["metadata"] & { annotations?: Record<string, string> };
}

export const numberOf = (object: Numbered | undefined): string => object?.metadata?.annotations?.number ?? "gone";
