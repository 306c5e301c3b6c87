/** The stable types of Kubernetes, as in the API's JSON. Types only: importing them adds nothing to a bundle. */
export type * from "./kubernetes/types.ts";
