import { z } from "zod";
import { WatchfireError } from "../base/errors.ts";
import type { FleetReport } from "../control/fleet-report.ts";
import { Checkpoint, type DeadLetterPage } from "../journal/checkpoint.ts";
import { DeadLetters } from "../journal/dead-letters.ts";
import { SqliteJournal } from "../journal/sqlite/journal.ts";
import { readAddress } from "../observe/address-file.ts";
import {
  type DeadLetterDetail,
  type DeadLetterRow,
  deadLetterRowSchema,
  deadLetterSchema,
  describeDeadLetter,
  describeSummary,
} from "../observe/dead-letter.ts";
import { readToken } from "../observe/token-file.ts";
import { RuntimeClient } from "./runtime-client.ts";
import { fleetOf, functionNames } from "./status-answer.ts";

/** Where the dead letters are reached: the data folder while no runtime holds it, or a runtime's own address. */
export interface DeadLetterClient {
  /** Oldest first; at most `deadLetterPageSize`. */
  list(page: Pick<DeadLetterPage, "after" | "function">): Promise<DeadLetterRow[]>;
  show(id: string): Promise<DeadLetterDetail>;
  /** Of an id that cannot be replayed all are refused. */
  replay(ids: readonly string[]): Promise<void>;
  drop(ids: readonly string[]): Promise<void>;
  /** The functions that are known there; of one that is gone there may be letters all the same. */
  functions(): Promise<string[]>;
  /** In words, that other replicas have letters too; undefined where all are here. */
  others(): Promise<string | undefined>;
  close(): Promise<void>;
}

/**
 * Of a folder that a runtime uses: that runtime's, at the address and with the token that it left there. One that keeps its
 * positions elsewhere leaves nothing more.
 * @throws WatchfireError of the checkpoint section
 */
export function openFolder(folder: string): DeadLetterClient {
  try {
    return openStopped(folder);
  } catch (error) {
    const url = readAddress(folder);
    if (!(error instanceof WatchfireError) || !lettersElsewhere.has(error.code) || url === undefined) throw error;
    return openRuntime(url, readToken(folder));
  }
}

const lettersElsewhere: ReadonlySet<string> = new Set(["WF_CHECKPOINT_LOCKED", "WF_CHECKPOINT_MISSING"]);

function openStopped(folder: string): DeadLetterClient {
  const store = new Checkpoint(new SqliteJournal({ folder, maintenance: true }));
  const letters = new DeadLetters(store);
  return {
    list: async (page) => (await letters.list(page)).map(describeSummary),
    show: async (id) => describeDeadLetter(await letters.show(id)),
    replay: (ids) => letters.replay(ids),
    drop: (ids) => letters.drop(ids),
    functions: async () => {
      const views = [...(await store.views()), ...(await store.retiredViews())];
      return [...new Set(views.map((view) => view.function))];
    },
    others: async () => undefined,
    close: () => store.close(false),
  };
}

/** `token` is that of its data folder. @throws WatchfireError WF_CLI_USAGE unless `url` is one of http or https */
export function openRuntime(url: string, token: string | undefined): DeadLetterClient {
  const runtime = new RuntimeClient(url, token);
  return {
    list: (page) => {
      const query = new URLSearchParams(Object.entries(page).filter(([, value]) => value !== undefined));
      return runtime.ask(deadLetterRowSchema.array(), `dead-letters?${query}`);
    },
    show: (id) => runtime.ask(deadLetterSchema, `dead-letters/${encodeURIComponent(id)}`),
    replay: async (ids) => void (await runtime.ask(z.unknown(), "dead-letters/replay", { ids })),
    drop: async (ids) => void (await runtime.ask(z.unknown(), "dead-letters/drop", { ids })),
    functions: () => functionNames(runtime),
    others: async () => othersOf(await fleetOf(runtime)),
    close: async () => undefined,
  };
}

function othersOf(fleet: FleetReport | undefined): string | undefined {
  const here = fleet?.slots.filter(({ state }) => state === "running") ?? [];
  if (!fleet || here.length === fleet.slots.length) return undefined;
  return `${here.length} of ${fleet.slots.length} slots are here; \`watchfire slots\` says who has the others' dead letters`;
}
