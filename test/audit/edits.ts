import type { Fact } from "./ledger.ts";

/** Number of lots into which objects are divided by the numbers in their names. A selector edit deselects one lot. */
export const lots = 3;

const isInFirstLot = (name: string): boolean => Number(name.slice("item-".length)) % lots === 0;

/** The objects and states that a manifest asks for. */
export interface Wanted {
  /**
   * By namespaces and selectors. Another function here is another selection, after which the objects are listed again.
   */
  readonly selects: (name: string) => boolean;
  /** By conditions and events, which apply to changes while they are in force. */
  readonly takes: (fact: Pick<Fact, "name" | "type">) => boolean;
}

/**
 * One version of the recorder's manifest: the differences of its trigger from the file, and the changes that it then wants.
 */
export interface Shape extends Partial<Wanted> {
  /** The trigger's name. */
  readonly trigger?: string;
  /** Fields of `watch`. */
  readonly watch?: Readonly<Record<string, unknown>>;
}

const everything = () => true;

/** The objects and states that a shape asks for; without a shape, everything. */
export const wantedBy = ({ selects = everything, takes = everything }: Shape = {}): Wanted => ({ selects, takes });

/** An edit of the manifest. Changes up to and including `from` were handled under the previous manifest. */
export interface Edit {
  readonly from: number;
  /** Changes after this resourceVersion are judged by this manifest alone, and changes in between by both. */
  readonly to: number;
  readonly wanted: Wanted;
}

/** The manifest in the file. */
export const asInFile: Shape = {};
const trigger = "renamed";

/** Edits that keep the watch, so that no change is lost. */
export const edits: readonly [Shape, ...Shape[]] = [
  {
    trigger,
    watch: {
      object: "Metadata",
      matchConditions: [{ name: "lot", expression: `int(object.metadata.name.substring(5)) % ${lots} != 0` }],
    },
    takes: ({ name }) => !isInFirstLot(name),
  },
  { watch: { lastBody: "Metadata" } },
  { trigger, watch: { events: ["Added", "Deleted"] }, takes: ({ type }) => type !== "Modified" },
  { trigger, watch: { changedFields: [".data"] } },
];

/** The label that the writer puts on an object, by its number: its lot. */
export const labelsOf = (object: number) => ({ lot: String(object % lots) });

const withoutFirstLot: Shape = {
  watch: { labelSelector: { matchExpressions: [{ key: "lot", operator: "NotIn", values: ["0"] }] } },
  selects: (name) => !isInFirstLot(name),
};

const inNamespaces = { namespaceSelector: { matchNames: ["audit", "default"] } };

/**
 * Edits after which the objects are listed again, starting from the file's manifest. No edit changes a trigger's name and its
 * selection at once, because that would make another trigger.
 */
export const selections: readonly [Shape, ...Shape[]] = [
  withoutFirstLot,
  { watch: { object: "Metadata" } },
  { watch: inNamespaces },
  { trigger, watch: inNamespaces },
  { ...withoutFirstLot, trigger },
];

/** Edits that a whole fleet sees: a rename, then another selection under the new name, and back. */
export const fleetEdits: readonly Shape[] = [{ trigger }, { trigger, ...withoutFirstLot }, { trigger }];
