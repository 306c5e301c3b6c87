// Runs once for each file. Modules that the files share are loaded only once per worker.
import { afterAll } from "vitest";
import { endFile } from "./fixture.ts";

afterAll(endFile);
