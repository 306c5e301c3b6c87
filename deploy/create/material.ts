import { readMaterial } from "./templates.ts";

// A module of its own, which a bundle replaces by what it gives.
export const material = readMaterial();
