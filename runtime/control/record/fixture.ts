import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { WatchfireError } from "../../base/errors.ts";
import { parseExactly } from "../../base/exact-json.ts";
import { systemReason } from "../../base/wording.ts";
import { type Delivery, eventFields } from "../../engine/delivery/delivery.ts";
import { isChange } from "../../manifest/function.ts";
import type { RecordAnswer } from "../../observe/control-api.ts";

/** The parts of a delivery that a fixture is made from. A batch without `members` has a list of its events as its body. */
export type FixtureInput = Pick<
  Delivery,
  | "id"
  | "trigger"
  | "type"
  | "attempt"
  | "redelivered"
  | "resourceVersion"
  | "flags"
  | "causes"
  | "object"
  | "body"
  | "oldBody"
  | "batch"
  | "members"
  | "state"
>;

/** Returns what names a fixture's file: `added`, `modified`, `deleted`, `scheduled`, `run` or `batch`, and the object's name. */
export const namesOf = ({
  type,
  object,
  batch,
  causes,
}: Pick<FixtureInput, "type" | "object" | "batch" | "causes">) => ({
  what: causes ? "run" : batch ? "batch" : type.toLowerCase(),
  object: object.name,
});

/** Returns the fixture with which `watchfire test` makes the same delivery. */
export function fixtureFrom(delivery: FixtureInput): object {
  const state = Object.fromEntries([...(delivery.state ?? [])].map(([key, value]) => [key, JSON.parse(value)]));
  return { ...inputFrom(delivery), ...(Object.keys(state).length > 0 && { state }) };
}

function inputFrom(delivery: FixtureInput): object {
  const { causes, members, batch, object, body, attempt, redelivered } = delivery;
  if (members) return { events: members.map(eventFrom) };
  if (batch) return { events: parsed(body) };
  if (!causes) return { event: eventFrom(delivery) };
  const { namespace, name } = object;
  const key = namespace === "" ? { name } : { namespace, name };
  return { run: { key, ...(body.length > 0 && { object: parsed(body) }), causes, attempt, redelivered } };
}

function eventFrom(delivery: FixtureInput): object {
  const { type, body, oldBody } = delivery;
  return {
    ...eventFields(delivery),
    ...(isChange(type) && { object: parsed(body) }),
    ...(oldBody && { oldObject: parsed(oldBody) }),
  };
}

const parsed = (body: Buffer): unknown => parseExactly(body.toString("utf8"));

/** The name of a fixture's file, without its ending. */
export const fixtureName = ({ what, object }: Pick<RecordAnswer["taken"][number], "what" | "object">): string =>
  `${what}-${object}`
    .toLowerCase()
    .replace(/[^a-z0-9.-]+/g, "-")
    .slice(0, 100);

/**
 * Writes a fixture into a folder, with a number behind its name if there is one of that name, unless `force` is true. Returns its path.
 * @throws WatchfireError WF_CLI_FIXTURE
 */
export function saveFixture(folder: string, taken: RecordAnswer["taken"][number], force = false): string {
  const base = fixtureName(taken);
  let file = join(folder, `${base}.json`);
  for (let number = 2; !force && existsSync(file); number++) file = join(folder, `${base}-${number}.json`);
  try {
    mkdirSync(folder, { recursive: true });
    writeFileSync(file, `${JSON.stringify(taken.fixture, null, 2)}\n`, { flag: force ? "w" : "wx" });
  } catch (cause) {
    throw new WatchfireError("WF_CLI_FIXTURE", { what: systemReason(cause), place: { file }, cause });
  }
  return file;
}
