import type { Backend } from "../rest/call.ts";

/** The work that a real cluster's controller-manager does. */
export interface Controllers {
  /** Does what is due now. */
  settle(): void;
  stop(): void;
}

export function startControllers(_backend: Backend, _ca: string): Controllers {
  return { settle() {}, stop() {} };
}
