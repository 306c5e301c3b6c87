import { describe, expect, it } from "vitest";
import { refusal, requiredFlags } from "../../runtime/sandbox/requirements.ts";

describe("an executor", () => {
  it("starts on a supported Node with its flags and a safe isolated-vm", () => {
    expect(refusal("24.21.0", requiredFlags, "7.0.1")).toBeUndefined();
    expect(refusal("26.0.0", requiredFlags, "7.10.0")).toBeUndefined();
  });

  it("refuses an isolated-vm with the known memory corruption", () => {
    expect(refusal("24.21.0", requiredFlags, "7.0.0")).toContain("7.0.0");
    expect(refusal("24.21.0", requiredFlags, "6.9.9")).toContain("6.9.9");
  });

  it("refuses a Node that isolated-vm has no binary for", () => {
    expect(refusal("22.3.0", requiredFlags, "7.0.1")).toContain("22.3.0");
  });

  it("refuses to run without its flags, and names the missing one", () => {
    expect(refusal("24.21.0", requiredFlags.slice(1), "7.0.1")).toContain(requiredFlags[0]);
  });
});
