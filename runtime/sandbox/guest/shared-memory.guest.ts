/** Stands in for the class that is taken away, inside the libraries of the bootstrap: nothing is an instance of it. */
class NoSharedMemory {
  get byteLength(): number {
    throw new TypeError("no buffer is shared here");
  }

  get growable(): boolean {
    throw new TypeError("no buffer is shared here");
  }
}

export { NoSharedMemory as SharedArrayBuffer };
