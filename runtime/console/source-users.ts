import type { FunctionManifest, Selection } from "../manifest/function.ts";

/** The parts of a source that its readers choose. */
interface SourceSelection {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

/** Returns the functions that read a source, by their triggers and `reads`, sorted. */
export function usersOf(source: SourceSelection, manifests: readonly FunctionManifest[]): string[] {
  const isUser = ({ triggers, reads }: FunctionManifest) =>
    [...triggers, ...reads].some((each) => isReader(each, source));
  return manifests
    .filter(isUser)
    .map(({ name }) => name)
    .sort();
}

function isReader(
  selection: Selection,
  { apiVersion, kind, namespace, labelSelector, fieldSelector = "" }: SourceSelection,
) {
  if (selection.apiVersion !== apiVersion || selection.kind !== kind) return false;
  if (selection.labelSelector !== (labelSelector ?? "")) return false;
  // The runtime puts a part before it that hides its own Secrets.
  if (!fieldSelector.endsWith(selection.fieldSelector)) return false;
  const { namespaces } = selection;
  return namespace === undefined || namespaces.type !== "names" || namespaces.names.includes(namespace);
}
