import { cutMark } from "../../base/wording.ts";
import { charCodeAt, slice } from "./primordials.guest.ts";

/** Cuts a text as `cut` of wording.ts does, regardless of how the handler changed built-in objects. */
export function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const last = charCodeAt(text, limit - 2);
  const isHalf = last >= 0xd800 && last <= 0xdbff;
  return slice(text, 0, isHalf ? limit - 2 : limit - 1) + cutMark;
}
