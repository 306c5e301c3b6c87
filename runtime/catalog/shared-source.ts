import { placeOfFunction, qualifiedName } from "../access/account.ts";
import { WatchfireError } from "../base/errors.ts";
import type { FunctionManifest } from "../manifest/function.ts";
import type { FunctionSet, FunctionSource, Origin } from "./function-source.ts";

/**
 * The sets of another namespace that shares the runtime. In the runtime, their functions are named `<function>.<namespace>`, so
 * that no name of another namespace is theirs, and share executors with functions of that namespace only.
 */
export class SharedSource implements FunctionSource {
  private readonly sets: FunctionSource;
  private readonly namespace: string;

  constructor(namespace: string, sets: FunctionSource) {
    this.namespace = namespace;
    this.sets = sets;
  }

  get trouble(): WatchfireError | undefined {
    const { trouble } = this.sets;
    if (!trouble) return undefined;
    const what = `of the sets in namespace ${this.namespace}: ${trouble.detail.what}`;
    return new WatchfireError(trouble.code, { ...trouble.detail, what });
  }

  async read(signal: AbortSignal): Promise<FunctionSet> {
    const { functions, rejected, complete } = await this.sets.read(signal);
    return {
      functions: functions.map((offer) => ({
        ...offer,
        manifest: this.qualified(offer.manifest),
        origin: this.placed(offer.origin),
        ...(offer.canary && { canary: { ...offer.canary, manifest: this.qualified(offer.canary.manifest) } }),
      })),
      rejected: rejected.map((offer) => ({
        ...offer,
        ...(offer.name !== undefined && { name: qualifiedName(offer.name, this.namespace) }),
        file: this.fileIn(offer.file),
        origin: this.placed(offer.origin),
      })),
      faults: [],
      // Nothing that is wrong with one namespace keeps functions of others from being removed.
      unreadNamespaces: complete ? [] : [this.namespace],
      complete: true,
    };
  }

  private qualified(manifest: FunctionManifest): FunctionManifest {
    const { name, trustGroup = "", file } = manifest;
    return {
      ...manifest,
      name: qualifiedName(name, this.namespace),
      file: this.fileIn(file),
      // A group's name contains no slash.
      trustGroup: `${this.namespace}/${trustGroup}`,
    };
  }

  /** ConfigMaps of two namespaces may have one name. */
  private fileIn(file: string): string {
    return `${this.namespace}/${file}`;
  }

  private placed(origin: Origin): Origin {
    return origin.type === "config-map" ? { ...origin, namespace: this.namespace } : origin;
  }
}

/** Returns whether a function may be in a namespace whose sets could not be read, so that it does not count as removed. */
export function mayBeUnread(
  { unreadNamespaces = [] }: Pick<FunctionSet, "unreadNamespaces">,
  functionName: string,
): boolean {
  const { namespace } = placeOfFunction(functionName);
  return namespace !== undefined && unreadNamespaces.includes(namespace);
}
