/** A patch that cannot be applied, with the fields of the Status that answers it. */
export class PatchError extends Error {
  readonly code: 400 | 422 | 500;
  /** Empty for a 500, as in the real server. */
  readonly reason: "BadRequest" | "Invalid" | "";

  constructor(code: 400 | 422 | 500, message: string) {
    super(message);
    this.name = "PatchError";
    this.code = code;
    this.reason = code === 400 ? "BadRequest" : code === 422 ? "Invalid" : "";
  }
}
