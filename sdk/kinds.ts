/** Types for apiVersions and kinds. Types only. */
import type { BuiltInKinds } from "./kubernetes/served.ts";
import type { KubeObject, UnknownObject } from "./object.ts";

/**
 * The kinds that have a type, by `<apiVersion>/<kind>`. Add your own kinds by declaration merging: `declare module
 * "@watchfire/sdk" { interface Kinds { "shop.example/v1/Shop": Shop } }`.
 */
export interface Kinds extends BuiltInKinds {}

/** The apiVersions of the kinds that have a type. */
export type ApiVersion = keyof Kinds extends infer Key
  ? Key extends `${infer Group}/${infer Version}/${string}`
    ? `${Group}/${Version}`
    : Key extends `${infer Version}/${string}`
      ? Version
      : never
  : never;

/** The kinds of an apiVersion that have a type. */
export type KindIn<A extends string> = keyof Kinds extends infer Key
  ? Key extends `${A}/${infer Kind}`
    ? Kind extends `${string}/${string}`
      ? never
      : Kind
    : never
  : never;

/** The type of a kind; for other kinds, an object with unknown fields. */
export type ObjectOf<A extends string, K extends string> = `${A}/${K}` extends keyof Kinds
  ? Kinds[`${A}/${K}`]
  : UnknownObject;

/** An object as the API server stores and returns it: its metadata is present. */
export type Stored<T = UnknownObject> = T & {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    /** Absent for cluster-scoped kinds. */
    readonly namespace?: string;
    readonly uid: string;
    readonly resourceVersion: string;
  };
};

/** An apiVersion and a kind as literals: editors complete the known ones, and any other is accepted as well. */
export interface KindName<A extends string, K extends string> {
  apiVersion: A | ApiVersion;
  kind: K | KindIn<A>;
}

/** A value to be written: a number may also be a BigInt, which is exact beyond 2^53. */
export type Writable<T> = T extends number
  ? number extends T
    ? T | bigint
    : T
  : T extends object
    ? { [Field in keyof T]: Writable<T[Field]> }
    : T;

/** An object to be written, whose apiVersion and kind determine its fields. */
export type Written<A extends string, K extends string> = { apiVersion: A; kind: K } & Writable<ObjectOf<A, K>> &
  KubeObject;
