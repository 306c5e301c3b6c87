import { z } from "zod";
import { WatchfireError } from "../base/errors.ts";
import type { FleetReport } from "../control/fleet-report.ts";
import { Checkpoint, type DeadLetterPage } from "../journal/checkpoint.ts";
import { DeadLetters, type WaitingReplay } from "../journal/dead-letters.ts";
import { SqliteJournal } from "../journal/sqlite/journal.ts";
import { readAddress } from "../observe/address-file.ts";
import {
  type DeadLetterDetail,
  type DeadLetterRow,
  deadLetterRowSchema,
  deadLetterSchema,
  describeDeadLetter,
  describeSummary,
  replayAnswerSchema,
} from "../observe/dead-letter.ts";
import { readToken } from "../observe/token-file.ts";
import { RuntimeClient } from "./runtime-client.ts";
import { fleetOf, functionNames } from "./status-answer.ts";

/** Access to dead letters: in the data folder while no runtime uses it, or at a runtime's address. */
export interface DeadLetterClient {
  /** Oldest first, at most `deadLetterPageSize`. */
  list(page: Pick<DeadLetterPage, "after" | "function">): Promise<DeadLetterRow[]>;
  show(id: string): Promise<DeadLetterDetail>;
  /** Returns the events that wait for their function. Fails as a whole if one id cannot be replayed. */
  replay(ids: readonly string[]): Promise<readonly WaitingReplay[]>;
  drop(ids: readonly string[]): Promise<void>;
  /** The known functions. Removed functions may have letters as well. */
  functions(): Promise<string[]>;
  /** Describes that other replicas have letters too. `undefined` if all are here. */
  others(): Promise<string | undefined>;
  close(): Promise<void>;
}

/**
 * Opens the dead letters in a folder. If a runtime uses the folder, connects to it, with the address and token that it left
 * there. That is all that a runtime with another store leaves.
 * @throws WatchfireError of the checkpoint section
 */
export function openFolder(folder: string, reason?: string): DeadLetterClient {
  try {
    return openStopped(folder);
  } catch (error) {
    const url = readAddress(folder);
    if (!(error instanceof WatchfireError) || !lettersElsewhere.has(error.code) || url === undefined) throw error;
    return openRuntime(url, readToken(folder), reason);
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

/**
 * Connects to a runtime. `token`: from its data folder. `reason`: of changes, for its audit.
 * @throws WatchfireError WF_CLI_USAGE unless `url` is http or https
 */
export const openRuntime = (url: string, token: string | undefined, reason?: string): DeadLetterClient =>
  deskOf(new RuntimeClient(url, token, reason));

/** Returns the dead letters of a runtime. */
export function deskOf(runtime: RuntimeClient): DeadLetterClient {
  return {
    list: (page) => {
      const query = new URLSearchParams(Object.entries(page).filter(([, value]) => value !== undefined));
      return runtime.ask(deadLetterRowSchema.array(), `dead-letters?${query}`);
    },
    show: (id) => runtime.ask(deadLetterSchema, `dead-letters/${encodeURIComponent(id)}`),
    replay: async (ids) => (await runtime.ask(replayAnswerSchema, "dead-letters/replay", { ids })).waiting,
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
