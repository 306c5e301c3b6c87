import { PrimordialError } from "./primordials.guest.ts";

/**
 * Returns the indexes, in the batch, of the events that the handler's result lists in `failed`, joined by commas. Returns "" if
 * it lists no event. Throws if it lists an id that is not in the batch.
 */
export function failedPlaces(batch: readonly string[], value: unknown): string {
  if (typeof value !== "object" || value === null) return "";
  const { failed } = value as { readonly failed?: unknown };
  if (failed === undefined) return "";
  if (typeof failed !== "object" || failed === null) throw new PrimordialError(notNamed);
  const { length } = failed as { readonly length?: unknown };
  if (typeof length !== "number") throw new PrimordialError(notNamed);
  let places = "";
  for (let index = 0; index < length; index++) {
    const place = placeOf(batch, (failed as ArrayLike<unknown>)[index]);
    places += places === "" ? `${place}` : `,${place}`;
    if (index >= batch.length) throw new PrimordialError("`failed` names more events than the batch has");
  }
  return places;
}

const notNamed = "`failed` is no list of the ids of events";

function placeOf(batch: readonly string[], id: unknown): number {
  for (let place = 0; place < batch.length; place++) if (batch[place] === id) return place;
  throw new PrimordialError("`failed` names an id that no event of the batch has");
}
