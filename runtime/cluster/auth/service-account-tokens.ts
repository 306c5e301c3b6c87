import { createHash, createPrivateKey, createPublicKey, type KeyObject, randomUUID, sign, verify } from "node:crypto";
import { at, isFields, type KubeObject } from "../api/object.ts";
import type { Clock } from "../clock.ts";
import type { Store } from "../storage/store.ts";
import { serviceAccountUser, type User } from "./user.ts";

/** Issuer of the tokens, and their default audience. */
export const issuer = "https://kubernetes.default.svc.cluster.local";

/** An object that a token is bound to: the token becomes invalid when the object is deleted. */
export interface BoundObject {
  kind: "Pod" | "Secret" | "Node";
  name: string;
  uid: string;
}

/** Inputs for one token. */
interface TokenClaims {
  account: KubeObject;
  audiences: readonly string[];
  expirationSeconds: number;
  bound?: BoundObject;
}

/** A token that is valid now. */
interface VerifiedToken {
  user: User;
  audiences: readonly string[];
}

const collections = { Pod: "pods", Secret: "secrets", Node: "nodes" } as const;

/**
 * Signs and verifies ServiceAccount tokens: JWTs with ES256, bound to their account and optionally to one more object.
 */
export class ServiceAccountTokens {
  private readonly privateKey: KeyObject;
  private readonly publicKey: KeyObject;
  private readonly keyId: string;
  private readonly store: Store;
  private readonly clock: Clock;

  /** `key` is a P-256 private key, PKCS 8 PEM. */
  constructor(key: string, store: Store, clock: Clock) {
    this.privateKey = createPrivateKey(key);
    this.publicKey = createPublicKey(this.privateKey);
    this.keyId = createHash("sha256")
      .update(this.publicKey.export({ type: "spki", format: "der" }))
      .digest("base64url");
    this.store = store;
    this.clock = clock;
  }

  /** Signs a token. Returns it with its expiry, in milliseconds since the epoch. */
  issue({ account, audiences, expirationSeconds, bound }: TokenClaims): { token: string; expires: number } {
    const seconds = Math.floor(this.clock.now() / 1000);
    const { namespace = "", name = "", uid = "" } = account.metadata;
    const claims = {
      aud: audiences.length > 0 ? audiences : [issuer],
      exp: seconds + expirationSeconds,
      iat: seconds,
      iss: issuer,
      jti: randomUUID(),
      "kubernetes.io": {
        namespace,
        serviceaccount: { name, uid },
        ...(bound ? { [bound.kind.toLowerCase()]: { name: bound.name, uid: bound.uid } } : {}),
      },
      nbf: seconds,
      sub: `system:serviceaccount:${namespace}:${name}`,
    };
    const text = `${encode({ alg: "ES256", kid: this.keyId })}.${encode(claims)}`;
    const signature = sign("sha256", Buffer.from(text), { key: this.privateKey, dsaEncoding: "ieee-p1363" });
    return { token: `${text}.${signature.toString("base64url")}`, expires: claims.exp * 1000 };
  }

  /** Verifies a token: its signature, its expiry, and that the objects it is bound to still exist. */
  verify(token: string): VerifiedToken | undefined {
    const [header, body, signature, rest] = token.split(".");
    if (!header || !body || !signature || rest !== undefined) return undefined;
    const signed = Buffer.from(`${header}.${body}`);
    const key = { key: this.publicKey, dsaEncoding: "ieee-p1363" as const };
    if (!verify("sha256", signed, key, Buffer.from(signature, "base64url"))) return undefined;
    const claims: unknown = JSON.parse(Buffer.from(body, "base64url").toString());
    if (!isFields(claims)) return undefined;
    const seconds = this.clock.now() / 1000;
    if (claims.iss !== issuer || Number(claims.exp) <= seconds) return undefined;
    const scope = claims["kubernetes.io"];
    const namespace = String(at(scope, "namespace"));
    const account = this.exists("serviceaccounts", namespace, at(scope, "serviceaccount"));
    if (!account) return undefined;
    for (const [kind, collection] of Object.entries(collections)) {
      const bound = at(scope, kind.toLowerCase());
      if (isFields(bound) && !this.exists(collection, kind === "Node" ? "" : namespace, bound)) return undefined;
    }
    const { name = "", uid = "" } = account.metadata;
    const audiences = Array.isArray(claims.aud) ? claims.aud.map(String) : [];
    return { user: serviceAccountUser(namespace, name, uid, extraOf(claims, scope)), audiences };
  }

  private exists(collection: string, namespace: string, reference: unknown): KubeObject | undefined {
    if (!isFields(reference)) return undefined;
    const key = namespace === "" ? String(reference.name) : `${namespace}/${String(reference.name)}`;
    const object = this.store.get(collection, key)?.object;
    return object && object.metadata.uid === reference.uid ? object : undefined;
  }
}

/** The `extra` attributes that the API server reports for a token's holder. */
function extraOf(claims: Record<string, unknown>, scope: unknown): Record<string, string[]> {
  const extra: Record<string, string[]> = {
    "authentication.kubernetes.io/credential-id": [`JTI=${String(claims.jti)}`],
  };
  const pod = at(scope, "pod");
  if (isFields(pod)) {
    extra["authentication.kubernetes.io/pod-name"] = [String(pod.name)];
    extra["authentication.kubernetes.io/pod-uid"] = [String(pod.uid)];
  }
  return extra;
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
