// Interface to the sandbox: the result of bundling.

/** One function's code, ready for an isolate. */
export interface Bundle {
  /** Script that stores the handler where the guest's entry finds it. */
  readonly script: string;
  /** Source map (JSON) of the script; it never enters the isolate. */
  readonly sourceMap: string;
  /** Length of the source map in characters; the map itself may have to be unpacked first. */
  readonly sourceMapLength: number;
  /** sha256 of the script, hex: names the code version in logs, status and caches. */
  readonly hash: string;
  /** The files that went in, absolute; the dev server watches them. */
  readonly inputs: readonly string[];
  /** Whether the code mentions `oldObject`; only then is it looked up and passed. */
  readonly usesOldObject: boolean;
}
