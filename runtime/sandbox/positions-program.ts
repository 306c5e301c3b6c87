import { extname } from "node:path";

/**
 * URL of the program of the thread that reads source maps. Defined in this folder, because a bundle puts its shared code here.
 */
export const positionsProgram = (): URL => new URL(`./positions/thread${extname(import.meta.url)}`, import.meta.url);
