import { extname } from "node:path";

/** The program of the thread that reads source maps. In this folder, since a bundle has its shared code here. */
export const positionsProgram = (): URL => new URL(`./positions/thread${extname(import.meta.url)}`, import.meta.url);
