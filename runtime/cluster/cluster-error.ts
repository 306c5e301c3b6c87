/** Summaries of the failures, by code. */
const summaries = {
  PORT_REFUSED: "the cluster cannot listen on the port",
  STATE_LOCKED: "another process keeps its cluster in this state file",
  STATE_DAMAGED: "the state file cannot be read",
  FILE_REFUSED: "the file cannot be written",
} as const;

export type ClusterErrorCode = keyof typeof summaries;

/** Details of a failure, for a caller that words it itself. */
interface ClusterFault {
  /** The cause, in lower case and without a full stop. */
  readonly what: string;
  readonly file?: string;
  /** Line number in the file, from 1. */
  readonly line?: number;
  readonly port?: number;
  readonly cause?: unknown;
}

/** A failure of the cluster itself. A client's mistake is answered with a `Status` instead. */
export class ClusterError extends Error {
  override readonly name = "ClusterError";
  readonly code: ClusterErrorCode;
  readonly fault: ClusterFault;

  constructor(code: ClusterErrorCode, fault: ClusterFault) {
    const { what, file, line, port, cause } = fault;
    const place = file === undefined ? "" : ` ${file}${line === undefined ? "" : `:${line}`}`;
    super(`${code}${place}: ${summaries[code]}: ${what}${port === undefined ? "" : `, got ${port}`}`, { cause });
    this.code = code;
    this.fault = fault;
  }
}
