/** The type of a variable, and how large a value of it may be. */
export interface DeclaredType {
  /** A type's name in CEL. An object has fields; a map has texts as keys. */
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
  /** Most characters, bytes, items or entries; 0 for any other type. */
  readonly mostElements: number;
}

/** The type of a variable of which nothing is known. */
export const dynamic: DeclaredType = { name: "dyn", mostElements: 0 };

/** Names that CEL keeps for itself; `__namespace__` is the field `namespace`: pkg/cel/escaping.go of k8s.io/apiserver. */
export const reservedWords: ReadonlySet<string> = new Set(
  "true false null in as break const continue else for function if import let loop package namespace return var void while".split(
    " ",
  ),
);
