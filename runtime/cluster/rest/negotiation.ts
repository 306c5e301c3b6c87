import { ApiError } from "../api/status.ts";
import type { Form } from "./representation.ts";

/** The representation chosen from those that the client accepts. */
export interface Accepted {
  form: Form;
  mediaType: "application/json" | "application/yaml";
  /** The complete Content-Type of the answer. */
  contentType: string;
}

const available = "application/json, application/yaml, application/json;stream=watch";

const forms: Record<string, { form: Form; versions: readonly string[] }> = {
  Table: { form: "table", versions: ["v1", "v1beta1"] },
  PartialObjectMetadata: { form: "metadata", versions: ["v1", "v1beta1"] },
  PartialObjectMetadataList: { form: "metadata", versions: ["v1", "v1beta1"] },
};

/** Picks the first supported media type of an Accept header. Throws a 406. */
export function negotiate(accept: string | undefined): Accepted {
  const clauses = (accept ?? "").split(",").map((clause) => clause.trim());
  for (const clause of clauses) {
    const [type = "", ...parameters] = clause.split(";").map((part) => part.trim());
    const mediaType = mediaTypeOf(type);
    if (!mediaType) continue;
    const given = new Map(parameters.map((one) => one.split("=", 2) as [string, string]));
    const as = given.get("as");
    if (as === undefined) return { form: "object", mediaType, contentType: mediaType };
    const known = forms[as];
    if (!known || given.get("g") !== "meta.k8s.io" || !known.versions.includes(given.get("v") ?? "")) continue;
    return { form: known.form, mediaType, contentType: `${mediaType};g=meta.k8s.io;v=${given.get("v")};as=${as}` };
  }
  throw new ApiError(406, "NotAcceptable", `406: Not Acceptable\n\nAvailable representations: ${available}`, {});
}

function mediaTypeOf(type: string): Accepted["mediaType"] | undefined {
  if (type === "" || type === "*/*" || type === "application/*" || type === "application/json")
    return "application/json";
  return type === "application/yaml" ? "application/yaml" : undefined;
}
