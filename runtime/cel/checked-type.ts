import type { ASTNode } from "@marcbachmann/cel-js";

/** A type as the type checker attaches it to a node. */
interface CheckedType {
  /** `list`, `map`, `optional`, `message` for a named type, `param` for an open one, `dyn`, or `primitive`. */
  readonly kind: string;
  /** Such as `list<string>`. */
  readonly name: string;
  readonly keyType?: CheckedType;
  readonly valueType?: CheckedType;
  /** True for the type of `[]`, whose items may be of any type. */
  readonly hasPlaceholderType?: boolean;
}

/** Returns the type of a node's value. `undefined` if the type checker did not need it. */
export const checkedTypeOf = (node: ASTNode): CheckedType | undefined =>
  (node as ASTNode & { readonly checkedType?: CheckedType }).checkedType;
