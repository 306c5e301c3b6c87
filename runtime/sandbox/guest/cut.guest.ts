import { cutMark } from "../../base/wording.ts";
import { charCodeAt, slice } from "./primordials.guest.ts";

/** What `cut` of wording.ts gives, whatever the handler did to the language. */
export function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const last = charCodeAt(text, limit - 2);
  const isHalf = last >= 0xd800 && last <= 0xdbff;
  return slice(text, 0, isHalf ? limit - 2 : limit - 1) + cutMark;
}
