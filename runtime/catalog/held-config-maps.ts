import type { ResourceVersion } from "../base/resource-version.ts";
import type { ObjectMeta } from "../informer/scan/change.ts";
import { type ConfigMap, readConfigMap } from "./config-map.ts";
import type { IndexEntry } from "./deployed-index.ts";
import { defaultSet, setLabel, setOfIndex } from "./names.ts";
import { type OpenedFunction, openFunction } from "./opened-function.ts";

/** Default limit of the memory for labelled ConfigMaps that are not opened yet, in bytes: a hundred of the largest. */
export const heldLimit = 128 * 1024 * 1024;

/** With limits, most characters of a manifest: a parser takes a second for a mebibyte. */
const manifestLimit = 64 * 1024;

/** One ConfigMap with the runtime's label, as last received. */
interface Held {
  readonly resourceVersion: ResourceVersion;
  /** Absent once it has been opened, and if too much is held. */
  readonly body?: Buffer;
  /** The opened function, for an entry of an index. */
  readonly opened?: { readonly entry: IndexEntry; readonly as: OpenedFunction };
  /** The set that its label names, once it was looked up. */
  set?: string;
  /** The content, if it was read as an index. */
  index?: ConfigMap | undefined;
}

/** The labelled ConfigMaps of a runtime's namespace: indexes and functions. */
export class HeldConfigMaps {
  private readonly account: string;
  private readonly held = new Map<string, Held>();
  private bytes = 0;
  private readonly limit: number;
  private readonly keepsBodies: boolean;

  /**
   * @param limit of the bytes that are held. Beyond it, a ConfigMap counts as unreadable.
   * @param keepsBodies keep the bytes of what is opened, so that `forgetOpened` can forget the rest. Default false.
   */
  constructor(account: string, limit = heldLimit, keepsBodies = false) {
    this.account = account;
    this.limit = limit;
    this.keepsBodies = keepsBodies;
  }

  get size(): number {
    return this.held.size;
  }

  names(): IterableIterator<string> {
    return this.held.keys();
  }

  has({ name, resourceVersion }: ObjectMeta): boolean {
    return this.held.get(name)?.resourceVersion === resourceVersion;
  }

  hold({ name, resourceVersion }: Pick<ObjectMeta, "name" | "resourceVersion">, body: Buffer): void {
    const fits = this.bytes + body.length <= this.limit;
    if (fits) this.bytes += body.length;
    this.held.set(name, { resourceVersion, ...(fits && { body: Buffer.from(body) }) });
  }

  drop(name: string): void {
    this.bytes -= this.held.get(name)?.body?.length ?? 0;
    this.held.delete(name);
  }

  /** Returns an index. `there`: whether a ConfigMap of that name exists, readable or not. */
  index(name: string): { readonly there: boolean; readonly configMap?: ConfigMap | undefined } {
    const held = this.held.get(name);
    if (held) held.index ??= parsed(held.body);
    return { there: held !== undefined, configMap: held?.index };
  }

  /** Opens an entry once; the result replaces the bytes. */
  open(entry: IndexEntry): OpenedFunction {
    const held = this.held.get(entry.configMap);
    if (held?.opened && JSON.stringify(held.opened.entry) === JSON.stringify(entry)) return held.opened.as;
    const configMap = parsed(held?.body);
    const as = openFunction(entry, configMap, this.keepsBodies ? manifestLimit : undefined);
    if (held && as.type !== "damaged") {
      const { resourceVersion, body } = held;
      const kept = this.keepsBodies && body ? { body } : {};
      if (!this.keepsBodies) this.drop(entry.configMap);
      this.held.set(entry.configMap, { resourceVersion, ...kept, opened: { entry, as }, set: setIn(configMap) });
    }
    return as;
  }

  /** Forgets what was opened, except these ConfigMaps, which stay as bytes. Does nothing unless bodies are kept. */
  forgetOpened(wanted: ReadonlySet<string>): void {
    if (!this.keepsBodies) return;
    for (const [name, { opened, ...held }] of this.held) if (opened && !wanted.has(name)) this.held.set(name, held);
  }

  /** Returns the sets that have an index, and those that have ConfigMaps of functions. */
  sets(): { readonly indexed: ReadonlySet<string>; readonly populated: ReadonlySet<string> } {
    const indexed = new Set<string>();
    const populated = new Set<string>();
    for (const [name, held] of this.held) {
      const set = setOfIndex(this.account, name);
      if (set !== undefined) indexed.add(set);
      else {
        held.set ??= setIn(parsed(held.body));
        populated.add(held.set);
      }
    }
    return { indexed, populated };
  }
}

/** Versions without sets set no label. */
const setIn = (configMap: ConfigMap | undefined): string => configMap?.metadata.labels[setLabel] ?? defaultSet;

function parsed(body: Buffer | undefined): ConfigMap | undefined {
  if (!body) return undefined;
  try {
    return readConfigMap(JSON.parse(body.toString("utf8")));
  } catch {
    return undefined;
  }
}
