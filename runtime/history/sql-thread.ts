import { Worker } from "node:worker_threads";

/** A value in a row. */
export type SqlValue = string | number | null;

/** One statement. With `rows` it runs once for each of them; otherwise once, and its rows are the result. */
export interface SqlStep {
  readonly sql: string;
  readonly values?: readonly SqlValue[];
  readonly rows?: readonly (readonly SqlValue[])[];
}

/** A row as SQLite returns it. */
export type SqlRow = Readonly<Record<string, SqlValue>>;

/** An error of SQLite, with its extended result code. */
class SqlFault extends Error {
  override readonly name = "SqlFault";
  readonly errcode: number | undefined;

  constructor(message: string, errcode?: number) {
    super(message);
    this.errcode = errcode;
  }
}

interface SqlReply {
  readonly number: number;
  readonly results?: readonly (readonly SqlRow[])[];
  readonly fault?: { readonly message: string; readonly errcode?: number };
}

interface PendingReply {
  readonly resolve: (results: readonly (readonly SqlRow[])[]) => void;
  readonly reject: (fault: SqlFault) => void;
}

/** Memory of the thread's heap, in megabytes: a batch and an answer, several times. */
const heapMb = 64;

/**
 * Program of the thread: runs the steps of a request in one transaction, and answers in the order of the requests. A request with a
 * `file` opens it first. It is text, because a package
 * has no separate file for it.
 */
const program = `
const { DatabaseSync } = require("node:sqlite");
const { parentPort } = require("node:worker_threads");

let db;
const prepared = new Map();

function statement(sql) {
  let found = prepared.get(sql);
  if (!found) {
    if (prepared.size > 100) prepared.clear();
    found = db.prepare(sql);
    prepared.set(sql, found);
  }
  return found;
}

function run({ sql, values, rows }) {
  const found = statement(sql);
  if (!rows) return found.all(...(values ?? []));
  for (const row of rows) found.run(...row);
  return [];
}

function answer({ file, setup, steps, alone }) {
  if (file !== undefined) {
    const opened = new DatabaseSync(file, { timeout: 0 });
    try {
      for (const sql of setup) opened.exec(sql);
    } catch (error) {
      opened.close();
      throw error;
    }
    db = opened;
  }
  if (alone !== undefined) db.exec(alone);
  if (steps.length === 0) return [];
  db.exec("BEGIN");
  try {
    const results = steps.map(run);
    db.exec("COMMIT");
    return results;
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

parentPort.on("message", (text) => {
  if (text === "") {
    prepared.clear();
    db?.close();
    parentPort.close();
    return;
  }
  const { number, ...request } = JSON.parse(text);
  let reply;
  try {
    reply = { number, results: answer(request) };
  } catch ({ message, errcode }) {
    reply = { number, fault: { message, errcode } };
  }
  parentPort.postMessage(JSON.stringify(reply));
});
`;

/**
 * A database in a separate thread: neither a slow disk nor a long query holds the event loop. The thread takes 8 MB, does
 * not keep the process alive, and ends with `close`.
 */
export class SqlThread {
  private readonly worker: Worker;
  private readonly pending = new Map<number, PendingReply>();
  private readonly ended: Promise<void>;
  private number = 0;
  private failure: SqlFault | undefined;

  constructor() {
    const resourceLimits = { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: 8 };
    this.worker = new Worker(program, { eval: true, env: {}, argv: [], execArgv: [], resourceLimits });
    this.worker.unref();
    this.worker.on("message", (text: string) => this.take(JSON.parse(text) as SqlReply));
    this.worker.on("error", ({ message }) => this.fail(new SqlFault(`the thread has failed: ${message}`)));
    this.ended = new Promise((resolve) => {
      this.worker.on("exit", () => {
        this.fail(new SqlFault("the thread has ended"));
        resolve();
      });
    });
  }

  /** Opens a file, or `:memory:`, and runs statements that may be outside of a transaction. Rejects with a SqlFault. */
  async open(file: string, setup: readonly string[]): Promise<void> {
    await this.request({ file, setup, steps: [] });
  }

  /** Runs the steps in one transaction; returns the rows of each. Rejects with a SqlFault, after everything was rolled back. */
  ask(steps: readonly SqlStep[]): Promise<readonly (readonly SqlRow[])[]> {
    return this.request({ steps });
  }

  /** Makes the file as small as its rows. */
  async vacuum(): Promise<void> {
    await this.request({ steps: [], alone: "VACUUM" });
  }

  /** Ends the thread, after the requests before. Never rejects. */
  async close(): Promise<void> {
    this.worker.ref();
    this.worker.postMessage("");
    await this.ended;
  }

  private request(request: object): Promise<readonly (readonly SqlRow[])[]> {
    if (this.failure) return Promise.reject(this.failure);
    const number = ++this.number;
    return new Promise((resolve, reject) => {
      this.pending.set(number, { resolve, reject });
      this.worker.postMessage(JSON.stringify({ number, ...request }));
    });
  }

  private take({ number, results, fault }: SqlReply): void {
    const pending = this.pending.get(number);
    this.pending.delete(number);
    if (fault) pending?.reject(new SqlFault(fault.message, fault.errcode));
    else pending?.resolve(results ?? []);
  }

  private fail(fault: SqlFault): void {
    this.failure ??= fault;
    for (const { reject } of this.pending.values()) reject(this.failure);
    this.pending.clear();
  }
}
