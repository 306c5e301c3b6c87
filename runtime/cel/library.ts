import type { Meter } from "./meter.ts";
import type { Value } from "./value.ts";

/**
 * A function of CEL: its signature for the type checker, such as `string.charAt(int): string`, and its implementation. A function
 * in a namespace has the namespace's type as its receiver, and receives it as first argument. The implementation pays the meter
 * for work that grows with its arguments, and throws an EvaluationError if it has no value.
 */
export type LibraryFunction = readonly [signature: string, call: (meter: Meter, ...values: never[]) => Value];

/** A class with any constructor. */
interface ValueClass {
  readonly prototype: object;
}

/** The functions of one subject, with their types and namespaces. */
export interface Library {
  readonly types?: readonly (readonly [name: string, declared: ValueClass])[];
  readonly namespaces?: readonly string[];
  readonly functions: readonly LibraryFunction[];
}
