// Runs for each file anew, where the modules that the files share are loaded once per worker.
import { afterAll } from "vitest";
import { endFile } from "./fixture.ts";

afterAll(endFile);
