/** Stands in for SharedArrayBuffer, which guests lack, in the bootstrap's libraries. It has no instances. */
class NoSharedMemory {
  get byteLength(): number {
    throw new TypeError("no buffer is shared here");
  }

  get growable(): boolean {
    throw new TypeError("no buffer is shared here");
  }
}

export { NoSharedMemory as SharedArrayBuffer };
