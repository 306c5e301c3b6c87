/** The field's name in JSON, where client-node's class names it otherwise. */
type FieldName<Key, Owner> = Key extends `_${infer Name}`
  ? Name
  : Key extends `x_kubernetes_${infer Name}`
    ? `x-kubernetes-${Dashed<Name>}`
    : "x_kubernetes_validations" extends keyof Owner // JSONSchemaProps alone
      ? Key extends "ref" | "schema"
        ? `$${Key}`
        : Key
      : Key;

type Dashed<Name extends string> = Name extends `${infer Head}_${infer Tail}` ? `${Head}-${Dashed<Tail>}` : Name;

/**
 * A type of client-node as the API's JSON has it: timestamps are RFC 3339 text, not Date, and fields have their own names
 * (`default`, not `_default`). Events reach a handler as raw JSON, so these are the honest types.
 */
export type Json<T> = unknown extends T
  ? T
  : T extends Date
    ? string
    : T extends readonly (infer Item)[]
      ? Json<Item>[]
      : T extends object
        ? { [Key in keyof T as FieldName<Key, T>]: Json<T[Key]> }
        : T;
