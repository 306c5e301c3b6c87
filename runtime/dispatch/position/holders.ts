/** Who knows something of an object, of those who let most objects pass: all functions ask for the same key, one after the other. */
export class Holders<T> {
  private readonly byKey = new Map<string, Set<T>>();
  private lastKey: string | undefined;
  private last: Set<T> | undefined;

  has(key: string, holder: T): boolean {
    if (key !== this.lastKey) {
      this.lastKey = key;
      this.last = this.byKey.get(key);
    }
    return this.last?.has(holder) ?? false;
  }

  add(key: string, holder: T): void {
    const holders = this.byKey.get(key);
    if (holders) holders.add(holder);
    else this.byKey.set(key, new Set([holder]));
    this.lastKey = undefined;
  }

  delete(key: string, holder: T): void {
    const holders = this.byKey.get(key);
    if (holders?.delete(holder) && holders.size === 0) this.byKey.delete(key);
    this.lastKey = undefined;
  }
}
