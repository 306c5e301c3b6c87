import type { ASTNode } from "@marcbachmann/cel-js";

/** A type as the type checker notes it at a node. */
interface CheckedType {
  /** `list`, `map`, `optional`, `message` for a named type, `param` for one that is open, `dyn`, or `primitive`. */
  readonly kind: string;
  /** Such as `list<string>`. */
  readonly name: string;
  readonly keyType?: CheckedType;
  readonly valueType?: CheckedType;
  /** True for that of `[]`, whose items may be of any type. */
  readonly hasPlaceholderType?: boolean;
}

/** The type of a node's value; undefined if the type checker did not need it. */
export const checkedTypeOf = (node: ASTNode): CheckedType | undefined =>
  (node as ASTNode & { readonly checkedType?: CheckedType }).checkedType;
