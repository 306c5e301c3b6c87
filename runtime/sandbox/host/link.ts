/** Callbacks of a link, in this order: `opened` once, `data`, `ended` once. Never called during `launch` itself. */
export interface LinkListener {
  /** The process was requested. From now on it must send its first frame in time, however it was started. */
  opened(): void;
  data(chunk: Buffer): void;
  /** The process has ended and all its data was delivered. `memory`: it exceeded its cap. `detail` is for a person. */
  ended(reason: "memory" | "exited", detail: string): void;
}

/** Connection to an executor's process: bytes in both directions, and control over its lifetime. */
export interface Link {
  /** Its process id, if the process is visible from here. */
  readonly pid: number | undefined;
  /** The highest resident memory seen, in bytes. */
  readonly peakMemory: number;
  /**
   * Sends bytes. They are buffered until the process is connected. `taken` is called once they have left this process, or never
   * will.
   */
  write(bytes: Buffer, taken?: () => void): void;
  /** Stops reading. Until `resume`, `data` is not called and unread data stays outside this process. */
  pause(): void;
  resume(): void;
  /** Sets the resident memory in bytes at which the process is killed. */
  capMemory(bytes: number): void;
  /**
   * Reports whether code of functions may run in the process. While it may not, the process' memory is checked less often. Default: its memory
   * is always checked alike.
   */
  mayRun?(isPossible: boolean): void;
  /** Kills the process at once; `ended` follows. */
  kill(): void;
}

/** Starts an executor's process. */
export type Launch = (listener: LinkListener) => Link;
