// What the headers of frames hold. `tenant` numbers one loaded version of one function, within one executor.

/** First frame to an executor; its segment is the guest's bootstrap. */
export interface Hello {
  readonly heartbeatMs: number;
  /** Milliseconds without an event after which a function's isolate is let go of; the next event opens it again. */
  readonly idleMs: number;
  /** Events after which an isolate is replaced by a new one. */
  readonly recycleEvents: number;
}

/** Its segment is the function's script. */
export interface Load {
  readonly tenant: number;
  readonly name: string;
  readonly scriptName: string;
  readonly memoryMb: number;
  readonly cpuPerEventMs: number;
  /** What one event leaves to the next: the module's state, or nothing. */
  readonly isolation: "Handler" | "Event";
  /** A handler that says to be made for these is refused: they are not what it would be told. */
  readonly refused: "events" | "keys";
  /** Isolates that take events at once. */
  readonly isolates: number;
  /** Events of it that may have begun and not ended; the others wait. */
  readonly concurrency: number;
  /** JSON object of the function's environment. */
  readonly env: string;
  /** Events to run one at a time at first: one of them brought an executor down, and which is not known. */
  readonly solo: number;
}

/**
 * Lengths in bytes; `old` is -1 where there is no previous object. The object's metadata is at `metadataAt` in it, up to `metadataEnd`;
 * -1 where that is not known.
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

/** Segments: of each event JSON of all but its objects, its object, and its previous object, end to end. */
export interface Events {
  readonly tenant: number;
  readonly items: readonly EventItem[];
}

/** `[realm, call, ok, length]`; the segments are JSON texts of results, or of errors' descriptions. */
export interface Replies {
  readonly tenant: number;
  readonly items: readonly (readonly [realm: number, call: number, ok: 0 | 1, length: number])[];
}

export interface Unload {
  readonly tenant: number;
}

/** Asks for what of the function's events has not begun. */
export interface Recall {
  readonly tenant: number;
}

/** Answers a recall: these events were sent, and never begin. */
export interface Returned {
  readonly tenant: number;
  readonly events: readonly number[];
}

/** The executor is about to run code of this function, for these events (none: its module's top level). */
export interface Entering {
  readonly tenant: number;
  readonly realm: number;
  readonly events: readonly number[];
}

/** A guest's code stands still until this call is answered, as any call is; its arguments are the body, in JSON. */
export interface Asking {
  readonly tenant: number;
  readonly realm: number;
  readonly call: number;
  readonly no: number;
  readonly operation: string;
}

/** An entry is over. Its body is the guest's outbox: a line of JSON, `[done, calls, logs, metrics, wake, strays, left]`, and the texts behind it. */
export interface Drained {
  readonly tenant: number;
  readonly realm: number;
}

/** Why an isolate, or a part of its work, was ended by the runtime. */
export type EndReason = "cpu" | "deadline" | "memory" | "output" | "killed";

/** A module's top level ran; or why it could not. */
export interface Loaded {
  readonly tenant: number;
  readonly failure?: {
    readonly reason: "thrown" | "unheard" | "handler" | "missing" | "mode" | EndReason;
    readonly name: string;
    readonly message: string;
    readonly stack: string;
  };
}

/** Events that the runtime ended: the charged count an attempt, the others are run again. */
export interface EndedEvents {
  readonly tenant: number;
  readonly realm: number;
  readonly reason: EndReason;
  readonly charged: readonly number[];
  readonly interrupted: readonly number[];
  /** Where the code was, as a stack's lines; empty where unknown. */
  readonly stack: string;
  /** Its thread has not stopped yet: `Left` follows once it has. */
  readonly running: boolean;
}

/** The thread of an isolate that was ended has stopped. */
export interface Left {
  readonly tenant: number;
  readonly realm: number;
}

/** The executor will kill itself: an isolate can no longer be stopped. */
export interface Doomed {
  readonly tenant: number;
  readonly reason: "poisoned" | "catastrophic";
}
