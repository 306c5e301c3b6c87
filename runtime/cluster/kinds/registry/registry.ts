import type { ResourceType } from "../resource-type.ts";
import { builtInResources } from "./built-in.ts";

/** The served resources: the built-in ones and those of established CRDs. */
export class Registry {
  private readonly byPath = new Map<string, ResourceType>();
  private readonly customs = new Map<string, ResourceType[]>();
  private generation = 0;

  constructor() {
    for (const type of builtInResources) this.byPath.set(path(type.group, type.version, type.plural), type);
  }

  /** Increases with every change of the served resources; discovery is cached by it. */
  get version(): number {
    return this.generation;
  }

  find(group: string, version: string, plural: string): ResourceType | undefined {
    return this.byPath.get(path(group, version, plural));
  }

  /** The resource of a kind, by group, version and kind. */
  ofKind(group: string, version: string, kind: string): ResourceType | undefined {
    for (const type of this.byPath.values())
      if (type.kind === kind && type.group === group && type.version === version) return type;
    return undefined;
  }

  /** Every stored resource, once per collection. */
  stored(): ResourceType[] {
    const byStorage = new Map<string, ResourceType>();
    for (const type of this.byPath.values())
      if (type.verbs.includes("list") && !byStorage.has(type.storage)) byStorage.set(type.storage, type);
    return [...byStorage.values()];
  }

  hasGroupVersion(group: string, version: string): boolean {
    for (const type of this.byPath.values()) if (type.group === group && type.version === version) return true;
    return false;
  }

  all(): ResourceType[] {
    return [...this.byPath.values()];
  }

  /** Replaces the resources that one CRD serves. An empty list removes them. */
  setCustom(definition: string, types: ResourceType[]): void {
    for (const type of this.customs.get(definition) ?? [])
      this.byPath.delete(path(type.group, type.version, type.plural));
    for (const type of types) this.byPath.set(path(type.group, type.version, type.plural), type);
    if (types.length > 0) this.customs.set(definition, types);
    else this.customs.delete(definition);
    this.generation++;
  }

  /** The resources that one CRD serves now. */
  custom(definition: string): readonly ResourceType[] {
    return this.customs.get(definition) ?? [];
  }
}

function path(group: string, version: string, plural: string): string {
  return `${group}/${version}/${plural}`;
}
