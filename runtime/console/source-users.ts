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
  if (!isSelectedBy(fieldSelector, selection)) return false;
  const { namespaces } = selection;
  return namespace === undefined || namespaces.type !== "names" || namespaces.names.includes(namespace);
}

/** Before the selector of a watch of Secrets, the runtime puts requirements that hide its own. */
const hidingOwn = /^(metadata\.name!=[^,]+(,|$))*$/;

function isSelectedBy(fieldSelector: string, { kind, fieldSelector: selected }: Selection): boolean {
  if (fieldSelector === selected) return true;
  if (kind !== "Secret" || !fieldSelector.endsWith(selected)) return false;
  return hidingOwn.test(fieldSelector.slice(0, fieldSelector.length - selected.length));
}
