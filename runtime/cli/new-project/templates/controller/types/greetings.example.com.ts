// Made by `watchfire types` from the CustomResourceDefinition greetings.example.com: change that, and make it again.
import type { ObjectMeta } from "@watchfire/sdk";

/**
 * A message that a ConfigMap of the same name holds.
 */
export interface V1Greeting {
  apiVersion: "example.com/v1";
  kind: "Greeting";
  /**
   * The object's name, namespace, labels and the like.
   */
  metadata?: ObjectMeta;
  spec: {
    /**
     * The ConfigMap's text.
     */
    message: string;
  };
  status?: {
    /**
     * Whether the ConfigMap is as the spec says.
     */
    ready?: boolean;
    /**
     * The generation that the status is of.
     */
    observedGeneration?: number;
  };
}

declare module "@watchfire/sdk" {
  interface Kinds {
    "example.com/v1/Greeting": V1Greeting;
  }
}
