import { at, isFields, type KubeObject, timestamp } from "../api/object.ts";
import { badRequest, conflict, fault, invalid, methodNotAllowed, notFound } from "../api/status.ts";
import { type BoundObject, issuer } from "../auth/service-account-tokens.ts";
import { isNumber } from "../exact-json.ts";
import { parseBody } from "../rest/body.ts";
import { type Call, callKey } from "../rest/call.ts";
import type { Subresource } from "../rest/resource-handler.ts";
import type { Services } from "./services.ts";

/** Lifetime of a token in seconds: the minimum, the default and the maximum (authentication/validation). */
const lifetime = { least: 600, usual: 3600, most: 2 ** 32 };

/** `serviceaccounts/token`: issues a signed token of the account. */
export function tokenRequest({ tokens, clock }: Services): Subresource {
  return async (call, verb, body) => {
    if (verb !== "create") throw methodNotAllowed();
    const account = call.backend.store.get(call.type.storage, callKey(call))?.object;
    const request = parseBody(await body());
    if (!account) throw notFound(call.type, call.name);
    if (!isFields(request)) throw badRequest("the body is not a TokenRequest");
    const spec = isFields(request.spec) ? request.spec : {};
    const expirationSeconds = seconds(spec.expirationSeconds);
    const audiences =
      Array.isArray(spec.audiences) && spec.audiences.length > 0 ? spec.audiences.map(String) : [issuer];
    const bound = boundObject(call, spec.boundObjectRef);
    const { token, expires } = tokens.issue({ account, audiences, expirationSeconds, ...(bound ? { bound } : {}) });
    const { name, namespace } = account.metadata;
    return {
      code: 201,
      value: {
        kind: "TokenRequest",
        apiVersion: "authentication.k8s.io/v1",
        metadata: { name, namespace, creationTimestamp: timestamp(clock.now()) },
        spec: { audiences, expirationSeconds, boundObjectRef: spec.boundObjectRef ?? null },
        status: { token, expirationTimestamp: timestamp(expires) },
      },
    };
  };
}

function seconds(asked: unknown): number {
  if (asked === undefined || asked === null) return lifetime.usual;
  const refuse = (why: string) =>
    invalid({ group: "authentication.k8s.io", kind: "TokenRequest" }, "", [
      fault.invalid("spec.expirationSeconds", asked, why),
    ]);
  if (!isNumber(asked) || asked < lifetime.least) throw refuse("may not specify a duration less than 10 minutes");
  if (asked > lifetime.most) throw refuse("may not specify a duration larger than 2^32 seconds");
  return Number(asked);
}

const bindable: Record<string, { kind: BoundObject["kind"]; plural: string }> = {
  Pod: { kind: "Pod", plural: "pods" },
  Secret: { kind: "Secret", plural: "secrets" },
  Node: { kind: "Node", plural: "nodes" },
};

function boundObject(call: Call, reference: unknown): BoundObject | undefined {
  if (!isFields(reference)) return undefined;
  const known = bindable[String(reference.kind)];
  if (!known)
    throw badRequest(
      `cannot bind token to a ${String(reference.apiVersion ?? "")}, Kind=${String(reference.kind)} object`,
    );
  const name = String(reference.name);
  const key = known.kind === "Node" ? name : `${call.namespace}/${name}`;
  const object: KubeObject | undefined = call.backend.store.get(known.plural, key)?.object;
  if (!object) throw notFound({ group: "", plural: known.plural }, name);
  const uid = String(at(object, "metadata.uid"));
  if (reference.uid && reference.uid !== uid)
    throw conflict(
      { group: "", plural: known.plural },
      name,
      `the UID in the bound object reference (${String(reference.uid)}) does not match the UID in record. The object might have been deleted and then recreated`,
    );
  return { kind: known.kind, name, uid };
}
