import type { KubeObject } from "@watchfire/sdk";

/** What an audited object carries: a number that each write raises. */
export interface Numbered extends KubeObject {
  metadata?: KubeObject["metadata"] & { annotations?: Record<string, string> };
}

export const numberOf = (object: Numbered | undefined): string => object?.metadata?.annotations?.number ?? "gone";
