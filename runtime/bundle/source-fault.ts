import type { ErrorCode } from "../base/errors.ts";

/** Reason why a file must not go into a build. It never quotes the file. */
export class SourceFault extends Error {
  readonly code: Extract<ErrorCode, `WF_BUNDLE_${string}`>;
  readonly path: string | undefined;

  constructor(code: SourceFault["code"], message: string, path?: string) {
    super(message);
    this.code = code;
    this.path = path;
  }
}

/** A fault of our own, which travels through esbuild as a message's `detail`. */
export interface BuildFault {
  readonly code: ErrorCode;
  readonly hint?: string;
}
