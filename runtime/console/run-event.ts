import { relative } from "node:path";
import { WatchfireError } from "../base/errors.ts";
import { type FixtureInput, fixtureFrom, fixtureName, namesOf, saveFixture } from "../control/record/fixture.ts";
import { withoutSecrets } from "../control/record/redaction.ts";
import type { RunHistory } from "../history/run-history.ts";
import type { DeadLetter, DeadLetterSummary } from "../journal/batch.ts";
import type { RecordAnswer } from "../observe/control-api.ts";
import type { RunEvent } from "./schemas.ts";

export interface RunEventParts {
  readonly history?: Pick<RunHistory, "received"> | undefined;
  /** Returns the function's dead letter of an event. */
  letterOf(functionName: string, id: string): Promise<DeadLetterSummary | undefined>;
  /** Returns a dead letter with its bodies. */
  show(letter: string): Promise<DeadLetter>;
  /** Removes the values of a function's environment. */
  redact(functionName: string, data: unknown): unknown;
  /** Returns the folder for the fixtures of a function, if the runtime may write them. Default: a browser downloads them. */
  fixtureFolder?(functionName: string): string | undefined;
}

/** A run's event as a fixture, and its place. */
interface Found {
  readonly from: NonNullable<RunEvent["from"]>;
  readonly taken: RecordAnswer["taken"][number];
}

/** Returns what a run received, as a fixture without secrets: from memory, or from its dead letter. */
export async function runEvent(parts: RunEventParts, name: string, id: string): Promise<RunEvent> {
  const folder = parts.fixtureFolder?.(name);
  const found = await find(parts, name, id);
  return {
    ...(folder !== undefined && { savesTo: shownPath(folder) }),
    ...(found && { from: found.from, file: `${fixtureName(found.taken)}.json`, fixture: found.taken.fixture }),
  };
}

/**
 * Writes what a run received into the folder for its function's fixtures. Returns the file's path.
 * @throws WatchfireError WF_CLI_FIXTURE
 */
export async function saveRunEvent(parts: RunEventParts, name: string, id: string): Promise<string> {
  const folder = parts.fixtureFolder?.(name);
  const found = await find(parts, name, id);
  if (folder !== undefined && found) return shownPath(saveFixture(folder, found.taken));
  const hint = `\`watchfire record ${name}\` records the events that follow`;
  const what =
    folder === undefined
      ? "only `watchfire dev` writes fixtures into the folder"
      : "the run's objects are not on record";
  throw new WatchfireError("WF_CLI_FIXTURE", { what, actual: id, hint });
}

async function find(parts: RunEventParts, name: string, id: string): Promise<Found | undefined> {
  const kept = await parts.history?.received(name, id);
  const input: FixtureInput | undefined = kept?.body && { ...kept, body: kept.body };
  if (input) return { from: "memory", taken: takenFrom(parts, name, input) };
  const summary = await parts.letterOf(name, id);
  if (!summary || summary.bodyDropped) return undefined;
  const letter = await parts.show(summary.letter);
  const { apiVersion, kind, namespace, uid, attempts: attempt } = letter;
  const object = { apiVersion, kind, namespace, name: letter.name, uid };
  return { from: "deadLetter", taken: takenFrom(parts, name, { ...letter, object, attempt, redelivered: true }) };
}

function takenFrom({ redact }: RunEventParts, name: string, input: FixtureInput): Found["taken"] {
  const fixture = redact(name, withoutSecrets(fixtureFrom(input))) as Record<string, unknown>;
  return { ...namesOf(input), fixture };
}

/** A path below the working folder is shown relative to it. */
function shownPath(path: string): string {
  const short = relative(process.cwd(), path);
  return short.startsWith("..") ? path : short;
}
