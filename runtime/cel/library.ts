import type { Meter } from "./meter.ts";
import type { Value } from "./value.ts";

/**
 * A function of CEL: its signature as the type checker takes it, `string.charAt(int): string`, and its code. A function
 * in a namespace has the namespace's type as its receiver, and takes it as first argument. The code pays the meter for
 * what grows with its arguments, and throws an EvaluationError where it has no value.
 */
export type LibraryFunction = readonly [signature: string, call: (meter: Meter, ...values: never[]) => Value];

/** A class, whatever its constructor takes. */
interface ValueClass {
  readonly prototype: object;
}

/** Functions of one subject, with the types and namespaces that they bring. */
export interface Library {
  readonly types?: readonly (readonly [name: string, declared: ValueClass])[];
  readonly namespaces?: readonly string[];
  readonly functions: readonly LibraryFunction[];
}
