// npm run audit: 1,000 ConfigMaps, kills by SIGKILL each with an edit of the manifest, and compactions. AUDIT_SEED selects a run,
// to try another or to repeat one.
import { audit, isFaultless } from "./audit.ts";

const seed = Number(process.env.AUDIT_SEED ?? Math.floor(Math.random() * 2 ** 31));
const say = (line: string) => process.stdout.write(`${line}\n`);

say(`seed ${seed}`);
const { whole, compacted } = await audit({ objects: 1000, operations: 4000, kills: 5, seed, say });
const faultless = isFaultless(whole) && isFaultless(compacted);
say(faultless ? "no net change missed, no duplicate without its flag" : "the promise is broken");
process.exit(faultless ? 0 : 2);
