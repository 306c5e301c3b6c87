import type { Library } from "./library.ts";
import { EvaluationError, type Meter } from "./meter.ts";

function decode(meter: Meter, _: unknown, text: string): Uint8Array {
  meter.payText(text.length, 3);
  const [digits = ""] = text.split("=");
  const whole = text.length === digits.length ? digits.length % 4 !== 1 : text.length % 4 === 0;
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || !whole) throw new EvaluationError("base64.decode() takes base64");
  return Buffer.from(text, "base64");
}

/** cel-go's encoders, because a Secret's data is base64. */
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
