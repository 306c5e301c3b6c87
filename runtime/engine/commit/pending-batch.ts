import type {
  Batch,
  Cursor,
  JournalRow,
  KnownBody,
  KnownState,
  KnownWrite,
  LastBody,
  NewDeadLetter,
  Spilled,
  StartedEvent,
  StateWrite,
} from "../../journal/batch.ts";

/** The writes of the next commit; later ones of the same row replace earlier ones. */
export class PendingBatch {
  /** The journal row of the batch's attempts. */
  readonly row: number;
  /** The number of rows, which decides when to commit. */
  rows = 0;
  /** The bytes of all bodies. */
  bytes = 0;
  readonly started: StartedEvent[] = [];
  /** Callbacks of the attempts, called with the row when the batch is durable. */
  readonly begun: ((row: number) => void)[] = [];
  /** Called after `begun` when the batch is durable. */
  readonly waiters: (() => void)[] = [];
  private readonly known = new Map<number, Map<string, KnownState | undefined>>();
  private bodies: readonly LastBody[] = [];
  private readonly settledJournal: number[] = [];
  private readonly journal = new Map<number, JournalRow>();
  private readonly spill: Spilled[] = [];
  private readonly unspill: { function: string; sequence: number }[] = [];
  private readonly deadLetters: NewDeadLetter[] = [];
  private readonly droppedDeadLetters: string[] = [];
  private readonly state: StateWrite[] = [];
  private readonly droppedCursors: Pick<Cursor, "view" | "namespace">[] = [];

  constructor(row: number) {
    this.row = row;
  }

  putKnown(view: number, key: string, state: KnownState | undefined): void {
    let ofView = this.known.get(view);
    if (!ofView) {
      ofView = new Map();
      this.known.set(view, ofView);
    }
    ofView.set(key, state);
    this.count(state?.body === "older" ? undefined : state?.body);
  }

  /**
   * Returns the batch's write of an object's body, whose `body` is `undefined` if it is deleted. Returns `undefined` without a
   * write.
   */
  bodyOf(view: number, key: string): { readonly body: KnownBody | undefined } | undefined {
    const last = this.bodies.find((each) => each.view === view && each.key === key);
    if (last) return { body: { bytes: last.body, isOlder: false } };
    const ofView = this.known.get(view);
    if (!ofView?.has(key)) return undefined;
    const body = ofView.get(key)?.body;
    if (body === "older") return undefined;
    return { body: body && { bytes: body, isOlder: false } };
  }

  /** Whether the batch writes the object's row. */
  has(view: number, key: string): boolean {
    return this.known.get(view)?.has(key) ?? false;
  }

  /** Whether the batch does not write the object's body. */
  leavesBody(view: number, key: string): boolean {
    const ofView = this.known.get(view);
    return !ofView?.has(key) || ofView.get(key)?.body === "older";
  }

  /** Adds bodies that were waiting. Each joins the write of its object's row, if there is one. */
  takeBodies(bodies: readonly LastBody[]): void {
    this.bodies = bodies.filter(({ view, key, body }) => {
      const ofView = this.known.get(view);
      const state = ofView?.get(key);
      if (!state) return true;
      ofView?.set(key, { ...state, body });
      return false;
    });
  }

  addSpilled(event: Spilled): void {
    this.spill.push(event);
    this.count(event.body);
  }

  dropSpilled(functionName: string, sequence: number): void {
    this.unspill.push({ function: functionName, sequence });
    this.rows++;
  }

  addDeadLetter(letter: NewDeadLetter): void {
    this.deadLetters.push(letter);
    this.count(letter.body);
    this.bytes += letter.oldBody?.length ?? 0;
  }

  dropDeadLetter(letter: string): void {
    this.droppedDeadLetters.push(letter);
    this.rows++;
  }

  addState(writes: readonly StateWrite[]): void {
    this.state.push(...writes);
    this.rows += writes.length;
    for (const { value } of writes) this.bytes += value?.length ?? 0;
  }

  putJournal(row: JournalRow): void {
    this.journal.set(row.id, row);
  }

  settleJournal(row: number): void {
    this.journal.delete(row);
    this.settledJournal.push(row);
  }

  dropCursor(view: number, namespace: string): void {
    this.droppedCursors.push({ view, namespace });
    this.rows++;
  }

  /** Converts the batch for the store, with the current cursors. */
  seal(cursors: readonly Cursor[]): Batch {
    const known: KnownWrite[] = [];
    for (const [view, states] of this.known) for (const [key, state] of states) known.push({ view, key, state });
    const started = this.started.length === 0 ? [] : [{ id: this.row, started: this.started }];
    return {
      known,
      bodies: this.bodies,
      cursors,
      droppedCursors: this.droppedCursors,
      journal: [...this.journal.values(), ...started],
      settledJournal: this.settledJournal,
      spill: this.spill,
      unspill: this.unspill,
      deadLetters: this.deadLetters,
      droppedDeadLetters: this.droppedDeadLetters,
      state: this.state,
    };
  }

  private count(body: Buffer | undefined): void {
    this.rows++;
    this.bytes += body?.length ?? 0;
  }
}
