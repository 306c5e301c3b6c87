import { type Constant, numberOf } from "./constants.ts";

/** A limit of a queue, a buffer, a cache or a list of the runtime. */
export interface Bound {
  readonly what: string;
  /** Limit of one function. `-`: only the runtime as a whole has it. */
  readonly ofFunction: string;
  /** Limit of all functions together. `no more`: it is only the sum over the functions. */
  readonly ofRuntime: string;
  /** Behaviour beyond the limit. */
  readonly beyond: string;
  readonly set: readonly Constant[];
  /** Memory of the parent that all functions together can make it use, in bytes, if that is limited. */
  readonly memory?: number;
  /** The same for disk space. */
  readonly disk?: number;
}

const unit = (size: number, factor: number, name: string) => `${(size / factor).toLocaleString("en")} ${name}`;

/** Formats a size, such as `16 MiB`. */
export const sizeOf = (bytes: number): string =>
  bytes >= 2 ** 20 ? unit(Math.round(bytes / 2 ** 20), 1, "MiB") : unit(Math.round(bytes / 2 ** 10), 1, "KiB");
const count = (number: number): string => number.toLocaleString("en");

/** A constant and the text of its value. */
export function constant(file: string, name: string, key?: string) {
  const of: Constant = { file, name };
  const value = numberOf(of, key);
  return { of, value, n: count(value), size: sizeOf(value) };
}

/** For a bound that each function has, without a common limit. */
export const perFunctionOnly = "no more";
/** For a resource that the runtime has only once. */
export const runtimeAlone = "-";

/** All bounds of a file or a folder, which are parts of the row's subject. */
export const inFile = (...files: readonly string[]): Constant[] => files.map((file) => ({ file, name: "*" }));
export const inFolder = (folder: string): Constant[] => [{ file: folder, name: "*" }];
