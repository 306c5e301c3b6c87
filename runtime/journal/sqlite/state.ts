import type { DatabaseSync } from "node:sqlite";
import { resourceVersion } from "../../base/resource-version.ts";
import { type Row, startedRows } from "../rows.ts";
import { JournalState } from "../state.ts";

/** Reads the state that is always in memory. @throws SQLite's error; a parse error if a row cannot be read */
export function readState(db: DatabaseSync): JournalState {
  const state = new JournalState();
  const each = (sql: string): Iterable<Row> => db.prepare(sql).iterate();
  const { cluster } = db.prepare("SELECT cluster FROM meta").get() ?? {};
  state.cluster = typeof cluster === "string" ? cluster : undefined;
  for (const row of each("SELECT * FROM paused")) state.paused.set(String(row.function), Number(row.since));
  for (const row of each("SELECT * FROM own_state"))
    state.putOwn({ function: String(row.function), key: String(row.key), value: String(row.value) });
  for (const row of each("SELECT * FROM view ORDER BY id")) {
    state.putView({
      id: Number(row.id),
      function: String(row.function),
      trigger: String(row.trigger),
      resource: String(row.resource),
      identity: String(row.identity ?? row.trigger),
      manifest: typeof row.manifest === "string" ? row.manifest : undefined,
      retiredAt: typeof row.retired_at === "number" ? row.retired_at : undefined,
    });
  }
  for (const row of each("SELECT * FROM cursor")) {
    state.views.get(Number(row.view))?.cursors.set(String(row.namespace), {
      view: Number(row.view),
      namespace: String(row.namespace),
      selection: String(row.selection),
      lowWaterMark: typeof row.low_water_mark === "string" ? resourceVersion(row.low_water_mark) : undefined,
      epoch: Number(row.epoch),
      initial: row.initial === 1,
    });
  }
  for (const row of each("SELECT * FROM journal ORDER BY id")) {
    const id = Number(row.id);
    state.begun.set(id, { id, started: startedRows.parse(JSON.parse(String(row.started))) });
  }
  // The sequences also count deleted rows.
  for (const { name, seq } of each("SELECT name, seq FROM sqlite_sequence")) {
    if (name === "view") state.nextView = Number(seq) + 1;
    if (name === "dead_letter") state.nextLetter = Number(seq) + 1;
  }
  return state;
}
