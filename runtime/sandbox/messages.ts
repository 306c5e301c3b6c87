// Headers of the frames. `functionId` is the number, within one executor, of one loaded version of one function.

/** First frame to an executor. Its segment is the guest's bootstrap. */
export interface Hello {
  readonly heartbeatMs: number;
  /** Milliseconds without an event after which a function's isolate is closed. The next event opens it again. */
  readonly idleMs: number;
  /** Number of events after which an isolate is replaced by a new one. */
  readonly recycleEvents: number;
}

/** Loads a function. Its segment is the function's script. */
export interface Load {
  readonly functionId: number;
  readonly name: string;
  readonly scriptName: string;
  readonly memoryMb: number;
  readonly cpuPerEventMs: number;
  /** State that is kept between events: the module's ("Handler"), or nothing ("Event"). */
  readonly isolation: "Handler" | "Event";
  /** A handler declared for this mode is refused, because the function's trigger delivers the other one. */
  readonly refused: "events" | "keys";
  /** Maximum number of isolates that take events at once. */
  readonly isolates: number;
  /** Maximum number of its events that have begun and not ended. Further events wait. */
  readonly concurrency: number;
  /** The function's environment, as a JSON object. */
  readonly env: string;
  /** Number of events to run one at a time first, because an unknown one of them crashed an executor. */
  readonly solo: number;
}

/**
 * Lengths in bytes; `old` is -1 if there is no previous object. The object's metadata is at bytes `metadataAt` to `metadataEnd`
 * of it; -1 if that is not known.
 */
export type EventItem = readonly [
  no: number,
  timeoutMs: number,
  head: number,
  object: number,
  old: number,
  metadataAt: number,
  metadataEnd: number,
];

/**
 * Events to run. Segments, concatenated for each event: the JSON of everything but the objects, the object, and the previous
 * object.
 */
export interface Events {
  readonly functionId: number;
  readonly items: readonly EventItem[];
}

/** Answers to calls, each as `[realm, call, ok, length]`. The segments are JSON texts of results or of errors. */
export interface Replies {
  readonly functionId: number;
  readonly items: readonly (readonly [realm: number, call: number, ok: 0 | 1, length: number])[];
}

export interface Unload {
  readonly functionId: number;
}

/** Asks for the function's events that have not begun. */
export interface Recall {
  readonly functionId: number;
}

/** Answers a recall: these events were sent and will not begin. */
export interface Returned {
  readonly functionId: number;
  readonly events: readonly number[];
}

/** The executor is about to run code of this function for these events. An empty list means the module's top level. */
export interface Entering {
  readonly functionId: number;
  readonly realm: number;
  readonly events: readonly number[];
}

/** The guest's code is blocked until this call is answered in the usual way. The body is the call's arguments, in JSON. */
export interface Asking {
  readonly functionId: number;
  readonly realm: number;
  readonly call: number;
  readonly no: number;
  readonly operation: string;
}

/**
 * An entry has ended. The body is the guest's outbox: a line of JSON, `[done, calls, logs, metrics, wake, strays, left]`,
 * followed by the texts.
 */
export interface Drained {
  readonly functionId: number;
  readonly realm: number;
  /** The entry's use, unless it was not measured. */
  readonly used?: EntryUse;
}

/** Microseconds of CPU of each event that the entry ran, and bytes of the isolate's heap when it was last measured, 0 before. */
export type EntryUse = readonly [cpuUs: number, heapBytes: number];

/** Why the runtime ended an isolate, or a part of its work. */
export type EndReason = "cpu" | "deadline" | "memory" | "output" | "killed";

/** A module's top level has run, or has failed. */
export interface Loaded {
  readonly functionId: number;
  readonly failure?: {
    readonly reason: "thrown" | "unheard" | "handler" | "missing" | "mode" | EndReason;
    readonly name: string;
    readonly message: string;
    readonly stack: string;
  };
}

/** Events that the runtime ended. Those in `charged` count as an attempt; those in `interrupted` run again. */
export interface EndedEvents {
  readonly functionId: number;
  readonly realm: number;
  readonly reason: EndReason;
  readonly charged: readonly number[];
  readonly interrupted: readonly number[];
  /** Stack lines that show where the code was; empty if unknown. */
  readonly stack: string;
  /** Whether the thread has not stopped yet. `Left` follows once it has. */
  readonly running: boolean;
}

/** The thread of an ended isolate has stopped. */
export interface Left {
  readonly functionId: number;
  readonly realm: number;
}

/** The executor is about to kill itself, because an isolate cannot be stopped. */
export interface Doomed {
  readonly functionId: number;
  readonly reason: "poisoned" | "catastrophic";
}
