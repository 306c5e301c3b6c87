import { apiVersionOf } from "../kube/discovery.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import { callErrorOf } from "./api-answer.ts";
import type { ArgumentsOf } from "./arguments.ts";
import { CallFailure } from "./failure.ts";
import { callVerbs, isGranted } from "./grants.ts";
import type { KindLookup } from "./kube-calls.ts";

/**
 * Answers `kube.kinds` with JSON text: each kind for which the manifest grants all verbs in question, and the server serves them,
 * in the version that the server prefers.
 * @throws CallFailure
 */
export async function answerKinds(
  { permissions }: Pick<FunctionManifest, "permissions">,
  discovery: Pick<KindLookup, "served">,
  { verbs, namespace }: ArgumentsOf<"kube.kinds">,
): Promise<string> {
  const served = await discovery.served().catch((error: unknown) => {
    throw new CallFailure(callErrorOf(error, { group: "", resource: "", verb: "get" }));
  });
  if (served.length === 0) {
    const message =
      "the API server has no document of all kinds (aggregated discovery, which Kubernetes has since 1.26)";
    throw new CallFailure({ type: "KubeError", message, status: 0, reason: "NotServed" });
  }
  const seen = new Set<string>();
  const kinds = served.flatMap((groupVersion) =>
    groupVersion.resources.flatMap(({ group, plural: resource, kind, namespaced, verbs: known }) => {
      const path = `${group}/${resource}`;
      // The first version of a group is the preferred one. A resource may be served by a later one alone.
      if (seen.has(path) || kind === "") return [];
      seen.add(path);
      if (namespace !== undefined && !namespaced) return [];
      const within = namespace === undefined ? {} : { namespace };
      const allowed = callVerbs.filter(
        (verb) => known.includes(verb) && isGranted(permissions, { group, resource, verb, ...within }),
      );
      if (!verbs.every((verb) => allowed.includes(verb))) return [];
      return { apiVersion: apiVersionOf(groupVersion), kind, plural: resource, namespaced, verbs: allowed };
    }),
  );
  return JSON.stringify(kinds);
}
