/** What a link tells: in this order, `opened` once, then `data`, then `ended` once. Never during `launch` itself. */
export interface LinkListener {
  /** The process has been asked for. From now on it should say something, however it was started. */
  opened(): void;
  data(chunk: Buffer): void;
  /** The process is gone, and all it had said was heard. `memory`: over its cap. `detail` is for a person. */
  ended(reason: "memory" | "exited", detail: string): void;
}

/** The one way to an executor's process: bytes both ways, and power over its life. */
export interface Link {
  /** Where the process is known by a number here. */
  readonly pid: number | undefined;
  /** The highest resident memory seen, in bytes. */
  readonly peakMemory: number;
  /** What is written before the process can be spoken to waits. `taken` is called once the bytes have left this process, or never will. */
  write(bytes: Buffer, taken?: () => void): void;
  /** Until `resume` no `data` is told, and what the process says stays outside this one. */
  pause(): void;
  resume(): void;
  /** Resident memory in bytes at which the process is killed. */
  capMemory(bytes: number): void;
  /** Ends the process at once, whatever it does; `ended` follows. */
  kill(): void;
}

/** Starts an executor's process. */
export type Launch = (listener: LinkListener) => Link;
