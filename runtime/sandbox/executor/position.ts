import type ivm from "isolated-vm";

/** Milliseconds after which a detachment that was not confirmed is asked for again. */
const retryMs = 3;

/** Frames of a position: enough to see how the code came there. */
const maxFrames = 10;

interface Paused {
  method: string;
  params: {
    scriptId?: string;
    url?: string;
    callFrames?: {
      functionName: string;
      location: { scriptId: string; lineNumber: number; columnNumber?: number };
    }[];
  };
}

/**
 * Tells where an isolate's running code is, by an instant's pause of V8's own debugger: the only means that works in
 * the middle of a loop and costs nothing until used. The debugger is attached for that instant alone.
 */
export class Position {
  private readonly session: ivm.InspectorSession;
  private readonly urls = new Map<string, string>();
  private readonly found: (stack: string) => void;
  private lastId = 0;
  private asking = false;
  private detaching: number | undefined;
  private retry: NodeJS.Timeout | undefined;
  private dropped = false;

  /** `found` gets the stack's lines, as V8 writes them. */
  constructor(isolate: ivm.Isolate, found: (stack: string) => void) {
    this.found = found;
    this.session = isolate.createInspectorSession();
    this.session.onNotification = (message) => this.notified(message);
    this.session.onResponse = (id) => {
      if (id >= (this.detaching ?? Number.POSITIVE_INFINITY)) this.detached();
    };
  }

  /** Asks; the answer comes within about 2 ms if the code can be interrupted at all, else never. */
  ask(): void {
    if (this.asking || this.dropped || this.detaching !== undefined) return;
    this.asking = true;
    this.send("Debugger.enable");
    this.send("Debugger.pause");
  }

  /** Detaches, so that an isolate that has gone quiet by itself is not paused at its next entry. */
  stop(): void {
    if (!this.asking || this.dropped) return;
    this.asking = false;
    this.detaching = this.lastId + 1;
    this.detach();
  }

  /**
   * Lets go of the isolate; to be called before it is disposed of. A session that is left to the garbage collector can
   * lock up the process: its end and the isolate's take the same two locks in opposite order.
   */
  drop(): void {
    this.detached();
    if (this.dropped) return;
    this.dropped = true;
    try {
      this.session.dispose();
    } catch {
      // The isolate went first.
    }
  }

  /** A message that comes just as the isolate falls asleep in its pause does not wake it: another one does. */
  private detach(): void {
    this.send("Debugger.disable");
    this.retry = setTimeout(() => this.detach(), retryMs);
  }

  private detached(): void {
    clearTimeout(this.retry);
    this.detaching = undefined;
  }

  private notified(message: string): void {
    const { method, params } = JSON.parse(message) as Paused;
    if (method === "Debugger.scriptParsed") {
      if (params.scriptId && params.url) this.urls.set(params.scriptId, params.url);
      return;
    }
    if (method !== "Debugger.paused") return;
    this.stop();
    const lines = (params.callFrames ?? []).slice(0, maxFrames).map(({ functionName, location }) => {
      const url = this.urls.get(location.scriptId) ?? "<anonymous>";
      const place = `${url}:${location.lineNumber + 1}:${(location.columnNumber ?? 0) + 1}`;
      return functionName ? `    at ${functionName} (${place})` : `    at ${place}`;
    });
    if (lines.length > 0) this.found(lines.join("\n"));
  }

  private send(method: string): void {
    try {
      this.session.dispatchProtocolMessage(JSON.stringify({ id: ++this.lastId, method }));
    } catch {
      // The isolate is gone: there is no position to tell.
      this.drop();
    }
  }
}
