import type { ObjectMeta } from "@watchfire/sdk";

/** As crd.yaml has it. */
export interface Greeting {
  apiVersion: "example.com/v1";
  kind: "Greeting";
  metadata: ObjectMeta;
  spec: { message: string };
  status?: { ready?: boolean; observedGeneration?: number };
}

declare module "@watchfire/sdk" {
  interface Kinds {
    "example.com/v1/Greeting": Greeting;
  }
}
