/** A patch that cannot be applied: the Status to answer with. */
export class PatchError extends Error {
  readonly code: 400 | 422 | 500;
  /** Empty for a 500: the real server gives none. */
  readonly reason: "BadRequest" | "Invalid" | "";

  constructor(code: 400 | 422 | 500, message: string) {
    super(message);
    this.name = "PatchError";
    this.code = code;
    this.reason = code === 400 ? "BadRequest" : code === 422 ? "Invalid" : "";
  }
}
