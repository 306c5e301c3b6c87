/** The stable types of Kubernetes as the API's JSON has them. Types only: importing them adds nothing to a bundle. */
export type * from "./kubernetes/types.ts";
