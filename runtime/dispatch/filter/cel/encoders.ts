import type { Library } from "./library.ts";
import { EvaluationError, type Meter } from "./meter.ts";

function decode(meter: Meter, _: unknown, text: string): Uint8Array {
  meter.payText(text.length, 3);
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text)) throw new EvaluationError("base64.decode() takes base64");
  return Buffer.from(text, "base64");
}

/** cel-go's encoders: a Secret's data is in base64. */
export const encoders: Library = {
  namespaces: ["base64"],
  functions: [
    ["base64.decode(string): bytes", decode],
    [
      "base64.encode(bytes): string",
      (meter, _: unknown, bytes: Uint8Array) => {
        meter.payText(bytes.length, 3);
        return Buffer.from(bytes).toString("base64");
      },
    ],
  ],
};
