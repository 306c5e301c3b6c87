/** The type of a variable, and the maximum size of its value. */
export interface DeclaredType {
  /** The name of the type in CEL. An object has fields; a map has strings as keys. */
  readonly name:
    | "bool"
    | "bytes"
    | "double"
    | "dyn"
    | "google.protobuf.Duration"
    | "google.protobuf.Timestamp"
    | "int"
    | "list"
    | "map"
    | "object"
    | "optional"
    | "string";
  /** Type of a list's items, of a map's values, or of an optional's value. */
  readonly element?: DeclaredType;
  /** Types of an object's fields, by the names that expressions use. */
  readonly fields?: ReadonlyMap<string, DeclaredType>;
  /** Maximum number of characters, bytes, items or entries; 0 for other types. */
  readonly mostElements: number;
}

/** The type of a variable whose type is unknown. */
export const dynamic: DeclaredType = { name: "dyn", mostElements: 0 };

/** Reserved words of CEL. `__namespace__` is the field `namespace`: pkg/cel/escaping.go of k8s.io/apiserver. */
export const reservedWords: ReadonlySet<string> = new Set(
  "true false null in as break const continue else for function if import let loop package namespace return var void while".split(
    " ",
  ),
);
