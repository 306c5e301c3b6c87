import { isUtf8 } from "node:buffer";
import { type ErrorCode, WatchfireError } from "../base/errors.ts";

/**
 * Decodes a file's text. YAML may be UTF-16 too; here only UTF-8 is accepted, as by the other tools that read these files.
 * @throws WatchfireError `code` at the first byte that is not UTF-8
 */
export function decodeUtf8(bytes: Buffer, file: string, code: ErrorCode): string {
  if (isUtf8(bytes)) return new TextDecoder().decode(bytes);
  for (let start = 0, line = 1; ; line++) {
    const newline = bytes.indexOf(0x0a, start);
    const end = newline < 0 ? bytes.length : newline;
    const text = bytes.subarray(start, end);
    if (!isUtf8(text)) {
      const place = { file, line, column: text.toString("utf8").indexOf("\uFFFD") + 1 };
      throw new WatchfireError(code, { what: "the file is not UTF-8", place, hint: "save it as UTF-8" });
    }
    start = end + 1;
  }
}
